//===- ConfigReader.cpp - Typed fields of a JSON object -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ConfigReader.h"

#include "runtime/core/Quote.h"

#include <cmath>

using namespace kf;
using nlohmann::json;

std::string kf::shortDump(const json &value) {
  constexpr size_t limit = 60;
  // dump() escapes control characters; invalid UTF-8 is replaced.
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() > limit ? text.substr(0, limit) + "..." : text;
}

const json *ConfigReader::find(std::string_view key) const {
  auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

Result<std::string_view>
ConfigReader::onlyOneOf(std::initializer_list<std::string_view> keys) const {
  std::string_view found;
  for (std::string_view key : keys) {
    if (!contains(key))
      continue;
    if (!found.empty())
      return Status::error("'" + std::string(found) + "' and '" +
                           std::string(key) + "' exclude each other");
    found = key;
  }
  return found;
}

std::string ConfigReader::quoted(std::string_view key) const {
  const json *value = find(key);
  return inQuotes(prefix + std::string(key)) + " is " +
         (value ? shortDump(*value) : "null");
}

Status ConfigReader::unexpected(std::string_view key,
                                const std::string &expected) const {
  return Status::error(quoted(key) + ", but " + expected + " is expected");
}

Status ConfigReader::missing(std::string_view key) const {
  return Status::error(inQuotes(prefix + std::string(key)) + " is missing");
}

Result<int64_t> ConfigReader::integer(std::string_view key, int64_t least,
                                      int64_t most,
                                      std::optional<int64_t> fallback) const {
  const json *value = find(key);
  if (!value && fallback)
    return *fallback;
  if (!value)
    return missing(key);
  bool fits = value->is_number_unsigned()
                  ? value->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                  : value->is_number_integer();
  if (!fits || value->get<int64_t>() < least || value->get<int64_t>() > most)
    return unexpected(key, "an integer from " + std::to_string(least) + " to " +
                               std::to_string(most));
  return value->get<int64_t>();
}

Result<double> ConfigReader::positive(std::string_view key,
                                      std::optional<double> fallback,
                                      bool zero) const {
  const json *value = find(key);
  if (!value && fallback)
    return *fallback;
  if (!value)
    return missing(key);
  double number = value->is_number() ? value->get<double>() : NAN;
  if (!std::isfinite(number) || number < 0 || (number == 0 && !zero))
    return unexpected(key, zero ? "a number that is not negative"
                                : "a positive number");
  return number;
}

Result<double> ConfigReader::number(std::string_view key, double least,
                                    double most, bool above) const {
  const json *value = find(key);
  if (!value)
    return missing(key);
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (number >= least && number <= most && !(above && number == least))
    return number;
  return unexpected(key, std::string("a number ") +
                             (above ? "above " : "from ") + spellNumber(least) +
                             (above ? " and at most " : " to ") +
                             spellNumber(most));
}

Result<bool> ConfigReader::boolean(std::string_view key, bool fallback) const {
  const json *value = find(key);
  if (!value)
    return fallback;
  if (!value->is_boolean())
    return unexpected(key, "true or false");
  return value->get<bool>();
}

Result<std::string>
ConfigReader::text(std::string_view key,
                   std::optional<std::string> fallback) const {
  const json *value = find(key);
  if (!value && fallback)
    return *fallback;
  if (!value)
    return missing(key);
  if (!value->is_string())
    return unexpected(key, "a string");
  return value->get<std::string>();
}
