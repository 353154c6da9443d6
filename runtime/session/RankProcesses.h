//===- RankProcesses.h - Ranks that a launcher has started ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_RANKPROCESSES_H
#define KF_RUNTIME_SESSION_RANKPROCESSES_H

#include "runtime/collective/Launcher.h"
#include "runtime/collective/MpiLibrary.h"
#include "runtime/collective/RankLinks.h"
#include "runtime/session/OtherRanks.h"
#include "runtime/session/RankSetup.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// What a rank that is not rank 0 does from the beginning to the end of a
/// session: opens its part of the model on a device that joins `group`, tells
/// `leader` that it is ready, and follows.
using RunSetup = std::function<Status(const RankSetup &setup, Group &group,
                                      RankChannel &leader)>;

/// This process' place among those of a job, one a rank, from when they have
/// met until it ends. One thread; but whoever is told of events.
class RankProcesses {
public:
  struct Options {
    LaunchedRank launched;
    std::string build; ///< the same on all ranks (programIdentity())
    RankTimes times = {};
    RankEvents events = {};
  };
  /// Returns when all ranks are there. Errors: those of meeting, of the job's
  /// key in `environment`, and of the launcher's MPI. A Cancelled one is for
  /// rank 0 to say.
  static Result<std::unique_ptr<RankProcesses>>
  meet(Options options, const Environment &environment);
  /// Tells others that all is done, where nothing has failed.
  ~RankProcesses();
  RankProcesses(const RankProcesses &) = delete;
  RankProcesses &operator=(const RankProcesses &) = delete;

  int64_t rank() const { return all[own].rank; }
  int64_t size() const { return static_cast<int64_t>(all.size()); }
  /// Whether a rank is lost, or has ended the group: nothing goes on, and MPI,
  /// which may wait for that rank, is not ended in order.
  bool hasFailed() const { return links->hasFailed(); }
  /// Ranks, this one included, that may use this one's CPUs.
  int64_t sharers() const;

  /// Of rank 0: begins a session. This must outlive what it returns.
  Result<std::unique_ptr<OtherRanks>> lead(const RankSetup &setup);
  /// Of another rank: does `run` for each of rank 0's sessions until it has
  /// ended. A Cancelled error is one that rank 0 knows of.
  Status follow(const RunSetup &run);

private:
  RankProcesses() = default;
  Status connect(const Options &options, const Environment &environment);
  Result<uint16_t> exchangePort(const LaunchedRank &launched,
                                const RankTimes &times, uint16_t port);

  std::vector<RankIdentity> all; ///< by rank
  size_t own = 0;
  std::optional<MpiLibrary> mpi;
  std::unique_ptr<RankLinks> links;
  std::unique_ptr<Group> group;
};

} // namespace kf

#endif // KF_RUNTIME_SESSION_RANKPROCESSES_H
