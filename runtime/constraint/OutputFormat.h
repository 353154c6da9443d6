//===- OutputFormat.h - What a text is asked to be --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONSTRAINT_OUTPUTFORMAT_H
#define KF_RUNTIME_CONSTRAINT_OUTPUTFORMAT_H

#include <string>
#include <utility>
#include <vector>

namespace kf {

/// What a generated text has to be, as a request or an option says it.
struct OutputFormat {
  enum class Kind {
    JsonSchema, ///< a value that the schema `text` allows
    Gbnf        ///< a text of the grammar `text`
  };
  Kind kind = Kind::JsonSchema;
  std::string text;
  /// What stands right before and behind that.
  std::string before = {}, after = {};
  /// As JsonOptions::documents.
  std::vector<std::string> documents = {};
  /// What the request calls it, for errors: "'response_format'".
  std::string name = {};

  /// Any JSON object.
  static OutputFormat jsonObject(std::string name) {
    return {.text = R"({"type": "object"})", .name = std::move(name)};
  }
};

} // namespace kf

#endif // KF_RUNTIME_CONSTRAINT_OUTPUTFORMAT_H
