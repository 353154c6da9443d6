//===- ThreadTeam.cpp - Which threads take part ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cpu/ThreadTeam.h"

#include <algorithm>

namespace kf {
namespace {

using std::chrono::milliseconds;

/// A shorter wait is an interrupt or a kernel thread and soon over.
constexpr std::chrono::microseconds kStall{300};
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{1600};
/// A thread that stalls sooner than this after its return pauses for longer.
constexpr milliseconds kRelapse{200};
/// Dispatches as long as this lose less by waiting out a time slice (3 to 4 ms)
/// now and then than without a thread.
constexpr milliseconds kLongDispatch{1};

} // namespace

ThreadTeam::ThreadTeam(ThreadPool &pool)
    : pool(pool), members(pool.size()), memberCount(pool.size()) {
  for (int i = 0; i < memberCount; ++i)
    members[i].rank = i;
}

void ThreadTeam::leaveOut(Member &member, Clock::time_point now) {
  bool relapse = member.pause.count() > 0 && now - member.since < kRelapse;
  member.pause =
      relapse ? std::min(2 * member.pause, kLongestPause) : kFirstPause;
  member.until = now + member.pause;
  member.rank = -1;
}

void ThreadTeam::update(Clock::time_point now, Clock::duration dispatch) {
  const bool isForAll = dispatch >= kLongDispatch;
  auto returns = [&](const Member &member) {
    return member.rank < 0 && (isForAll || now >= member.until);
  };
  const int reported = request.load(std::memory_order_relaxed);
  stalls = isForAll && reported >= 0;
  const int leaving = isForAll ? -1 : reported;
  if (reported < 0 &&
      (memberCount == pool.size() || std::ranges::none_of(members, returns)))
    return;

  // Late workers of the run before may still look at their ranks.
  pool.quiesce();
  for (Member &member : members)
    if (returns(member)) {
      member.rank = 0; // numbered below
      member.since = now;
    }
  if (leaving >= 0 && members[leaving].rank >= 0)
    leaveOut(members[leaving], now);
  request.store(-1, std::memory_order_relaxed);
  memberCount = 0;
  for (Member &member : members)
    if (member.rank >= 0)
      member.rank = memberCount++;
  ++changes;
}

ThreadTeam::Watch::Watch(ThreadTeam &team, int suspect)
    : team(team), suspect(suspect), begin(Clock::now()),
      used(team.pool.cpuTime(suspect)) {}

void ThreadTeam::Watch::report(int observer, Clock::time_point end) const {
  if (!used || end - begin < kStall)
    return;
  std::optional<std::chrono::nanoseconds> usedNow = team.pool.cpuTime(suspect);
  if (!usedNow || *usedNow - *used > (end - begin) / 2)
    return; // it was working: a long workgroup
  // The caller's thread cannot be left out; another that waits for it can, and
  // makes room for it.
  int none = -1;
  team.request.compare_exchange_strong(none, suspect ? suspect : observer,
                                       std::memory_order_relaxed);
}

} // namespace kf
