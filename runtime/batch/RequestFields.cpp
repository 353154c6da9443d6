//===- RequestFields.cpp - Fields that requests share ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/RequestFields.h"

#include "runtime/core/Quote.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <span>

using namespace kf;
using nlohmann::json;

Status kf::unsupportedField(const std::string &name, std::string_view advice) {
  return Status::error("'" + name +
                           "' is not supported: " + std::string(advice),
                       StatusCode::Unsupported);
}

Result<std::string> kf::findName(const ConfigReader &reader, FieldNames names) {
  const char *found = nullptr;
  for (const char *name : names) {
    if (!reader.contains(name))
      continue;
    if (found)
      return Status::error("'" + std::string(found) + "' and '" + name +
                           "' are the same here: give one");
    found = name;
  }
  return std::string(found ? found : *names.begin());
}

Status kf::readNumber(const ConfigReader &reader, FieldNames names,
                      double least, double most, std::optional<double> &out,
                      bool above) {
  KF_ASSIGN_OR_RETURN(const std::string name, findName(reader, names));
  if (reader.contains(name)) {
    KF_ASSIGN_OR_RETURN(out, reader.number(name, least, most, above));
  }
  return Status();
}

Status kf::readInteger(const ConfigReader &reader, FieldNames names,
                       int64_t least, int64_t most,
                       std::optional<int64_t> &out) {
  KF_ASSIGN_OR_RETURN(const std::string name, findName(reader, names));
  if (reader.contains(name)) {
    KF_ASSIGN_OR_RETURN(out, reader.integer(name, least, most));
  }
  return Status();
}

std::optional<int32_t> kf::toTokenId(const json &value) {
  // Every number without a sign is one of these, even where it fits an int64_t.
  if (!value.is_number_unsigned() ||
      value.get<uint64_t>() > std::numeric_limits<int32_t>::max())
    return std::nullopt;
  return value.get<int32_t>();
}

Result<std::vector<int32_t>> kf::readIds(const ConfigReader &reader,
                                         std::string_view key) {
  const json *value = reader.find(key);
  std::vector<int32_t> ids;
  bool sound = value->is_array() && !value->empty();
  for (size_t i = 0; sound && i < value->size(); ++i) {
    std::optional<int32_t> id = toTokenId((*value)[i]);
    sound = id.has_value();
    ids.push_back(id.value_or(0));
  }
  if (!sound)
    return reader.unexpected(key, "an array of token ids, at least one,");
  return ids;
}

Result<std::string> kf::readContent(const ConfigReader &reader,
                                    const std::string &name) {
  const json *value = reader.find("content");
  if (!value || !value->is_array())
    return reader.text("content");
  std::string content;
  for (const json &part : *value) {
    const ConfigReader fields(part, name + ".content[].");
    if (!part.is_object())
      return reader.unexpected("content", "a text, or an array of objects,");
    KF_ASSIGN_OR_RETURN(const std::string type, fields.text("type"));
    if (type != "text")
      return Status::error("'" + name + ".content' has a part of type " +
                           inQuotes(type) +
                           "; prompts are text alone, without images and "
                           "audio");
    KF_ASSIGN_OR_RETURN(const std::string text, fields.text("text"));
    content += text;
  }
  return content;
}

namespace {

/// A token's id from an object's key.
std::optional<int32_t> parseId(std::string_view text) {
  int32_t id = 0;
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), id);
  if (code != std::errc() || end != text.data() + text.size() || id < 0)
    return std::nullopt;
  return id;
}

/// What is added to a logit; nothing for any other value.
std::optional<double> toBias(const json &value) {
  if (value.is_boolean() && !value.get<bool>())
    return -std::numeric_limits<double>::infinity();
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    return std::nullopt;
  return value.get<double>();
}

Status readSeed(const ConfigReader &reader, std::optional<uint64_t> &out) {
  const json *value = reader.find("seed");
  if (!value)
    return Status();
  if (!value->is_number_unsigned())
    return reader.unexpected("seed",
                             "an integer from 0 to 18446744073709551615");
  out = value->get<uint64_t>();
  return Status();
}

Status readLogitBias(const ConfigReader &reader,
                     std::optional<std::vector<LogitBias>> &out) {
  const json *value = reader.find("logit_bias");
  if (!value)
    return Status();
  out.emplace();
  bool sound = value->is_object() || value->is_array();
  auto add = [&](std::optional<int32_t> id, std::optional<double> bias) {
    sound = sound && id && bias;
    if (sound)
      out->push_back({*id, *bias});
  };
  if (value->is_object())
    for (const auto &[key, bias] : value->items())
      add(parseId(key), toBias(bias));
  if (value->is_array())
    for (const json &pair : *value) {
      const bool isPair = pair.is_array() && pair.size() == 2;
      add(isPair ? toTokenId(pair[0]) : std::nullopt,
          isPair ? toBias(pair[1]) : std::nullopt);
    }
  if (!sound)
    return reader.unexpected("logit_bias",
                             "an object from token ids to numbers, or an array "
                             "of such pairs,");
  return Status();
}

} // namespace

Status kf::readSampling(const ConfigReader &reader,
                        PartialSamplerOptions &out) {
  constexpr double most = kMostTemperature, penalty = kMostPenalty;
  KF_RETURN_IF_ERROR(
      readNumber(reader, {"temp", "temperature"}, 0, most, out.temperature));
  KF_RETURN_IF_ERROR(readInteger(reader, {"top_k"}, 0, kMostTokens, out.topK));
  KF_RETURN_IF_ERROR(
      readNumber(reader, {"top_p"}, 0, 1, out.topP, /*above=*/true));
  KF_RETURN_IF_ERROR(readNumber(reader, {"min_p"}, 0, 1, out.minP));
  KF_RETURN_IF_ERROR(readSeed(reader, out.seed));
  KF_RETURN_IF_ERROR(
      readNumber(reader, {"repeat_penalty", "repetition_penalty"}, 0, penalty,
                 out.repetitionPenalty, /*above=*/true));
  KF_RETURN_IF_ERROR(readNumber(reader, {"presence_penalty"}, -penalty, penalty,
                                out.presencePenalty));
  KF_RETURN_IF_ERROR(readNumber(reader, {"frequency_penalty"}, -penalty,
                                penalty, out.frequencyPenalty));
  KF_RETURN_IF_ERROR(readInteger(reader, {"repeat_last_n"}, -1, kMostTokens,
                                 out.penaltyWindow));
  return readLogitBias(reader, out.logitBias);
}

Result<std::string> kf::readModelName(const ConfigReader &reader) {
  KF_ASSIGN_OR_RETURN(std::string name, reader.text("model", ""));
  if (name.empty() && reader.contains("model"))
    return Status::error("'model' is empty; name the model or an adapter, or "
                         "leave it out");
  return name;
}

Status kf::readStops(const ConfigReader &reader,
                     std::optional<std::vector<std::string>> &out) {
  const json *value = reader.find("stop");
  if (!value)
    return Status();
  std::span<const json> list(value, 1);
  if (value->is_array())
    list = value->get_ref<const json::array_t &>();
  out.emplace();
  for (const json &stop : list) {
    if (!stop.is_string() || stop.get_ref<const std::string &>().empty())
      return reader.unexpected("stop", "a text that is not empty, or an array "
                                       "of such texts,");
    out->push_back(stop.get<std::string>());
  }
  return Status();
}
