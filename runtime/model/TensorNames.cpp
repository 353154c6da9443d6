//===- TensorNames.cpp - What models call their tensors -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/TensorList.h"

using namespace kf;

namespace {

constexpr TensorNames llamaNames() {
  TensorNames names;
  names.prefix = "model.";
  names.layer = "layers";
  names.embedding = "embed_tokens";
  names.finalNorm = "norm";
  names.head = "lm_head";
  names.attentionNorm = "input_layernorm";
  names.mlpNorm = "post_attention_layernorm";
  names.query = "self_attn.q_proj";
  names.key = "self_attn.k_proj";
  names.value = "self_attn.v_proj";
  names.output = "self_attn.o_proj";
  names.queryNorm = "self_attn.q_norm";
  names.keyNorm = "self_attn.k_norm";
  names.gate = "mlp.gate_proj";
  names.up = "mlp.up_proj";
  names.down = "mlp.down_proj";
  return names;
}

constexpr TensorNames gpt2Names() {
  TensorNames names;
  names.prefix = "transformer.";
  names.layer = "h";
  names.embedding = "wte";
  names.positions = "wpe";
  names.finalNorm = "ln_f";
  names.head = "lm_head";
  names.attentionNorm = "ln_1";
  names.mlpNorm = "ln_2";
  names.fusedQkv = "attn.c_attn";
  names.output = "attn.c_proj";
  names.up = "mlp.c_fc";
  names.down = "mlp.c_proj";
  names.transposed = true;
  return names;
}

/// OLMo's norms are behind the blocks.
constexpr TensorNames olmoNames() {
  TensorNames names = llamaNames();
  names.attentionNorm = names.mlpNorm = {};
  names.attentionOutputNorm = "post_attention_layernorm";
  names.mlpOutputNorm = "post_feedforward_layernorm";
  return names;
}

/// Gemma's, of inputs and of outputs.
constexpr TensorNames gemmaNames() {
  TensorNames names = llamaNames();
  names.attentionOutputNorm = "post_attention_layernorm";
  names.mlpNorm = "pre_feedforward_layernorm";
  names.mlpOutputNorm = "post_feedforward_layernorm";
  return names;
}

/// With inputs of tokens, scales of layers, and experts beside blocks, which
/// StoredTensors.cpp splits.
constexpr TensorNames gemma4Names() {
  TensorNames names = gemmaNames();
  names.tokenInputs = "embed_tokens_per_layer";
  names.tokenInputProjection = "per_layer_model_projection";
  names.tokenInputNorm = "per_layer_projection_norm";
  names.tokenGate = "per_layer_input_gate";
  names.tokenOutput = "per_layer_projection";
  names.tokenOutputNorm = "post_per_layer_input_norm";
  names.layerScale = "layer_scalar";
  names.router = "router.proj";
  names.routerNorm = "router.scale";
  names.experts = "experts";
  names.expertGate = "gate_proj";
  names.expertUp = "up_proj";
  names.expertDown = "down_proj";
  names.expertScales = "router.per_expert_scale";
  names.blockOutputNorm = "post_feedforward_layernorm_1";
  names.expertNorm = "pre_feedforward_layernorm_2";
  names.expertOutputNorm = "post_feedforward_layernorm_2";
  names.stackedInputs = "experts.gate_up_proj";
  names.stackedOutputs = "experts.down_proj";
  return names;
}

/// With several streams, and blocks of few columns.
constexpr TensorNames gemma3nNames() {
  TensorNames names = gemma4Names();
  names.stackedInputs = names.stackedOutputs = {};
  names.streamProjections = "altup_projections";
  names.streamEnds = "altup_unembed_projections";
  names.streamNorm = "altup.router_norm";
  names.streamRouter = "altup.modality_router";
  names.streamPredictions = "altup.prediction_coefs";
  names.streamCorrections = "altup.correction_coefs";
  names.streamScale = "altup.correct_output_scale";
  names.narrowIn = "laurel.linear_left";
  names.narrowOut = "laurel.linear_right";
  names.narrowNorm = "laurel.post_laurel_norm";
  return names;
}

constexpr TensorNames starcoder2Names() {
  TensorNames names = llamaNames();
  names.gate = {};
  names.up = "mlp.c_fc";
  names.down = "mlp.c_proj";
  return names;
}

/// With a block of experts.
constexpr TensorNames qwenMoeNames() {
  TensorNames names = llamaNames();
  names.router = "mlp.gate";
  names.experts = "mlp.experts";
  names.expertGate = "gate_proj";
  names.expertUp = "up_proj";
  names.expertDown = "down_proj";
  names.sharedGate = "mlp.shared_expert.gate_proj";
  names.sharedUp = "mlp.shared_expert.up_proj";
  names.sharedDown = "mlp.shared_expert.down_proj";
  names.sharedRouter = "mlp.shared_expert_gate";
  return names;
}

/// Qwen 3.5's, and Qwen3-Next's, which has experts: some layers have linear
/// attention.
constexpr TensorNames qwenLinearNames() {
  TensorNames names = qwenMoeNames();
  names.guesses = "mtp.";
  names.linearQkv = "linear_attn.in_proj_qkv";
  names.linearZ = "linear_attn.in_proj_z";
  names.linearA = "linear_attn.in_proj_a";
  names.linearB = "linear_attn.in_proj_b";
  names.linearQkvz = "linear_attn.in_proj_qkvz";
  names.linearBa = "linear_attn.in_proj_ba";
  names.convolution = "linear_attn.conv1d";
  names.linearDecay = "linear_attn.A_log";
  names.linearBias = "linear_attn.dt_bias";
  names.linearNorm = "linear_attn.norm";
  names.linearOutput = "linear_attn.out_proj";
  return names;
}

constexpr TensorNames mixtralNames() {
  TensorNames names = llamaNames();
  names.router = "block_sparse_moe.gate";
  names.experts = "block_sparse_moe.experts";
  names.expertGate = "w1";
  names.expertUp = "w3";
  names.expertDown = "w2";
  return names;
}

/// Its experts are split by StoredTensors.cpp, and called as Mixtral's.
constexpr TensorNames graniteMoeNames() {
  TensorNames names = mixtralNames();
  names.router = "block_sparse_moe.router.layer";
  names.stackedInputs = "block_sparse_moe.input_linear.weight";
  names.stackedOutputs = "block_sparse_moe.output_linear.weight";
  return names;
}

/// Its experts are split by StoredTensors.cpp, and called as Qwen's.
constexpr TensorNames gptOssNames() {
  TensorNames names = qwenMoeNames();
  names.sinks = "self_attn.sinks";
  names.router = "mlp.router";
  return names;
}

/// Its experts are split by StoredTensors.cpp, and called as Qwen's.
constexpr TensorNames llama4Names() {
  TensorNames names = llamaNames();
  names.gate = "feed_forward.gate_proj";
  names.up = "feed_forward.up_proj";
  names.down = "feed_forward.down_proj";
  names.router = "feed_forward.router";
  names.experts = "feed_forward.experts";
  names.expertGate = "gate_proj";
  names.expertUp = "up_proj";
  names.expertDown = "down_proj";
  names.sharedGate = "feed_forward.shared_expert.gate_proj";
  names.sharedUp = "feed_forward.shared_expert.up_proj";
  names.sharedDown = "feed_forward.shared_expert.down_proj";
  return names;
}

/// With latent attention, whose keys and values StoredTensors.cpp splits.
constexpr TensorNames deepseekV3Names() {
  TensorNames names = qwenMoeNames();
  names.queryLatent = "self_attn.q_a_proj";
  names.queryLatentNorm = "self_attn.q_a_layernorm";
  names.queryOfLatent = "self_attn.q_b_proj";
  names.keyLatent = "self_attn.kv_a_proj_with_mqa";
  names.keyLatentNorm = "self_attn.kv_a_layernorm";
  names.keysValues = "self_attn.kv_b_proj";
  names.choiceBias = "mlp.gate.e_score_correction_bias";
  names.sharedGate = "mlp.shared_experts.gate_proj";
  names.sharedUp = "mlp.shared_experts.up_proj";
  names.sharedDown = "mlp.shared_experts.down_proj";
  return names;
}

/// GGUF's names, which architectures share but for what they lack.
constexpr TensorNames ggufNames(bool isGpt2) {
  TensorNames names;
  names.layer = "blk";
  names.embedding = "token_embd";
  names.finalNorm = "output_norm";
  names.head = "output";
  names.attentionNorm = "attn_norm";
  names.mlpNorm = "ffn_norm";
  if (isGpt2) {
    names.positions = "position_embd";
    names.fusedQkv = "attn_qkv";
  } else {
    names.query = "attn_q";
    names.key = "attn_k";
    names.value = "attn_v";
    names.gate = "ffn_gate";
    names.ropeFactors = "rope_freqs";
    names.router = "ffn_gate_inp";
    names.expertGate = "ffn_gate";
    names.expertUp = "ffn_up";
    names.expertDown = "ffn_down";
    names.sharedGate = "ffn_gate_shexp";
    names.sharedUp = "ffn_up_shexp";
    names.sharedDown = "ffn_down_shexp";
    names.sharedRouter = "ffn_gate_inp_shexp";
  }
  names.queryNorm = "attn_q_norm";
  names.keyNorm = "attn_k_norm";
  names.output = "attn_output";
  names.up = "ffn_up";
  names.down = "ffn_down";
  return names;
}

constexpr TensorNames ggufOlmoNames() {
  TensorNames names = ggufNames(/*isGpt2=*/false);
  names.attentionNorm = names.mlpNorm = {};
  names.attentionOutputNorm = "post_attention_norm";
  names.mlpOutputNorm = "post_ffw_norm";
  return names;
}

constexpr TensorNames ggufGemmaNames() {
  TensorNames names = ggufNames(/*isGpt2=*/false);
  names.attentionOutputNorm = "post_attention_norm";
  names.mlpOutputNorm = "post_ffw_norm";
  return names;
}

constexpr TensorNames ggufStarcoder2Names() {
  TensorNames names = ggufNames(/*isGpt2=*/false);
  names.gate = {};
  return names;
}

/// Its second norm has the name of one behind attention.
constexpr TensorNames ggufGptOssNames() {
  TensorNames names = ggufNames(/*isGpt2=*/false);
  names.mlpNorm = "post_attention_norm";
  names.sinks = "attn_sinks.weight";
  return names;
}

constexpr TensorNames kLlama = llamaNames();
constexpr TensorNames kOlmo = olmoNames();
constexpr TensorNames kGemma = gemmaNames();
constexpr TensorNames kGemma3n = gemma3nNames();
constexpr TensorNames kGemma4 = gemma4Names();
constexpr TensorNames kStarcoder2 = starcoder2Names();
constexpr TensorNames kQwenMoe = qwenMoeNames();
constexpr TensorNames kQwenLinear = qwenLinearNames();
constexpr TensorNames kMixtral = mixtralNames();
constexpr TensorNames kGraniteMoe = graniteMoeNames();
constexpr TensorNames kGptOss = gptOssNames();
constexpr TensorNames kLlama4 = llama4Names();
constexpr TensorNames kDeepseekV3 = deepseekV3Names();
constexpr TensorNames kGpt2 = gpt2Names();
constexpr TensorNames kGgufLlama = ggufNames(/*isGpt2=*/false);
constexpr TensorNames kGgufOlmo = ggufOlmoNames();
constexpr TensorNames kGgufGemma = ggufGemmaNames();
constexpr TensorNames kGgufStarcoder2 = ggufStarcoder2Names();
constexpr TensorNames kGgufGptOss = ggufGptOssNames();
constexpr TensorNames kGgufGpt2 = ggufNames(/*isGpt2=*/true);

} // namespace

const TensorNames &kf::tensorNames(const ModelConfig &config) {
  const bool gguf = config.naming == TensorNaming::Gguf;
  switch (config.architecture) {
  case Architecture::Gpt2:
    return gguf ? kGgufGpt2 : kGpt2;
  case Architecture::Olmo2:
  case Architecture::Olmo3:
    return gguf ? kGgufOlmo : kOlmo;
  case Architecture::Gemma2:
  case Architecture::Gemma3:
    return gguf ? kGgufGemma : kGemma;
  case Architecture::Gemma3n:
    return kGemma3n;
  case Architecture::Gemma4:
    return kGemma4;
  case Architecture::Starcoder2:
    return gguf ? kGgufStarcoder2 : kStarcoder2;
  case Architecture::Mixtral:
    return gguf ? kGgufLlama : kMixtral;
  case Architecture::GraniteMoe:
    return gguf ? kGgufLlama : kGraniteMoe;
  case Architecture::GptOss:
    return gguf ? kGgufGptOss : kGptOss;
  case Architecture::Llama4:
    return kLlama4;
  case Architecture::DeepseekV3:
    return kDeepseekV3;
  case Architecture::Qwen3Next:
  case Architecture::Qwen3_5:
    return kQwenLinear;
  case Architecture::Qwen2Moe:
  case Architecture::Qwen3Moe:
  case Architecture::Olmoe:
    return gguf ? kGgufLlama : kQwenMoe;
  default:
    return gguf ? kGgufLlama : kLlama;
  }
}
