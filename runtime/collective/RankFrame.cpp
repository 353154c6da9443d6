//===- RankFrame.cpp - How messages of ranks are told apart ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/RankFrame.h"

#include "runtime/collective/MessageBytes.h"

using namespace kf;

std::string kf::frameHeader(FrameKind kind, uint64_t length) {
  std::string header;
  MessageWriter writer(header);
  writer.put(static_cast<uint8_t>(kind));
  writer.put(length);
  return header;
}

Result<std::optional<Frame>> FrameReader::next() {
  const std::string_view rest = std::string_view(buffer).substr(used);
  lacking = kFrameHeader;
  if (rest.size() < kFrameHeader) {
    lacking -= rest.size();
    return std::optional<Frame>();
  }
  MessageReader reader(rest.substr(0, kFrameHeader));
  uint8_t kind = 0;
  uint64_t length = 0;
  reader.get(kind);
  reader.get(length);
  if (kind > static_cast<uint8_t>(FrameKind::Bye))
    return Status::error("what is no message of a rank");
  if (length > most)
    return Status::error("a message of " + std::to_string(length) +
                         " bytes, of which " + std::to_string(most) +
                         " are allowed");
  if (rest.size() - kFrameHeader < length) {
    lacking = kFrameHeader + length - rest.size();
    return std::optional<Frame>();
  }
  Frame frame{static_cast<FrameKind>(kind),
              std::string(rest.substr(kFrameHeader, length))};
  used += kFrameHeader + length;
  // Moved to the front seldom, so that many small frames cost little.
  if (used == buffer.size() || used > (size_t(1) << 20)) {
    buffer.erase(0, used);
    used = 0;
  }
  return std::optional<Frame>(std::move(frame));
}
