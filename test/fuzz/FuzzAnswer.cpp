//===- FuzzAnswer.cpp - What a server of OpenAI's API answers -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/AnswerReader.h"
#include "runtime/client/RequestFile.h"

#include <algorithm>
#include <cstdlib>

using namespace kf;

static Result<Answer> read(std::string_view body, int status,
                           std::string_view type, size_t size) {
  AnswerReader reader(status, type);
  for (size_t at = 0; at < body.size() && !reader.isDone(); at += size)
    KF_RETURN_IF_ERROR(
        reader.push(body.substr(at, size), static_cast<double>(at)));
  return reader.finish(static_cast<double>(body.size()));
}

static bool isPrintable(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

/// The first byte says in what pieces the rest comes, as what.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  const std::string_view body(reinterpret_cast<const char *>(data) + 1,
                              size - 1);
  const int status = data[0] & 1 ? 200 : 500;
  const std::string_view type =
      data[0] & 2 ? "text/event-stream" : "application/json";
  const Result<Answer> pieces = read(body, status, type, 1 + (data[0] >> 2));
  const Result<Answer> whole = read(body, status, type, size);
  if (pieces.ok() != whole.ok() || pieces.message() != whole.message() ||
      !isPrintable(whole.message()))
    std::abort();
  if (whole.ok() && (whole->text != pieces->text || status != 200 ||
                     whole->outputTokens.value_or(0) < 0 ||
                     whole->finishReason != pieces->finishReason ||
                     !isPrintable(whole->finishReason)))
    std::abort();
  const auto requests = parseRemoteRequests(body, {});
  if (requests.ok())
    for (const RemoteRequest &request : *requests)
      if (!request.bodyFor("m").ok())
        std::abort();
  return 0;
}
