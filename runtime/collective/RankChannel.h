//===- RankChannel.h - Messages of two ranks --------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How one rank tells another what to do, and is told what came of it. What the
// messages say is not its matter.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_RANKCHANNEL_H
#define KF_RUNTIME_COLLECTIVE_RANKCHANNEL_H

#include "runtime/core/Status.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace kf {

/// One end of a connection between two ranks: messages arrive whole, and in the
/// order in which they were sent. It is closed when one of its ends is gone;
/// what was sent before can be received still.
///
/// Threads: one at a time may call an end, and another one the other end.
class RankChannel {
public:
  virtual ~RankChannel() = default;
  RankChannel(const RankChannel &) = delete;
  RankChannel &operator=(const RankChannel &) = delete;

  /// Does not wait until the message is received. Error: the connection is
  /// closed; the code is Unavailable.
  virtual Status send(std::string message) = 0;
  /// The next message, which it waits for; nothing: the connection is closed,
  /// and all messages were received. Errors: what ended the group, which names
  /// the rank that it was.
  virtual Result<std::optional<std::string>> receive() = 0;

protected:
  RankChannel() = default;
};

/// The ends of a connection of ranks that are threads of one process.
std::pair<std::unique_ptr<RankChannel>, std::unique_ptr<RankChannel>>
createThreadChannel();

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_RANKCHANNEL_H
