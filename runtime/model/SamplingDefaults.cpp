//===- SamplingDefaults.cpp - How a model wants to be sampled -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/SamplingDefaults.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <cmath>

using namespace kf;

namespace {

constexpr int64_t mostTokens = 1 << 24;

/// The fields' names where they come from.
struct Keys {
  const char *temperature, *topK, *topP, *minP, *repetitionPenalty,
      *penaltyWindow; ///< null: there is no such field
};

constexpr Keys jsonKeys = {"temperature",        "top_k", "top_p", "min_p",
                           "repetition_penalty", nullptr};
constexpr Keys ggufKeys = {
    kGgufTemperature,       kGgufTopK,         kGgufTopP, kGgufMinP,
    kGgufRepetitionPenalty, kGgufPenaltyWindow};

/// A field's number, NaN if it is none, and nothing if there is no field; what
/// it is, for a warning.
struct Field {
  std::optional<double> value;
  std::string text;
};

Field lookUp(const ConfigReader &reader, const char *key) {
  const nlohmann::json *value = reader.find(key);
  if (!value)
    return {};
  return {value->is_number() ? value->get<double>() : NAN, reader.quoted(key)};
}

Field lookUp(const Gguf &gguf, const char *key) {
  const GgufValue *value = gguf.lookUp(key);
  if (!value)
    return {};
  std::optional<double> number = value->toFloat();
  if (std::optional<int64_t> integer = value->toSigned())
    number = static_cast<double>(*integer);
  return {number.value_or(NAN),
          "metadata " + inQuotes(key) + " is " +
              (number ? spellNumber(*number)
                      : "of the type " + std::string(nameOf(value->type())))};
}

/// A field that recommends what no option does.
struct Unsupported {
  const char *key;
  double off; ///< the number that asks for nothing
  /// What does the same if a user asks for it; empty: nothing.
  const char *instead = "";
};

/// Of generation_config.json, in the words of Hugging Face and of those who add
/// the samplers of others to it. Fields that only say how these work are left
/// out, such as mirostat_tau.
constexpr Unsupported unsupportedFields[] = {
    {"typical_p", 1},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"penalty_alpha", 0},
    {"xtc_probability", 0},
    {"mirostat", 0},
    {"mirostat_mode", 0},
    {"dry_multiplier", 0},
    {"guidance_scale", 1},
    {"num_beams", 1},
    {"num_beam_groups", 1},
    {"diversity_penalty", 0},
    {"presence_penalty", 0, "--presence-penalty does it"},
    {"frequency_penalty", 0, "--frequency-penalty does it"},
    {"encoder_repetition_penalty", 1},
    {"exponential_decay_length_penalty", 0},
    {"no_repeat_ngram_size", 0},
    {"encoder_no_repeat_ngram_size", 0},
    {"min_length", 0},
    {"min_new_tokens", 0},
    {"suppress_tokens", 0, "--logit-bias ID-inf leaves out a token"},
    {"begin_suppress_tokens", 0},
    {"bad_words_ids", 0},
    {"force_words_ids", 0},
    {"forced_decoder_ids", 0},
    {"forced_bos_token_id", NAN},
    {"forced_eos_token_id", NAN},
    {"sequence_bias", 0, "--logit-bias is for single tokens"},
    {"stop_strings", 0, "--stop does it"},
    {"watermarking_config", 0},
    {"dola_layers", NAN},
};

/// Whether `value` asks for nothing.
bool isOff(const nlohmann::json &value, double off) {
  if (value.is_number())
    return value.get<double>() == off;
  if (value.is_boolean())
    return !value.get<bool>();
  if (value.is_string())
    return value.get_ref<const std::string &>().empty();
  return value.empty();
}

/// Of a GGUF file: all that is called general.sampling.* and not read above is
/// a recommendation; these ask for nothing, or say how others work.
constexpr std::string_view ggufSampling = "general.sampling.";
constexpr Unsupported ggufOffs[] = {{"general.sampling.xtc_probability", 0},
                                    {"general.sampling.mirostat", 0}};
constexpr std::string_view ggufDetails[] = {"general.sampling.xtc_threshold",
                                            "general.sampling.mirostat_tau",
                                            "general.sampling.mirostat_eta"};

std::string notUsed(const std::string &field, const char *instead = "") {
  return field + ", which is not supported; it is not used" +
         (*instead ? "; " + std::string(instead) : "");
}

/// Reads the fields of one Source.
template <typename Source> class Reader {
public:
  Reader(const Source &source, std::vector<std::string> &warnings)
      : source(source), warnings(warnings) {}

  SamplingDefaults read(const Keys &keys, std::optional<bool> draws) {
    constexpr double most = 1e6;
    SamplingDefaults result;
    result.temperature = number(keys.temperature, 0, most);
    result.topK = integer(keys.topK, -1, mostTokens);
    // None of them is left out.
    if (result.topK)
      result.topK = std::max<int64_t>(*result.topK, 0);
    result.topP = number(keys.topP, 0, 1, /*above=*/true);
    result.minP = number(keys.minP, 0, 1);
    result.repetitionPenalty =
        number(keys.repetitionPenalty, 0, most, /*above=*/true);
    if (keys.penaltyWindow)
      result.penaltyWindow = integer(keys.penaltyWindow, -1, mostTokens);

    const bool says =
        result.temperature || result.topK || result.topP || result.minP;
    if (!draws.value_or(says))
      result.temperature.reset();
    else if (!result.temperature)
      result.temperature = 1;
    return result;
  }

  std::optional<int64_t> integer(const char *key, int64_t least, int64_t most) {
    const Field field = lookUp(source, key);
    if (!field.value)
      return std::nullopt;
    const double value = *field.value;
    if (value >= static_cast<double>(least) &&
        value <= static_cast<double>(most) && value == std::floor(value))
      return static_cast<int64_t>(value);
    warn(field, "an integer from " + std::to_string(least) + " to " +
                    std::to_string(most));
    return std::nullopt;
  }

private:
  /// From `least` (or `above` it) to `most`.
  std::optional<double> number(const char *key, double least, double most,
                               bool above = false) {
    const Field field = lookUp(source, key);
    if (!field.value)
      return std::nullopt;
    const double value = *field.value;
    if (value >= least && value <= most && !(above && value == least))
      return value;
    warn(field, std::string("a number ") + (above ? "above " : "from ") +
                    spellNumber(least) + (above ? " and at most " : " to ") +
                    spellNumber(most));
    return std::nullopt;
  }

  void warn(const Field &field, const std::string &expected) {
    warnings.push_back(field.text + ", but " + expected +
                       " is expected; it is not used");
  }

  const Source &source;
  std::vector<std::string> &warnings;
};

} // namespace

SamplingDefaults kf::readSamplingDefaults(const ConfigReader &reader,
                                          std::vector<std::string> &warnings) {
  std::optional<bool> draws;
  if (reader.contains("do_sample")) {
    Result<bool> value = reader.boolean("do_sample", false);
    if (value.ok())
      draws = *value;
    else
      warnings.push_back(value.message() + "; it is not used");
  }
  Reader fields(reader, warnings);
  SamplingDefaults result = fields.read(jsonKeys, draws);
  result.maxNewTokens = fields.integer("max_new_tokens", 1, mostTokens);
  for (const Unsupported &field : unsupportedFields)
    if (const nlohmann::json *value = reader.find(field.key);
        value && !isOff(*value, field.off))
      warnings.push_back(notUsed(reader.quoted(field.key), field.instead));
  return result;
}

/// Whether `key` recommends what readSamplingDefaults() drops.
static bool isUnsupported(const Gguf &gguf, std::string_view key) {
  if (!key.starts_with(ggufSampling) || std::ranges::count(ggufDetails, key))
    return false;
  for (const char *known :
       {ggufKeys.temperature, ggufKeys.topK, ggufKeys.topP, ggufKeys.minP,
        ggufKeys.repetitionPenalty, ggufKeys.penaltyWindow})
    if (key == known)
      return false;
  for (const Unsupported &field : ggufOffs)
    if (key == field.key)
      return lookUp(gguf, field.key).value != field.off;
  return true;
}

SamplingDefaults kf::readSamplingDefaults(const Gguf &gguf,
                                          std::vector<std::string> &warnings) {
  for (const GgufEntry &entry : gguf.metadata())
    if (isUnsupported(gguf, entry.key)) {
      const std::optional<std::string_view> text = entry.value.toString();
      warnings.push_back(notUsed(
          text ? "metadata " + inQuotes(entry.key) + " is " + inQuotes(*text)
               : lookUp(gguf, std::string(entry.key).c_str()).text));
    }
  return Reader(gguf, warnings).read(ggufKeys, std::nullopt);
}
