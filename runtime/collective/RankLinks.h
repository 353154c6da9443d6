//===- RankLinks.h - A process' connections to other ranks ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread of its own reads all connections, says to each other rank every so
// often that this one goes on, and watches whether they do: a rank that has
// ended closes its connection, and one that is stopped, or cut off, is silent.
// How long a step takes is of no matter to it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_RANKLINKS_H
#define KF_RUNTIME_COLLECTIVE_RANKLINKS_H

#include "runtime/collective/MessageQueue.h"
#include "runtime/collective/RankChannel.h"
#include "runtime/collective/RankFrame.h"
#include "runtime/collective/RankMeeting.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace kf {

/// Who is told that a rank is lost. Both are called by the thread of the links,
/// at most once each.
struct RankEvents {
  /// Before anybody else sees it: the error names the rank and its host.
  std::function<void(const Status &)> lost = nullptr;
  /// The links are still there RankTimes::end later, or, after bye(), five
  /// times that: something waits for what will not come.
  std::function<void()> overdue = nullptr;
};

/// Connections to some other ranks, by index.
///
/// Threads: any for abort() and what tells of the state; of one connection, one
/// at a time sends and one receives in each of its two ways, messages and data.
///
/// Failure: the first rank that is lost, or that aborts, ends all of them:
/// calls that wait return its error, and so do later ones, but for messages
/// that came before. Errors are Unavailable.
class RankLinks {
public:
  /// `own` is this rank.
  static Result<std::unique_ptr<RankLinks>> start(RankIdentity own,
                                                  std::vector<RankPeer> peers,
                                                  RankTimes times,
                                                  RankEvents events);
  /// Closes all connections: without bye(), this rank is lost to the others.
  ~RankLinks();
  RankLinks(const RankLinks &) = delete;
  RankLinks &operator=(const RankLinks &) = delete;

  size_t size() const { return links.size(); }
  const RankIdentity &facts(size_t link) const;

  /// This end of the next session with a rank: one after the other, in the same
  /// order on both sides. What an earlier one has not read is dropped.
  std::unique_ptr<RankChannel> openChannel(size_t link);
  /// Whether the other rank has said bye(), after which nothing comes.
  bool hasLeft(size_t link) const;
  /// Whether it has, or is gone.
  bool hasEnded(size_t link) const;

  /// What collectives say: whole, in order, apart from messages.
  Status sendData(size_t link, std::string_view bytes);
  Result<std::string> receiveData(size_t link);

  /// Ends all connections' use, here and there; others say that this rank gave
  /// `reason`.
  void abort(std::string_view reason);
  bool hasFailed() const { return failed.load(std::memory_order_acquire); }
  /// Why; success while nothing has failed.
  Status failure() const;

  /// Says that this rank has done all, after which its connections may close.
  void bye();

private:
  class Channel;
  struct Link;
  using Clock = std::chrono::steady_clock;

  RankLinks(RankIdentity own, RankTimes times, RankEvents events);

  Status send(Link &link, FrameKind kind, std::string_view payload);
  bool sendIfFree(Link &link, FrameKind kind, std::string_view payload);
  void tellOfFailure(Link &link, std::string_view reason);
  void watch();
  void read(Link &link);
  void take(Link &link, Frame frame);
  void lose(Link &link, const std::string &how);
  bool fail(const Status &status, bool isLoss = false);
  void endOverdue(Clock::time_point now);

  RankIdentity own;
  RankTimes times;
  RankEvents events;
  std::vector<std::unique_ptr<Link>> links;
  Descriptor wake; ///< an eventfd: the thread is to end
  std::atomic<bool> failed{false}, saidBye{false}, ending{false};
  mutable std::mutex guard; ///< of why
  Status why;
  Clock::time_point overdueAt = Clock::time_point::max(); ///< the thread's
  std::thread thread;
};

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_RANKLINKS_H
