//===- LocalRanks.h - Other ranks in this process ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_LOCALRANKS_H
#define KF_RUNTIME_SESSION_LOCALRANKS_H

#include "runtime/session/OtherRanks.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace kf {

/// What a rank that is not rank 0 does from its beginning to its end: opens its
/// part of the model on a device that joins `group`, tells `leader` that it is
/// ready, and follows. Errors are told by LocalRanks.
using RunRank = std::function<Status(Group &group, RankChannel &leader)>;

/// Ranks 1, 2, ... as threads of this process, and the group that they are in
/// with rank 0, which is the caller. One thread.
class LocalRanks final : public OtherRanks {
public:
  /// Begins `ranks` - 1 threads that do `run`. Errors: those of
  /// createThreadGroup(), threads that the system does not give.
  static Result<std::unique_ptr<LocalRanks>> start(int64_t ranks, RunRank run);
  /// Ends the others, and waits for them.
  ~LocalRanks() override;

  Group &group() override { return *own; }
  RankLeader &leader() override { return *connections; }

private:
  LocalRanks() = default;

  std::unique_ptr<Group> own;
  std::unique_ptr<RankLeader> connections;
  std::vector<std::thread> threads;
};

} // namespace kf

#endif // KF_RUNTIME_SESSION_LOCALRANKS_H
