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

/// Reads the fields of one Source.
template <typename Source> class Reader {
public:
  Reader(const Source &source, std::vector<std::string> &warnings)
      : source(source), warnings(warnings) {}

  SamplingDefaults read(const Keys &keys, std::optional<bool> draws) {
    constexpr double most = 1e6;
    constexpr int64_t mostTokens = 1 << 24;
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
  return Reader(reader, warnings).read(jsonKeys, draws);
}

SamplingDefaults kf::readSamplingDefaults(const Gguf &gguf,
                                          std::vector<std::string> &warnings) {
  return Reader(gguf, warnings).read(ggufKeys, std::nullopt);
}
