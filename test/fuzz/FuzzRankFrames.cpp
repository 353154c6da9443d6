//===- FuzzRankFrames.cpp - Any bytes as what a rank sends ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stream of frames arrives in pieces; what they hold may begin a session.
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/RankFrame.h"
#include "runtime/session/RankSetup.h"

#include <algorithm>
#include <cstdlib>

using namespace kf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  // The first byte says how much arrives at once.
  const size_t piece = size_t(*data) + 1;
  const std::string_view input(reinterpret_cast<const char *>(data) + 1,
                               size - 1);
  constexpr uint64_t most = 4096;
  FrameReader reader(most);
  std::string again;
  for (size_t at = 0; at < input.size(); at += piece) {
    reader.append(input.substr(at, piece));
    for (;;) {
      const Result<std::optional<Frame>> frame = reader.next();
      if (!frame.ok())
        return 0;
      if (!*frame) {
        if (reader.missing() == 0)
          std::abort();
        break;
      }
      const std::string &payload = (*frame)->payload;
      again += frameHeader((*frame)->kind, payload.size()) + payload;
      if (payload.size() > most || !input.starts_with(again))
        std::abort();
      const Result<RankSetup> setup = decodeSetup(payload);
      if (setup.ok() && encode(*setup) != payload)
        std::abort();
    }
  }
  return 0;
}
