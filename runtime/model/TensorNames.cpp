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

/// With a second norm by the name of one behind attention, and layers of linear
/// attention, whose decays and convolution StoredTensors.cpp shows as others
/// have them. Qwen3-Next has b and a in order of the key heads.
constexpr TensorNames ggufQwenLinearNames() {
  TensorNames names = ggufNames(/*isGpt2=*/false);
  names.mlpNorm = "post_attention_norm";
  names.linearQkv = "attn_qkv";
  names.linearZ = "attn_gate";
  names.linearA = "ssm_alpha";
  names.linearB = "ssm_beta";
  names.linearBa = "ssm_ba";
  names.convolution = "ssm_conv1d";
  names.linearDecay = "ssm_a";
  names.linearBias = "ssm_dt.bias";
  names.linearNorm = "ssm_norm";
  names.linearOutput = "ssm_out";
  return names;
}

/// Value heads take turns at the key heads.
constexpr TensorNames ggufQwen3_5Names() {
  TensorNames names = ggufQwenLinearNames();
  names.tiledHeads = true;
  return names;
}

/// Keys and values are split by StoredTensors.cpp.
constexpr TensorNames ggufDeepseekNames() {
  TensorNames names = ggufNames(/*isGpt2=*/false);
  names.queryLatent = "attn_q_a";
  names.queryLatentNorm = "attn_q_a_norm";
  names.queryOfLatent = "attn_q_b";
  names.keyLatent = "attn_kv_a_mqa";
  names.keyLatentNorm = "attn_kv_a_norm";
  names.keysValues = "attn_kv_b";
  names.stackedKeys = "attn_k_b";
  names.stackedValues = "attn_v_b";
  names.choiceBias = "exp_probs_b.bias";
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

/// With inputs of tokens, scales of layers, and experts beside blocks.
constexpr TensorNames ggufGemma4Names() {
  TensorNames names = ggufGemmaNames();
  names.tokenInputs = "per_layer_token_embd";
  names.tokenInputProjection = "per_layer_model_proj";
  names.tokenInputNorm = "per_layer_proj_norm";
  names.tokenGate = "inp_gate";
  names.tokenOutput = "proj";
  names.tokenOutputNorm = "post_norm";
  names.layerScale = "layer_output_scale.weight";
  names.routerNorm = "ffn_gate_inp.scale";
  names.expertScales = "ffn_down_exps.scale";
  names.blockOutputNorm = "post_ffw_norm_1";
  names.expertNorm = "pre_ffw_norm_2";
  names.expertOutputNorm = "post_ffw_norm_2";
  return names;
}

/// With several streams, whose matrices are in stacks, and blocks of few
/// columns.
constexpr TensorNames ggufGemma3nNames() {
  TensorNames names = ggufGemma4Names();
  names.streamProjections = "altup_proj";
  names.streamEnds = "altup_unembd_proj";
  names.streamNorm = "altup_router_norm";
  names.streamRouter = "altup_router";
  names.streamPredictions = "altup_predict_coef";
  names.streamCorrections = "altup_correct_coef";
  names.streamScale = "altup_correct_scale.weight";
  names.narrowIn = "laurel_l";
  names.narrowOut = "laurel_r";
  names.narrowNorm = "laurel_post_norm";
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
constexpr TensorNames kGgufGemma3n = ggufGemma3nNames();
constexpr TensorNames kGgufGemma4 = ggufGemma4Names();
constexpr TensorNames kGgufQwenLinear = ggufQwenLinearNames();
constexpr TensorNames kGgufQwen3_5 = ggufQwen3_5Names();
constexpr TensorNames kGgufDeepseek = ggufDeepseekNames();
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
    return gguf ? kGgufGemma3n : kGemma3n;
  case Architecture::Gemma4:
    return gguf ? kGgufGemma4 : kGemma4;
  case Architecture::Starcoder2:
    return gguf ? kGgufStarcoder2 : kStarcoder2;
  case Architecture::Mixtral:
    return gguf ? kGgufLlama : kMixtral;
  case Architecture::GraniteMoe:
    return gguf ? kGgufLlama : kGraniteMoe;
  case Architecture::GptOss:
    return gguf ? kGgufGptOss : kGptOss;
  case Architecture::Llama4:
    return gguf ? kGgufLlama : kLlama4;
  case Architecture::DeepseekV3:
    return gguf ? kGgufDeepseek : kDeepseekV3;
  case Architecture::Qwen3Next:
    return gguf ? kGgufQwenLinear : kQwenLinear;
  case Architecture::Qwen3_5:
    return gguf ? kGgufQwen3_5 : kQwenLinear;
  case Architecture::Qwen2Moe:
  case Architecture::Qwen3Moe:
  case Architecture::Olmoe:
    return gguf ? kGgufLlama : kQwenMoe;
  default:
    return gguf ? kGgufLlama : kLlama;
  }
}
