//===- NamedConfigs.cpp - Well-known models' sizes ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/NamedConfigs.h"

#include <algorithm>
#include <iterator>

using namespace kf;

// The fields of the published files that parseModelConfig reads.
static constexpr NamedConfig configs[] = {
    {"tinyllama-1.1b", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_size": 2048,
  "intermediate_size": 5632,
  "num_hidden_layers": 22,
  "num_attention_heads": 32,
  "num_key_value_heads": 4,
  "vocab_size": 32000,
  "max_position_embeddings": 2048,
  "hidden_act": "silu",
  "rms_norm_eps": 1e-05,
  "rope_theta": 10000.0,
  "rope_scaling": null,
  "attention_bias": false,
  "tie_word_embeddings": false,
  "bos_token_id": 1,
  "eos_token_id": 2,
  "torch_dtype": "bfloat16"
})"},
    {"llama-3.2-1b", "meta-llama/Llama-3.2-1B", R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_size": 2048,
  "intermediate_size": 8192,
  "num_hidden_layers": 16,
  "num_attention_heads": 32,
  "num_key_value_heads": 8,
  "head_dim": 64,
  "vocab_size": 128256,
  "max_position_embeddings": 131072,
  "hidden_act": "silu",
  "rms_norm_eps": 1e-05,
  "rope_theta": 500000.0,
  "rope_scaling": {
    "factor": 32.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3"
  },
  "attention_bias": false,
  "mlp_bias": false,
  "tie_word_embeddings": true,
  "bos_token_id": 128000,
  "eos_token_id": 128001,
  "torch_dtype": "bfloat16"
})"},
    {"llama-3.2-3b", "meta-llama/Llama-3.2-3B", R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_size": 3072,
  "intermediate_size": 8192,
  "num_hidden_layers": 28,
  "num_attention_heads": 24,
  "num_key_value_heads": 8,
  "head_dim": 128,
  "vocab_size": 128256,
  "max_position_embeddings": 131072,
  "hidden_act": "silu",
  "rms_norm_eps": 1e-05,
  "rope_theta": 500000.0,
  "rope_scaling": {
    "factor": 32.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3"
  },
  "attention_bias": false,
  "mlp_bias": false,
  "tie_word_embeddings": true,
  "bos_token_id": 128000,
  "eos_token_id": 128001,
  "torch_dtype": "bfloat16"
})"},
    {"llama-2-7b", "meta-llama/Llama-2-7b-hf", R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_size": 4096,
  "intermediate_size": 11008,
  "num_hidden_layers": 32,
  "num_attention_heads": 32,
  "num_key_value_heads": 32,
  "vocab_size": 32000,
  "max_position_embeddings": 4096,
  "hidden_act": "silu",
  "rms_norm_eps": 1e-05,
  "rope_scaling": null,
  "tie_word_embeddings": false,
  "bos_token_id": 1,
  "eos_token_id": 2,
  "torch_dtype": "float16"
})"},
    {"llama-3-8b", "meta-llama/Meta-Llama-3-8B", R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_size": 4096,
  "intermediate_size": 14336,
  "num_hidden_layers": 32,
  "num_attention_heads": 32,
  "num_key_value_heads": 8,
  "vocab_size": 128256,
  "max_position_embeddings": 8192,
  "hidden_act": "silu",
  "rms_norm_eps": 1e-05,
  "rope_theta": 500000.0,
  "rope_scaling": null,
  "attention_bias": false,
  "tie_word_embeddings": false,
  "bos_token_id": 128000,
  "eos_token_id": 128001,
  "torch_dtype": "bfloat16"
})"},
    {"mistral-7b", "mistralai/Mistral-7B-v0.1", R"({
  "architectures": ["MistralForCausalLM"],
  "model_type": "mistral",
  "hidden_size": 4096,
  "intermediate_size": 14336,
  "num_hidden_layers": 32,
  "num_attention_heads": 32,
  "num_key_value_heads": 8,
  "vocab_size": 32000,
  "max_position_embeddings": 32768,
  "sliding_window": 4096,
  "hidden_act": "silu",
  "rms_norm_eps": 1e-05,
  "rope_theta": 10000.0,
  "tie_word_embeddings": false,
  "bos_token_id": 1,
  "eos_token_id": 2,
  "torch_dtype": "bfloat16"
})"},
    {"qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B", R"({
  "architectures": ["Qwen2ForCausalLM"],
  "model_type": "qwen2",
  "hidden_size": 896,
  "intermediate_size": 4864,
  "num_hidden_layers": 24,
  "num_attention_heads": 14,
  "num_key_value_heads": 2,
  "vocab_size": 151936,
  "max_position_embeddings": 32768,
  "max_window_layers": 24,
  "sliding_window": 32768,
  "use_sliding_window": false,
  "hidden_act": "silu",
  "rms_norm_eps": 1e-06,
  "rope_theta": 1000000.0,
  "tie_word_embeddings": true,
  "bos_token_id": 151643,
  "eos_token_id": 151643,
  "torch_dtype": "bfloat16"
})"},
};

std::span<const NamedConfig> kf::namedConfigs() { return configs; }

const NamedConfig *kf::findNamedConfig(std::string_view name) {
  const NamedConfig *found =
      std::ranges::find(configs, name, &NamedConfig::name);
  return found == std::end(configs) ? nullptr : found;
}
