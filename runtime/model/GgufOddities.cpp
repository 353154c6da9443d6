//===- GgufOddities.cpp - What looks wrong in a GGUF file -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GgufOddities.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <array>
#include <optional>

using namespace kf;

namespace {

/// Keys behind the architecture's name that are read or change nothing.
constexpr std::string_view knownKeys[] = {
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "pooling_type",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.factor",
    "rope.scaling.attn_factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "tensor_data_layout",
    "vocab_size",
};

/// Keys that must have a value with which they change nothing.
struct NeutralKey {
  std::string_view key;
  double value; ///< of a number; 1 for true
};
constexpr NeutralKey neutralKeys[] = {
    {"attention.causal", 1},
    {"attention.clamp_kqv", 0},
    {"attention.max_alibi_bias", 0},
    {"attn_logit_softcapping", 0},
    {"embedding_scale", 1},
    {"expert_count", 0},
    {"expert_gating_func", 1}, // softmax
    {"expert_group_count", 0},
    {"expert_group_used_count", 0},
    {"expert_shared_feed_forward_length", 0},
    {"expert_used_count", 0},
    {"final_logit_softcapping", 0},
    {"logit_scale", 1},
    {"residual_scale", 1},
    {"rope.scaling.yarn_ext_factor", 1},
    {"use_parallel_residual", 0},
};

/// Keys that one architecture reads, whatever they are to others.
struct OwnKey {
  std::string_view architecture, key;
};
constexpr OwnKey ownKeys[] = {
    {"cohere2", "attention.sliding_window_pattern"},
    {"cohere2", "logit_scale"},
    {"command-r", "logit_scale"},
    {"deepseek2", "attention.key_length_mla"},
    {"deepseek2", "attention.kv_lora_rank"},
    {"deepseek2", "attention.q_lora_rank"},
    {"deepseek2", "attention.value_length_mla"},
    {"deepseek2", "expert_count"},
    {"deepseek2", "expert_feed_forward_length"},
    {"deepseek2", "expert_gating_func"},
    {"deepseek2", "expert_group_count"},
    {"deepseek2", "expert_group_used_count"},
    {"deepseek2", "expert_shared_count"},
    {"deepseek2", "expert_used_count"},
    {"deepseek2", "expert_weights_norm"},
    {"deepseek2", "expert_weights_scale"},
    {"deepseek2", "leading_dense_block_count"},
    {"deepseek2", "nextn_predict_layers"},
    {"deepseek2", "rope.scaling.yarn_log_multiplier"},
    {"gemma2", "attention.scale"},
    {"gemma2", "attention.sliding_window_pattern"},
    {"gemma2", "attn_logit_softcapping"},
    {"gemma2", "final_logit_softcapping"},
    {"gemma3", "attention.scale"},
    {"gemma3", "attention.sliding_window_pattern"},
    {"gemma3", "final_logit_softcapping"},
    {"gemma3", "rope.freq_base_swa"},
    {"gemma3n", "activation_sparsity_scale"},
    {"gemma3n", "altup.active_idx"},
    {"gemma3n", "altup.num_inputs"},
    {"gemma3n", "attention.shared_kv_layers"},
    {"gemma3n", "attention.sliding_window_pattern"},
    {"gemma3n", "embedding_length_per_layer_input"},
    {"gemma3n", "final_logit_softcapping"},
    {"gemma3n", "rope.freq_base_swa"},
    {"gemma4", "attention.key_length_swa"},
    {"gemma4", "attention.shared_kv_layers"},
    {"gemma4", "attention.sliding_window_pattern"},
    {"gemma4", "attention.value_length_swa"},
    {"gemma4", "embedding_length_per_layer_input"},
    {"gemma4", "expert_count"},
    {"gemma4", "expert_feed_forward_length"},
    {"gemma4", "expert_used_count"},
    {"gemma4", "final_logit_softcapping"},
    {"gemma4", "rope.dimension_count_swa"},
    {"gemma4", "rope.freq_base_swa"},
    {"gpt-oss", "attention.sliding_window_pattern"},
    {"gpt-oss", "expert_count"},
    {"gpt-oss", "expert_feed_forward_length"},
    {"gpt-oss", "expert_used_count"},
    {"granite", "attention.scale"},
    {"granite", "embedding_scale"},
    {"granite", "logit_scale"},
    {"granite", "residual_scale"},
    {"granitemoe", "attention.scale"},
    {"granitemoe", "embedding_scale"},
    {"granitemoe", "expert_count"},
    {"granitemoe", "expert_used_count"},
    {"granitemoe", "logit_scale"},
    {"granitemoe", "residual_scale"},
    {"llama", "expert_count"},
    {"llama", "expert_used_count"},
    {"llama4", "attention.sliding_window_pattern"},
    {"llama4", "expert_count"},
    {"llama4", "expert_feed_forward_length"},
    {"llama4", "expert_used_count"},
    {"llama4", "interleave_moe_layer_step"},
    {"olmo2", "attention.sliding_window_pattern"},
    {"olmo2", "rope.freq_base_swa"},
    {"olmoe", "expert_count"},
    {"olmoe", "expert_used_count"},
    {"qwen2moe", "expert_count"},
    {"qwen2moe", "expert_feed_forward_length"},
    {"qwen2moe", "expert_shared_feed_forward_length"},
    {"qwen2moe", "expert_used_count"},
    {"qwen35", "attention.recurrent_layers"},
    {"qwen35", "full_attention_interval"},
    {"qwen35", "nextn_predict_layers"},
    {"qwen35", "rope.dimension_sections"},
    {"qwen35", "ssm.conv_kernel"},
    {"qwen35", "ssm.group_count"},
    {"qwen35", "ssm.inner_size"},
    {"qwen35", "ssm.state_size"},
    {"qwen35", "ssm.time_step_rank"},
    {"qwen3moe", "expert_count"},
    {"qwen3moe", "expert_feed_forward_length"},
    {"qwen3moe", "expert_used_count"},
    {"qwen3next", "attention.recurrent_layers"},
    {"qwen3next", "expert_count"},
    {"qwen3next", "expert_feed_forward_length"},
    {"qwen3next", "expert_shared_feed_forward_length"},
    {"qwen3next", "expert_used_count"},
    {"qwen3next", "full_attention_interval"},
    {"qwen3next", "nextn_predict_layers"},
    {"qwen3next", "ssm.conv_kernel"},
    {"qwen3next", "ssm.group_count"},
    {"qwen3next", "ssm.inner_size"},
    {"qwen3next", "ssm.state_size"},
    {"qwen3next", "ssm.time_step_rank"},
    // That there is an ffn_norm or none says it, as llama.cpp has it.
    {"stablelm", "use_parallel_residual"},
};

bool isOwn(std::string_view name, std::string_view architecture) {
  return std::ranges::any_of(ownKeys, [&](const OwnKey &own) {
    return own.key == name && own.architecture == architecture;
  });
}

std::optional<double> numberOf(const GgufValue &value) {
  if (std::optional<bool> flag = value.toBool())
    return *flag;
  if (std::optional<int64_t> integer = value.toSigned())
    return static_cast<double>(*integer);
  return value.toFloat();
}

/// Lines that are enough to see that a file is not what it should be.
constexpr size_t kMostOddities = 8;
/// Mistakes of a hand or of a bit.
constexpr size_t kFewEdits = 2;
/// Bytes behind the tensors that are looked at.
constexpr size_t kLookedAt = 1 << 16;

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

/// Whether kFewEdits insertions, deletions and replacements of characters make
/// `b` of `a`, upper case or lower. Their lengths differ by no more than that.
bool isNear(std::string_view a, std::string_view b) {
  constexpr size_t most = kFewEdits, band = 2 * most + 1;
  // edits[k]: from the first i of `a` to the first i + k - most of `b`.
  std::array<size_t, band> edits;
  for (size_t k = 0; k < band; ++k)
    edits[k] = k < most ? most + 1 : k - most;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::array<size_t, band> next;
    for (size_t k = 0; k < band; ++k) {
      next[k] = most + 1;
      if (i + k < most || i + k - most > b.size())
        continue;
      const size_t j = i + k - most;
      if (k + 1 < band)
        next[k] = std::min(next[k], edits[k + 1] + 1);
      if (k > 0)
        next[k] = std::min(next[k], next[k - 1] + 1);
      if (j > 0)
        next[k] =
            std::min(next[k], edits[k] + (lower(a[i - 1]) != lower(b[j - 1])));
    }
    edits = next;
    if (*std::ranges::min_element(edits) > most)
      return false;
  }
  const size_t k = b.size() + most - a.size();
  return edits[k] <= most;
}

/// The key of the architecture that `key` almost is; empty if there is none.
std::string nearestKey(std::string_view key, std::string_view architecture) {
  const std::string prefix = std::string(architecture) + ".";
  // Most keys are of another length.
  auto isMeant = [&](std::string_view name) {
    const size_t size = prefix.size() + name.size();
    return key.size() <= size + kFewEdits && size <= key.size() + kFewEdits &&
           isNear(key, prefix + std::string(name));
  };
  for (std::string_view name : knownKeys)
    if (isMeant(name))
      return prefix + std::string(name);
  for (const NeutralKey &neutral : neutralKeys)
    if (isMeant(neutral.key))
      return prefix + std::string(neutral.key);
  for (const OwnKey &own : ownKeys)
    if (isOwn(own.key, architecture) && isMeant(own.key))
      return prefix + std::string(own.key);
  return "";
}

/// What follows "metadata 'key' is" for a key of the architecture's own that is
/// not known.
std::string unknownText(const std::string &nearest) {
  return "not known; it may change the arithmetic in a way that is not "
         "supported" +
         (nearest.empty() ? "" : "; did you mean " + inQuotes(nearest) + "?");
}

bool isKnown(std::string_view name, std::string_view architecture) {
  return isOwn(name, architecture) ||
         std::ranges::find(knownKeys, name) != std::end(knownKeys) ||
         std::ranges::find(neutralKeys, name, &NeutralKey::key) !=
             std::end(neutralKeys);
}

/// What is odd about the bytes behind the last tensor; empty if nothing is.
std::string describeRest(const Gguf &gguf) {
  const std::span<const std::byte> rest = gguf.rest();
  const bool isPadding =
      std::ranges::all_of(rest.first(std::min(rest.size(), kLookedAt)),
                          [](std::byte byte) { return byte == std::byte(0); });
  if (isPadding || gguf.ownTensors().empty())
    return "";
  return std::to_string(rest.size()) +
         " bytes that are no padding follow the last tensor, " +
         inQuotes(gguf.ownTensors().back().name) +
         ": its type or its shape may be wrong";
}

} // namespace

Status kf::checkGgufKeys(const Gguf &gguf, std::string_view architecture) {
  const std::string prefix = std::string(architecture) + ".";
  for (const GgufEntry &entry : gguf.metadata()) {
    if (!entry.key.starts_with(prefix))
      continue;
    const std::string_view name = entry.key.substr(prefix.size());
    if (isOwn(name, architecture))
      continue;
    if (!isKnown(name, architecture))
      return Status::error("metadata " + inQuotes(entry.key) + " is " +
                           unknownText(nearestKey(entry.key, architecture)));
    const NeutralKey *neutral =
        std::ranges::find(neutralKeys, name, &NeutralKey::key);
    const std::optional<double> number = numberOf(entry.value);
    if (neutral != std::end(neutralKeys) && number != neutral->value)
      return Status::error(
          "metadata " + inQuotes(entry.key) + " is " +
              (number ? spellNumber(*number)
                      : "of type " + std::string(nameOf(entry.value.type()))) +
              ", which changes the arithmetic in a way that is not supported",
          StatusCode::Unsupported);
  }
  return Status();
}

std::vector<std::string> kf::findGgufOddities(const Gguf &gguf,
                                              std::string_view architecture) {
  const std::string prefix = std::string(architecture) + ".";
  std::string behind;
  for (const Gguf *file : gguf.files())
    if (behind.empty())
      behind = describeRest(*file);
  const size_t mostKeys = kMostOddities - (behind.empty() ? 0 : 1);
  std::vector<std::string> lines;
  for (const GgufEntry &entry : gguf.metadata()) {
    const bool own = entry.key.starts_with(prefix);
    if (lines.size() == mostKeys)
      break;
    if (own && isKnown(entry.key.substr(prefix.size()), architecture))
      continue;
    const std::string nearest = nearestKey(entry.key, architecture);
    if (own)
      lines.push_back("metadata " + inQuotes(entry.key) + " is " +
                      unknownText(nearest));
    else if (!nearest.empty())
      lines.push_back("metadata " + inQuotes(entry.key) +
                      " is not read; did you mean " + inQuotes(nearest) + "?");
  }
  if (!behind.empty())
    lines.push_back(behind);
  return lines;
}
