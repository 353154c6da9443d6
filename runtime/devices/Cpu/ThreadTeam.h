//===- ThreadTeam.h - Which threads take part -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread that loses its core to another process in the middle of a workgroup
// holds up all others for a scheduler's time slice, many times the length of a
// step. The team notices, leaves the thread out for a while so that the rest
// have the cores that there are, and tries it again later, ever more rarely if
// it keeps happening. Where dispatches are long, as those of prompts, all
// threads take part: to do without one would cost more.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CPU_THREADTEAM_H
#define KF_RUNTIME_DEVICES_CPU_THREADTEAM_H

#include "runtime/core/ThreadPool.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <vector>

namespace kf {

/// Threads: update() is the caller's, between runs; the rest is anyone's.
class ThreadTeam {
public:
  using Clock = std::chrono::steady_clock;

  explicit ThreadTeam(ThreadPool &pool);

  /// Takes threads out and back in as reports and the time say, for a run whose
  /// dispatches are expected to take this long each. If there are any, quiesces
  /// the pool first.
  void update(Clock::time_point now, Clock::duration dispatch);

  /// Changes whenever the members do.
  uint64_t version() const { return changes; }
  /// How many threads take part, the caller's always among them.
  int size() const { return memberCount; }
  /// The same without a thread that takes part although it stalled.
  int readySize() const { return memberCount - stalls; }
  /// The thread's number among the members, or -1.
  int rankOf(int thread) const { return members[thread].rank; }

  /// Watches one thread that others wait for.
  class Watch {
  public:
    /// Starts watching thread `suspect`.
    Watch(ThreadTeam &team, int suspect);
    /// `observer` waited for the suspect until `end`. If that was long and the
    /// suspect did not have a core meanwhile, one of the two has to go.
    void report(int observer, Clock::time_point end) const;

  private:
    ThreadTeam &team;
    int suspect;
    Clock::time_point begin;
    std::optional<std::chrono::nanoseconds> used;
  };

private:
  struct Member {
    int rank = 0;
    Clock::time_point since{};          // in the team
    Clock::time_point until{};          // out of the team
    std::chrono::milliseconds pause{0}; // how long it was left out last
  };

  void leaveOut(Member &member, Clock::time_point now);

  ThreadPool &pool;
  std::vector<Member> members; // [pool.size()]
  int memberCount;
  bool stalls = false; // one of them did, and takes part
  uint64_t changes = 0;
  std::atomic<int> request{-1}; // a thread to leave out
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CPU_THREADTEAM_H
