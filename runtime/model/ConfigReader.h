//===- ConfigReader.h - Typed fields of a JSON object -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_CONFIGREADER_H
#define KF_RUNTIME_MODEL_CONFIGREADER_H

#include "runtime/core/Status.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace kf {

/// `value` as JSON, cut to what fits in an error's line.
std::string shortDump(const nlohmann::json &value);

/// Reads fields of one JSON object, which must outlive it. `null` counts as
/// absent, as it does in Hugging Face's configurations. An error names the
/// field, its value and what is expected.
class ConfigReader {
public:
  /// `prefix` goes in front of field names in errors: "" or "rope_scaling.".
  explicit ConfigReader(const nlohmann::json &object, std::string prefix = "")
      : object(object), prefix(std::move(prefix)) {}

  /// The field's value; null if it is absent or JSON's null.
  const nlohmann::json *find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key); }
  /// Whether the field is there, as JSON's null.
  bool isNull(std::string_view key) const {
    return object.contains(key) && !find(key);
  }

  /// Which one of `keys` is there; empty: none. More than one is an error.
  Result<std::string_view>
  onlyOneOf(std::initializer_list<std::string_view> keys) const;

  /// Without `fallback`, an absent field is an error.
  Result<int64_t> integer(std::string_view key, int64_t least, int64_t most,
                          std::optional<int64_t> fallback = {}) const;
  /// A finite number, greater than 0 or, with `zero`, not negative.
  Result<double> positive(std::string_view key,
                          std::optional<double> fallback = {},
                          bool zero = false) const;
  /// A number from `least`, or `above` it, to `most`; it has to be there.
  Result<double> number(std::string_view key, double least, double most,
                        bool above = false) const;
  Result<bool> boolean(std::string_view key, bool fallback) const;
  Result<std::string> text(std::string_view key,
                           std::optional<std::string> fallback = {}) const;

  /// "'key' is <its value>", for the start of an error.
  std::string quoted(std::string_view key) const;
  /// "'key' is <its value>, but <expected> is expected".
  Status unexpected(std::string_view key, const std::string &expected) const;

private:
  Status missing(std::string_view key) const;

  const nlohmann::json &object;
  std::string prefix;
};

} // namespace kf

#endif // KF_RUNTIME_MODEL_CONFIGREADER_H
