//===- FormatFields.h - What a request's text has to be ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   response_format     OpenAI's: {"type": "text"}, {"type": "json_object"},
//                       {"type": "json_schema", "json_schema": {"schema": {}}};
//                       llama.cpp's "schema" of a json_object
//   json_schema         llama.cpp's: a schema
//   grammar             llama.cpp's: a grammar in GBNF
//   guided_json, guided_grammar, guided_choice, structured_outputs
//                       vLLM's: a schema, a grammar in GBNF, texts of which the
//                       answer is one, and an object of json, grammar, choice
//                       or json_object
//
// A request has one of them at most.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_BATCH_FORMATFIELDS_H
#define KF_RUNTIME_BATCH_FORMATFIELDS_H

#include "runtime/constraint/OutputFormat.h"
#include "runtime/core/Status.h"
#include "runtime/model/ConfigReader.h"

#include <optional>
#include <string_view>

namespace kf {

/// The names of the fields.
inline constexpr std::string_view kFormatFields[] = {
    "response_format", "json_schema",   "grammar",           "guided_json",
    "guided_grammar",  "guided_choice", "structured_outputs"};

/// Reads what the fields say of `reader`'s object, whose text is `object`;
/// nothing if they ask for nothing. Schemas and grammars are not looked into.
Result<std::optional<OutputFormat>> readFormat(const ConfigReader &reader,
                                               std::string_view object);

} // namespace kf

#endif // KF_RUNTIME_BATCH_FORMATFIELDS_H
