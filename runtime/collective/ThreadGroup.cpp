//===- ThreadGroup.cpp - Ranks in one process -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a call, each rank shows the others what it has, waits until all have done
// so, and reads what it needs of theirs into its own result. It returns when
// all have read: until then its memory is still looked at.
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/ThreadGroup.h"

#include "runtime/collective/CollectiveCall.h"
#include "runtime/core/EventCount.h"
#include "runtime/core/Exceptions.h"

#include <atomic>
#include <mutex>
#include <string>

using namespace kf;

namespace {

/// What the ranks share. Arrivals are counted over all calls: call number n,
/// from 1, is whole when n * ranks have arrived, and over when n * ranks have
/// read.
class Meeting {
public:
  explicit Meeting(int64_t ranks) : calls(static_cast<size_t>(ranks)) {}

  /// Shows `call`, the rank's number `number`, and waits for the others'. All
  /// of them return alike: where the last one has arrived, nothing can fail
  /// any more before all have read.
  Status meet(size_t rank, const CollectiveCall &call, uint64_t number) {
    const uint64_t all = number * calls.size();
    {
      std::lock_guard<std::mutex> lock(arriving);
      if (failed.load(std::memory_order_relaxed))
        return failure;
      calls[rank] = call;
      arrived.fetch_add(1, std::memory_order_release);
    }
    progress.notify();
    progress.await([&] {
      return arrived.load(std::memory_order_acquire) >= all ||
             failed.load(std::memory_order_acquire);
    });
    std::lock_guard<std::mutex> lock(arriving);
    return arrived.load(std::memory_order_relaxed) >= all ? Status() : failure;
  }

  /// Says that the rank has read, and waits for the others.
  void part(uint64_t number) {
    const uint64_t all = number * calls.size();
    left.fetch_add(1, std::memory_order_acq_rel);
    progress.notify();
    progress.await([&] { return left.load(std::memory_order_acquire) >= all; });
  }

  /// The calls of all ranks, between meet() and part().
  std::span<const CollectiveCall> shown() const { return calls; }

  Status reason() const {
    if (!failed.load(std::memory_order_acquire))
      return Status();
    std::lock_guard<std::mutex> lock(arriving);
    return failure;
  }

  void fail(std::string message) {
    {
      std::lock_guard<std::mutex> lock(arriving);
      if (failed.load(std::memory_order_relaxed))
        return;
      failure = Status::error(std::move(message), StatusCode::Unavailable);
      failed.store(true, std::memory_order_release);
    }
    progress.notify();
  }

private:
  /// [ranks]; each rank writes its own in meet()
  std::vector<CollectiveCall> calls;
  mutable std::mutex arriving; ///< of `arrived` with `failed`
  std::atomic<uint64_t> arrived{0}, left{0};
  std::atomic<bool> failed{false};
  Status failure;
  EventCount progress;
};

class ThreadRank final : public CallingGroup {
public:
  ThreadRank(int64_t rank, std::shared_ptr<Meeting> meeting)
      : CallingGroup(rank, static_cast<int64_t>(meeting->shown().size())),
        meeting(std::move(meeting)) {}
  ~ThreadRank() override { meeting->fail(name() + " has ended"); }

  void abort(std::string_view reason) override {
    meeting->fail(name() + ": " + std::string(reason));
  }

  Status failure() const override { return meeting->reason(); }

private:
  std::string name() const { return "rank " + std::to_string(rank()); }

  Status call(const CollectiveCall &own, std::byte *target) override {
    ++number;
    KF_RETURN_IF_ERROR(meeting->meet(static_cast<size_t>(rank()), own, number));
    const Status status = catchExceptions([&] { return read(target); });
    meeting->part(number);
    return status;
  }

  /// Reads what all ranks have shown.
  Status read(std::byte *target) {
    const std::span<const CollectiveCall> calls = meeting->shown();
    if (Status alike = checkAlike(calls); !alike.ok()) {
      meeting->fail(alike.message());
      return alike;
    }
    return putTogether(calls, target);
  }

  std::shared_ptr<Meeting> meeting;
  uint64_t number = 0; ///< of calls so far
};

} // namespace

Result<std::vector<std::unique_ptr<Group>>>
kf::createThreadGroup(int64_t ranks) try {
  if (ranks < 2 || ranks > kMaxRanks)
    return Status::error("a group of " + std::to_string(ranks) +
                         " ranks; 2 to " + std::to_string(kMaxRanks) +
                         " are possible");
  auto meeting = std::make_shared<Meeting>(ranks);
  std::vector<std::unique_ptr<Group>> group;
  for (int64_t rank = 0; rank < ranks; ++rank)
    group.push_back(std::make_unique<ThreadRank>(rank, meeting));
  return group;
} catch (...) {
  return statusOfException();
}
