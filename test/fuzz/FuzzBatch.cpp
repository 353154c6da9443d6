//===- FuzzBatch.cpp - A file of requests ---------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/BatchFile.h"
#include "runtime/batch/OpenAiBatch.h"

#include <algorithm>
#include <cstdlib>

using namespace kf;

/// Whether what is accepted can be run.
static bool isSound(const BatchRequest &request) {
  if (request.prompt.has_value() + request.ids.has_value() +
          request.messages.has_value() !=
      1)
    return false;
  if (request.ids &&
      (request.ids->empty() ||
       std::ranges::any_of(*request.ids, [](int32_t id) { return id < 0; })))
    return false;
  if (request.messages && request.messages->empty())
    return false;
  if (request.stops && std::ranges::any_of(*request.stops, &std::string::empty))
    return false;
  return request.tokens.value_or(-1) >= -1 &&
         request.sampling.complete().validate().ok();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  BatchReader reader(text);
  size_t before = 0;
  while (std::optional<Result<BatchRequest>> request = reader.next()) {
    if (reader.line() <= before)
      std::abort();
    before = reader.line();
    if (request->ok() ? !isSound(**request)
                      : !request->message().starts_with(
                            "line " + std::to_string(before) + ": "))
      std::abort();
  }
  BatchReader lines(text);
  while (const std::optional<std::string_view> line = lines.nextLine()) {
    const Result<OpenAiRequest> request = parseOpenAiRequest(*line);
    if (request.ok() &&
        (!request->body.starts_with('{') || !request->body.ends_with('}')))
      std::abort();
  }
  return 0;
}
