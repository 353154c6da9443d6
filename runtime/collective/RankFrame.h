//===- RankFrame.h - How messages of ranks are told apart -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_RANKFRAME_H
#define KF_RUNTIME_COLLECTIVE_RANKFRAME_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kf {

/// What a frame is. The first four are said once, in this order, by a follower
/// and the leader in turn (RankMeeting.h).
enum class FrameKind : uint8_t {
  Greeting,   ///< a number that was never used
  Challenge,  ///< another one
  Proof,      ///< that a follower has the job's key, and who it is
  Welcome,    ///< that the leader has it, and what it knows of all ranks
  Heartbeat,  ///< that a rank goes on; empty
  Message,    ///< of a RankChannel
  SessionEnd, ///< a RankChannel is gone; empty
  Data,       ///< of a collective
  Abort,      ///< the group has ended, and why
  Bye         ///< all is done; empty
};

struct Frame {
  FrameKind kind = FrameKind::Heartbeat;
  std::string payload;
};

/// What stands in front of the payload: the kind, and the payload's length in 8
/// bytes, little-endian.
inline constexpr size_t kFrameHeader = 9;
std::string frameHeader(FrameKind kind, uint64_t length);

/// Finds frames in what a stream brings. One thread.
class FrameReader {
public:
  /// Frames have at most `most` bytes: what says that it has more is an error
  /// before it is waited for.
  explicit FrameReader(uint64_t most) : most(most) {}

  void append(std::string_view bytes) { buffer.append(bytes); }
  /// The next frame that is whole; nothing: there is none yet. Errors: what is
  /// no frame. There is no going on after one.
  Result<std::optional<Frame>> next();
  /// Bytes that the next frame has at least, beyond those that are there, after
  /// next() has found none.
  uint64_t missing() const { return lacking; }

private:
  uint64_t most;
  std::string buffer;
  size_t used = 0; ///< bytes at its front that were frames
  uint64_t lacking = kFrameHeader;
};

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_RANKFRAME_H
