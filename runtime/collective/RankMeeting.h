//===- RankMeeting.h - How ranks of a job find one another ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rank 0 listens, and the others connect. Each side sends a random number, and
// proves by a digest of both, and of what it says of itself, that it has the
// job's key: follower first, so that who has none is told a random number and
// nothing else. What is said after that is neither encrypted nor signed: the
// network between the hosts has to be one's own.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_RANKMEETING_H
#define KF_RUNTIME_COLLECTIVE_RANKMEETING_H

#include "runtime/collective/JobKey.h"
#include "runtime/collective/Socket.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace kf {

/// What ranks tell one another before anything else.
struct RankIdentity {
  int64_t rank = 0, size = 1;
  std::string build; ///< the same on all ranks (programIdentity())
  std::string host;
  std::string cpus; ///< those that it may use, as text that tells sets apart
};

/// How long ranks wait.
struct RankTimes {
  using Milliseconds = std::chrono::milliseconds;
  Milliseconds meeting{60'000}; ///< until all are there
  Milliseconds stranger{2'000}; ///< for one that has not proven the key
  Milliseconds heartbeat{500};  ///< between two signs of life
  Milliseconds silence{3'500};  ///< until who gives none is lost
  Milliseconds end{2'000};      ///< for the process to end when one is lost
};

/// Another rank, connected.
struct RankPeer {
  RankIdentity facts;
  Descriptor socket;
};

/// "rank 1 on HOST".
std::string nameOf(const RankIdentity &facts);

/// Of rank 0: waits for all others, who are in the order of their numbers then,
/// and tells each the facts of all. Strangers are sent away. Errors: ranks that
/// have not come, and how many strangers did; ranks of another build or another
/// number of ranks, or two with one number.
Result<std::vector<RankPeer>> meetFollowers(Listener &listener,
                                            const JobKey &key,
                                            const RankIdentity &own,
                                            const RankTimes &times);

/// What a follower has.
struct MetLeader {
  RankPeer leader;
  std::vector<RankIdentity> all; ///< by rank
};
/// Of another rank: connects to rank 0 at `address` and `port`, and returns
/// when all ranks are there. Errors: nobody who has the key is there; it has
/// gone without having met all.
Result<MetLeader> meetLeader(const std::string &address, uint16_t port,
                             const JobKey &key, const RankIdentity &own,
                             const RankTimes &times);

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_RANKMEETING_H
