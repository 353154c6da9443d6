//===- TensorTypes.cpp - Which tensor gets which type ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/TensorTypes.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

using namespace kf;

namespace {

using enum DataType;

/// A tensor of a layer: "blk.<layer>.<part>.weight".
struct LayerPart {
  int64_t layer = -1; ///< -1: it is of no layer
  std::string_view part;
};

LayerPart partOf(std::string_view name) {
  constexpr std::string_view prefix = "blk.", suffix = ".weight";
  if (!name.starts_with(prefix) || !name.ends_with(suffix))
    return {};
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  LayerPart result;
  const auto [end, code] =
      std::from_chars(name.data(), name.data() + name.size(), result.layer);
  const size_t digits = static_cast<size_t>(end - name.data());
  if (code != std::errc() || result.layer < 0 ||
      !name.substr(digits).starts_with('.'))
    return {};
  result.part = name.substr(digits + 1);
  return result;
}

/// Whether it is a matrix of experts: "ffn_gate_exps", or in older files, with
/// each of them apart, "ffn_gate.<expert>".
bool isOfExperts(std::string_view part) {
  const size_t dot = part.rfind('.');
  return part.ends_with("_exps") ||
         (part.starts_with("ffn_") && dot != part.npos &&
          std::ranges::all_of(part.substr(dot + 1),
                              [](char c) { return '0' <= c && c <= '9'; }));
}

/// How many experts Mixtral has, which llama.cpp has a rule for.
constexpr int64_t kFewExperts = 8;

DataType typeByRule(const TypeRule &rule, std::string_view name) {
  const DataType type = rule.type;
  // As llama.cpp's MXFP4_MOE: what all rows go through is worth more bits.
  if (type == MXFP4 && rule.experts > 0)
    return isOfExperts(partOf(name).part) ? MXFP4 : Q8_0;
  if (name == "output.weight" || (rule.tied && name == "token_embd.weight"))
    return type == Q8_0 ? Q8_0 : Q6_K;
  const auto [layer, part] = partOf(name);
  if (layer < 0)
    return type;
  const int64_t eighth = rule.layers / 8;
  const bool more = layer < eighth || layer >= 7 * rule.layers / 8 ||
                    (layer - eighth) % 3 == 2;
  const bool shared = rule.queriesPerKey >= 4;
  const bool value = part == "attn_v", down = part.starts_with("ffn_down");
  // Few matrices beside experts are worth more bits.
  if (rule.experts == kFewExperts) {
    if (value || part == "attn_k")
      return Q8_0;
    if (part == "attn_output" &&
        (type == Q2_K || type == Q3_K || type == Q4_K || type == IQ4_NL ||
         type == IQ4_XS))
      return Q5_K;
  }
  switch (type) {
  case Q2_K:
    return value && shared                          ? Q4_K
           : value || down || part == "attn_output" ? Q3_K
                                                    : Q2_K;
  case Q3_K:
    if (value)
      return layer < 2 ? Q5_K : Q4_K;
    if (down)
      return layer < rule.layers / 16 ? Q5_K : Q4_K;
    return part == "attn_output" || part == "attn_qkv" ? Q4_K : Q3_K;
  case Q4_K:
    return (value || down) && more ? Q6_K : part == "attn_qkv" ? Q5_K : Q4_K;
  case Q5_K:
    return ((value || down) && more) || part == "attn_qkv" ? Q6_K : Q5_K;
  case IQ4_NL:
  case IQ4_XS:
    return (value && shared) || (down && layer < eighth) ? Q5_K : type;
  default:
    return type;
  }
}

DataType fallbackOf(DataType type) {
  switch (type) {
  case Q2_K:
  case Q3_K:
  case IQ4_XS:
    return IQ4_NL;
  case Q4_K:
    return Q5_0;
  case Q5_K:
    return Q5_1;
  case Q6_K:
    return Q8_0;
  default:
    return F16;
  }
}

constexpr DataType kWeightTypes[] = {F32,  F16,  BF16,   F8E4M3, Q8_0,  Q4_0,
                                     Q4_1, Q5_0, Q5_1,   Q2_K,   Q3_K,  Q4_K,
                                     Q5_K, Q6_K, IQ4_NL, MXFP4,  IQ4_XS};

/// What a type is called on command lines.
std::string_view givenName(DataType type) {
  return type == F8E4M3 ? "f8_e4m3" : nameOf(type);
}

struct MixName {
  std::string_view name;
  DataType type;
};
/// llama.cpp's names of the mixes that files have here.
constexpr MixName kMixNames[] = {
    {"q3_k_m", Q3_K}, {"q4_k_m", Q4_K}, {"q5_k_m", Q5_K}};
/// Those that they do not have.
constexpr std::string_view kOtherMixes[] = {"q2_k_s", "q3_k_s", "q3_k_l",
                                            "q4_k_s", "q5_k_s"};

std::string lowerCase(std::string_view name) {
  std::string lower(name);
  for (char &c : lower)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

/// One of kWeightTypes that `isPossible`.
Result<DataType> parseOneOf(bool (*isPossible)(DataType),
                            std::string_view name) {
  const std::string lower = lowerCase(name);
  for (const MixName &mix : kMixNames)
    if (mix.name == lower)
      return mix.type;
  std::string known;
  for (const DataType type : kWeightTypes) {
    if (!isPossible(type))
      continue;
    if (givenName(type) == lower)
      return type;
    known += (known.empty() ? "" : ", ") + std::string(givenName(type));
  }
  if (std::ranges::find(kOtherMixes, lower) != std::end(kOtherMixes))
    return Status::error("there is no mix " + inQuotes(name) + "; " +
                         lower.substr(0, 4) + " is the one of its kind");
  return Status::error("there is no type " + inQuotes(name) + "; there are " +
                       known);
}

} // namespace

bool kf::isFileType(DataType type) { return isFloat(type) || isBlock(type); }

bool kf::isMixName(std::string_view name) {
  const std::string lower = lowerCase(name);
  return std::ranges::find(kMixNames, lower, &MixName::name) !=
         std::end(kMixNames);
}

Result<DataType> kf::parseFileType(std::string_view name) {
  return parseOneOf(isFileType, name);
}

std::span<const DataType> kf::weightTypes() { return kWeightTypes; }

Result<DataType> kf::parseWeightType(std::string_view name) {
  return parseOneOf([](DataType) { return true; }, name);
}

ChosenType kf::chooseType(const TypeRule &rule, std::string_view name,
                          std::span<const int64_t> shape) {
  if (shape.size() < 2 || !name.ends_with(".weight") ||
      name == "position_embd.weight" ||
      partOf(name).part.starts_with("ffn_gate_inp") ||
      partOf(name).part == "ssm_conv1d" ||
      partOf(name).part == "altup_correct_coef" ||
      partOf(name).part == "altup_predict_coef")
    return {F32, F32};
  if (!isBlock(rule.type))
    return {rule.type, rule.type};
  ChosenType chosen;
  chosen.wanted = chosen.type = typeByRule(rule, name);
  while (shape.back() % elementsPerBlock(chosen.type) != 0)
    chosen.type = fallbackOf(chosen.type);
  return chosen;
}

uint32_t kf::fileTypeNumber(DataType type) {
  switch (type) {
  case F16:
    return 1;
  case Q4_0:
    return 2;
  case Q4_1:
    return 3;
  case Q8_0:
    return 7;
  case Q5_0:
    return 8;
  case Q5_1:
    return 9;
  case Q2_K:
    return 10;
  case Q3_K: // _M
    return 12;
  case Q4_K: // _M
    return 15;
  case Q5_K: // _M
    return 17;
  case Q6_K:
    return 18;
  case IQ4_NL:
    return 25;
  case IQ4_XS:
    return 30;
  case BF16:
    return 32;
  case MXFP4: // _MOE
    return 38;
  default: // f32
    return 0;
  }
}
