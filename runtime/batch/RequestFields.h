//===- RequestFields.h - Fields that requests share -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a line of a file of requests and a request to the server have in common:
// prompts, messages, and how tokens are chosen. A field may have several names,
// as other programs call it; errors have the one that was given.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_BATCH_REQUESTFIELDS_H
#define KF_RUNTIME_BATCH_REQUESTFIELDS_H

#include "runtime/core/Status.h"
#include "runtime/engine/PartialSamplerOptions.h"
#include "runtime/model/ConfigReader.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// An error, of type StatusCode::Unsupported, of the field `name`, which is
/// known, and for which there is no code.
Status unsupportedField(const std::string &name, std::string_view advice);

/// The names of one field, its own first.
using FieldNames = std::initializer_list<const char *>;

/// The one of `names` that the object has, the first where it has none. Two of
/// them are an error.
Result<std::string> findName(const ConfigReader &reader, FieldNames names);

/// Reads a number from `least`, or `above` it, to `most`; leaves `out` where
/// there is none.
Status readNumber(const ConfigReader &reader, FieldNames names, double least,
                  double most, std::optional<double> &out, bool above = false);
/// Reads an integer from `least` to `most`; leaves `out` where there is none.
Status readInteger(const ConfigReader &reader, FieldNames names, int64_t least,
                   int64_t most, std::optional<int64_t> &out);

/// A token's id; nothing for any other value.
std::optional<int32_t> toTokenId(const nlohmann::json &value);
/// The field `key`, which is there: token ids, at least one.
Result<std::vector<int32_t>> readIds(const ConfigReader &reader,
                                     std::string_view key);

/// The content of a message, `name`, whose fields `reader` has: a text, or
/// OpenAI's array of parts that are texts.
Result<std::string> readContent(const ConfigReader &reader,
                                const std::string &name);

/// Reads temp (temperature), top_k, top_p, min_p, seed, repeat_penalty
/// (repetition_penalty), presence_penalty, frequency_penalty, repeat_last_n and
/// logit_bias, each in the range of its option.
Status readSampling(const ConfigReader &reader, PartialSamplerOptions &out);

/// Reads model, a name; empty: there is none. Error: an empty one.
Result<std::string> readModelName(const ConfigReader &reader);

/// Reads stop, a text or an array of texts, none of them empty.
Status readStops(const ConfigReader &reader,
                 std::optional<std::vector<std::string>> &out);

} // namespace kf

#endif // KF_RUNTIME_BATCH_REQUESTFIELDS_H
