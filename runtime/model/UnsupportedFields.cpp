//===- UnsupportedFields.cpp - Fields that must have no effect ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/UnsupportedFields.h"

#include "runtime/model/QuantizationField.h"

#include <algorithm>
#include <string_view>

using namespace kf;
using nlohmann::json;

namespace {

struct UnsupportedField {
  const char *name;
  NeutralValue neutral;
};

constexpr UnsupportedField unsupportedFields[] = {
    {"add_cross_attention", NeutralValue::Off},
    {"alibi", NeutralValue::Off},
    {"altup_num_inputs", NeutralValue::Off},
    {"attention_bias", NeutralValue::Off},
    {"attention_chunk_size", NeutralValue::Off},
    {"attention_k_eq_v", NeutralValue::Off},
    {"attention_multiplier", NeutralValue::One},
    {"attn_logit_softcapping", NeutralValue::Off},
    {"attn_temperature_tuning", NeutralValue::Off},
    {"clip_qkv", NeutralValue::Off},
    {"compression_config", NeutralValue::Off},
    {"embedding_multiplier", NeutralValue::One},
    {"enable_moe_block", NeutralValue::Off},
    {"final_logit_softcapping", NeutralValue::Off},
    {"full_attention_interval", NeutralValue::Off},
    {"global_head_dim", NeutralValue::Off},
    {"hidden_size_per_layer_input", NeutralValue::Off},
    {"is_causal", NeutralValue::True},
    {"is_encoder_decoder", NeutralValue::Off},
    {"kv_lora_rank", NeutralValue::Off},
    {"laurel_rank", NeutralValue::Off},
    {"layer_switch", NeutralValue::Off},
    {"layernorm_type", NeutralValue::Off},
    {"linear_num_key_heads", NeutralValue::Off},
    {"linear_num_value_heads", NeutralValue::Off},
    {"lm_head_bias", NeutralValue::Off},
    {"logit_scale", NeutralValue::One},
    {"logits_scaling", NeutralValue::One},
    {"mlp_bias", NeutralValue::Off},
    {"moe_intermediate_size", NeutralValue::Off},
    {"n_routed_experts", NeutralValue::Off},
    {"n_shared_experts", NeutralValue::Off},
    {"no_rope_layer_interval", NeutralValue::Off},
    {"no_rope_layers", NeutralValue::Off},
    {"num_experts", NeutralValue::Off},
    {"num_experts_per_tok", NeutralValue::Off},
    {"num_global_key_value_heads", NeutralValue::Off},
    {"num_kv_shared_layers", NeutralValue::Off},
    {"num_local_experts", NeutralValue::Off},
    {"order_of_interleaved_layers", NeutralValue::Off},
    {"parallel_attn", NeutralValue::Off},
    {"partial_rotary_factor", NeutralValue::One},
    {"per_layer_config", NeutralValue::Off},
    {"position_embedding_type", NeutralValue::Off},
    {"pretraining_tp", NeutralValue::One},
    {"pruned_heads", NeutralValue::Off},
    {"qk_layernorm", NeutralValue::Off},
    {"qk_norm", NeutralValue::Off},
    {"query_pre_attn_scalar", NeutralValue::Off},
    {"reorder_and_upcast_attn", NeutralValue::Off},
    {"residual_multiplier", NeutralValue::One},
    {"rope_interleaved", NeutralValue::Off},
    {"rotary_pct", NeutralValue::One},
    {"scale_attn_by_inverse_layer_idx", NeutralValue::Off},
    {"scale_depth", NeutralValue::Off},
    {"scale_emb", NeutralValue::One},
    {"shared_expert_intermediate_size", NeutralValue::Off},
    {"shared_intermediate_size", NeutralValue::Off},
    {"sliding_window", NeutralValue::Off},
    {"text_config", NeutralValue::Off},
    {"use_bidirectional_attention", NeutralValue::Off},
    {"use_double_wide_mlp", NeutralValue::Off},
    {"use_parallel_block", NeutralValue::Off},
    {"use_parallel_residual", NeutralValue::Off},
    {"use_qk_norm", NeutralValue::Off},
    {"vision_config", NeutralValue::Off},
};

constexpr const char *rotaryFields[] = {"rope_scaling", "rope_parameters",
                                        "rope_theta"};

bool isNeutral(const json &value, NeutralValue neutral) {
  if (neutral == NeutralValue::One)
    return value.is_number() && value.get<double>() == 1;
  if (neutral == NeutralValue::True)
    return value.is_boolean() && value.get<bool>();
  if (value.is_boolean())
    return !value.get<bool>();
  if (value.is_number())
    return value.get<double>() == 0;
  return value.is_string() ? value.get_ref<const std::string &>().empty()
                           : value.empty();
}

} // namespace

Status kf::checkNeutral(const ConfigReader &reader, const char *name,
                        NeutralValue neutral) {
  const json *value = reader.find(name);
  if (!value || isNeutral(*value, neutral))
    return Status();
  return Status::error(reader.quoted(name) +
                       ", which changes the arithmetic in a way that is not "
                       "supported");
}

Status kf::checkUnsupportedFields(const ConfigReader &reader,
                                  const Family &family) {
  for (const StatedField &field : family.states)
    if (const json *value = reader.find(field.name);
        value && *value != json::parse(field.value))
      return reader.unexpected(field.name, field.value);
  auto isKnown = [&](std::string_view name) {
    return std::ranges::find(family.reads, name) != family.reads.end() ||
           std::ranges::find(family.states, name, &StatedField::name) !=
               family.states.end();
  };
  for (const UnsupportedField &field : unsupportedFields)
    if (!isKnown(field.name))
      KF_RETURN_IF_ERROR(checkNeutral(reader, field.name, field.neutral));
  KF_RETURN_IF_ERROR(checkQuantization(reader));
  if (family.turned == TurnedLayers::None)
    for (const char *name : rotaryFields)
      KF_RETURN_IF_ERROR(checkNeutral(reader, name, NeutralValue::Off));
  return Status();
}
