//===- ModelFamily.cpp - What sets architectures apart --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ModelFamily.h"

#include <algorithm>
#include <cassert>

using namespace kf;

static constexpr const char *llamaReads[] = {"attention_bias", "mlp_bias"};
static constexpr const char *qwen2Reads[] = {"attention_bias",
                                             "sliding_window"};
static constexpr const char *mistralReads[] = {"sliding_window"};

static constexpr const char *graniteReads[] = {
    "attention_bias",       "mlp_bias",       "attention_multiplier",
    "embedding_multiplier", "logits_scaling", "residual_multiplier"};
// Published files have a pretraining_tp that nothing reads.
static constexpr const char *smolLm3Reads[] = {
    "pretraining_tp", "attention_bias",         "mlp_bias",
    "no_rope_layers", "no_rope_layer_interval", "sliding_window"};
static constexpr const char *olmo2Reads[] = {"attention_bias"};
static constexpr const char *olmo3Reads[] = {"attention_bias",
                                             "sliding_window"};
static constexpr const char *phi3Reads[] = {"partial_rotary_factor",
                                            "sliding_window"};
static constexpr const char *stableLmReads[] = {"partial_rotary_factor",
                                                "use_parallel_residual"};
static constexpr const char *cohereReads[] = {"attention_bias", "logit_scale"};

static constexpr Family families[] = {
    {.architecture = Architecture::Llama,
     .modelType = "llama",
     .className = "LlamaForCausalLM",
     .qkvBias = {"attention_bias"},
     .outputBias = {"attention_bias"},
     .mlpBias = {"mlp_bias"},
     .reads = llamaReads,
     .needsKvHeads = false},
    {.architecture = Architecture::Mistral,
     .modelType = "mistral",
     .className = "MistralForCausalLM",
     .reads = mistralReads,
     .defaultMaxPositions = 131072,
     .windows = WindowRule::Always,
     .defaultWindow = 4096},
    // Qwen2 has the biases that it has, whatever attention_bias says.
    {.architecture = Architecture::Qwen2,
     .modelType = "qwen2",
     .className = "Qwen2ForCausalLM",
     .qkvBias = {nullptr, true},
     .reads = qwen2Reads,
     .defaultMaxPositions = 32768,
     .windows = WindowRule::IfUsed},
    {.architecture = Architecture::Qwen3,
     .modelType = "qwen3",
     .className = "Qwen3ForCausalLM",
     .qkvBias = {"attention_bias"},
     .outputBias = {"attention_bias"},
     .reads = qwen2Reads,
     .defaultMaxPositions = 32768,
     .defaultHeadDim = 128,
     .qkNorm = QkNorm::Heads,
     .windows = WindowRule::IfUsed},
    {.architecture = Architecture::Gpt2,
     .modelType = "gpt2",
     .className = "GPT2LMHeadModel",
     .hiddenSize = "n_embd",
     .layers = "n_layer",
     .heads = "n_head",
     .maxPositions = "n_positions",
     .activation = "activation_function",
     .eps = "layer_norm_epsilon",
     .qkvBias = {nullptr, true},
     .outputBias = {nullptr, true},
     .mlpBias = {nullptr, true},
     .defaultActivation = "gelu_new",
     .defaultMaxPositions = 1024,
     .defaultEps = 1e-5,
     .defaultTied = true,
     .norm = Norm::Layer,
     .normBias = true,
     .gatedMlp = false,
     .turned = TurnedLayers::None},
    {.architecture = Architecture::Granite,
     .modelType = "granite",
     .className = "GraniteForCausalLM",
     .embeddingScale = "embedding_multiplier",
     .residualScale = "residual_multiplier",
     .attentionScale = "attention_multiplier",
     .logitDivisor = "logits_scaling",
     .qkvBias = {"attention_bias"},
     .outputBias = {"attention_bias"},
     .mlpBias = {"mlp_bias"},
     .reads = graniteReads,
     .needsKvHeads = false},
    {.architecture = Architecture::SmolLm3,
     .modelType = "smollm3",
     .className = "SmolLM3ForCausalLM",
     .qkvBias = {"attention_bias"},
     .outputBias = {"attention_bias"},
     .mlpBias = {"mlp_bias"},
     .reads = smolLm3Reads,
     .defaultMaxPositions = 32768,
     .defaultTheta = 2e6,
     .defaultTied = true,
     .windows = WindowRule::IfUsed,
     .turned = TurnedLayers::Listed},
    {.architecture = Architecture::Olmo2,
     .modelType = "olmo2",
     .className = "Olmo2ForCausalLM",
     .qkvBias = {"attention_bias"},
     .outputBias = {"attention_bias"},
     .reads = olmo2Reads,
     .defaultEps = 1e-5,
     .needsKvHeads = false,
     .normPlaces = NormPlaces::Outputs,
     .qkNorm = QkNorm::Width},
    {.architecture = Architecture::Olmo3,
     .modelType = "olmo3",
     .className = "Olmo3ForCausalLM",
     .qkvBias = {"attention_bias"},
     .outputBias = {"attention_bias"},
     .reads = olmo3Reads,
     .defaultEps = 1e-5,
     .defaultTheta = 5e5,
     .needsKvHeads = false,
     .normPlaces = NormPlaces::Outputs,
     .qkNorm = QkNorm::Width,
     .windows = WindowRule::Always,
     .defaultWindow = 4096,
     .fullLayers = 4,
     .ropeByType = true},
    {.architecture = Architecture::Phi3,
     .modelType = "phi3",
     .className = "Phi3ForCausalLM",
     .reads = phi3Reads,
     .defaultMaxPositions = 4096,
     .defaultEps = 1e-5,
     .needsKvHeads = false,
     .windows = WindowRule::Always,
     .partialRotary = true},
    {.architecture = Architecture::StableLm,
     .modelType = "stablelm",
     .className = "StableLmForCausalLM",
     .eps = "layer_norm_eps",
     .qkvBias = {"use_qkv_bias"},
     .reads = stableLmReads,
     .defaultMaxPositions = 4096,
     .defaultEps = 1e-5,
     .defaultRotaryPart = 0.25,
     .norm = Norm::Layer,
     .normBias = true,
     .parallelField = "use_parallel_residual",
     .partialRotary = true},
    {.architecture = Architecture::Starcoder2,
     .modelType = "starcoder2",
     .className = "Starcoder2ForCausalLM",
     .eps = "norm_epsilon",
     .qkvBias = {"use_bias", true},
     .outputBias = {"use_bias", true},
     .mlpBias = {"use_bias", true},
     .reads = mistralReads,
     .defaultActivation = "gelu_pytorch_tanh",
     .defaultMaxPositions = 4096,
     .defaultEps = 1e-5,
     .defaultTied = true,
     .norm = Norm::Layer,
     .normBias = true,
     .gatedMlp = false,
     .windows = WindowRule::Always},
    {.architecture = Architecture::Cohere,
     .modelType = "cohere",
     .className = "CohereForCausalLM",
     .eps = "layer_norm_eps",
     .logitScale = "logit_scale",
     .qkvBias = {"attention_bias"},
     .outputBias = {"attention_bias"},
     .reads = cohereReads,
     .defaultMaxPositions = 8192,
     .defaultEps = 1e-5,
     .defaultTheta = 5e5,
     .defaultLogitScale = 0.0625,
     .defaultTied = true,
     .needsKvHeads = false,
     .norm = Norm::Layer,
     .parallelBlocks = true,
     .interleavedRope = true},
};

std::span<const Family> kf::modelFamilies() { return families; }

const Family &kf::familyOf(Architecture architecture) {
  const auto *found =
      std::ranges::find(families, architecture, &Family::architecture);
  assert(found != std::end(families) && "every architecture has a row");
  return *found;
}
