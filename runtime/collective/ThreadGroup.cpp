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
// all have read: until then its memory is still looked at. What a rank sends is
// copied, and waits for the rank that it is for.
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/ThreadGroup.h"

#include "runtime/collective/CollectiveCall.h"
#include "runtime/core/EventCount.h"
#include "runtime/core/Exceptions.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

using namespace kf;

namespace {

/// What the ranks share. Arrivals are counted over all calls: call number n,
/// from 1, is whole when n * ranks have arrived, and over when n * ranks have
/// read.
class Meeting {
public:
  explicit Meeting(int64_t ranks)
      : calls(static_cast<size_t>(ranks)), sent(calls.size()) {}

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

  /// Leaves `bytes` of rank `rank` for the one behind it.
  Status leave(size_t rank, std::span<const std::byte> bytes) {
    std::vector<std::byte> message;
    message.reserve(bytes.size()); // throws where there cannot be so many
    message.assign(bytes.begin(), bytes.end());
    {
      std::lock_guard<std::mutex> lock(arriving);
      if (failed.load(std::memory_order_relaxed))
        return failure;
      Sent &messages = sent[rank];
      messages.waiting.push_back(std::move(message));
      messages.count.fetch_add(1, std::memory_order_release);
    }
    progress.notify();
    return Status();
  }

  /// What rank `rank` has left first, which is waited for.
  Result<std::vector<std::byte>> take(size_t rank) {
    Sent &messages = sent[rank];
    progress.await([&] {
      return messages.count.load(std::memory_order_acquire) > 0 ||
             failed.load(std::memory_order_acquire);
    });
    std::lock_guard<std::mutex> lock(arriving);
    if (messages.waiting.empty())
      return failure;
    std::vector<std::byte> bytes = std::move(messages.waiting.front());
    messages.waiting.pop_front();
    messages.count.fetch_sub(1, std::memory_order_relaxed);
    return bytes;
  }

  Status reason() const {
    if (!failed.load(std::memory_order_acquire))
      return Status();
    std::lock_guard<std::mutex> lock(arriving);
    return failure;
  }

  /// For the reason that `message` returns, or for want of the memory to say
  /// it.
  template <typename Fn> void fail(Fn message) {
    {
      std::lock_guard<std::mutex> lock(arriving);
      if (failed.load(std::memory_order_relaxed))
        return;
      failure = catchExceptions(
          [&] { return Status::error(message(), StatusCode::Unavailable); });
      failed.store(true, std::memory_order_release);
    }
    progress.notify();
  }

private:
  /// What a rank has sent and the one behind it has not received.
  struct Sent {
    std::deque<std::vector<std::byte>> waiting;
    std::atomic<size_t> count{0};
  };

  /// [ranks]; each rank writes its own in meet()
  std::vector<CollectiveCall> calls;
  std::vector<Sent> sent;      ///< [ranks]
  mutable std::mutex arriving; ///< of `arrived` and `sent` with `failed`
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
  ~ThreadRank() override {
    meeting->fail([&] { return name() + " has ended"; });
  }

  Status send(const void *source, uint64_t bytes) override {
    return orAbort([&] {
      return meeting->leave(static_cast<size_t>(rank()),
                            {static_cast<const std::byte *>(source), bytes});
    });
  }

  Status receive(void *target, uint64_t bytes) override {
    return orAbort([&]() -> Status {
      KF_ASSIGN_OR_RETURN(const std::vector<std::byte> message,
                          meeting->take(static_cast<size_t>(previous())));
      if (message.size() != bytes)
        return Status::error("rank " + std::to_string(previous()) + " sends " +
                                 std::to_string(message.size()) +
                                 " bytes where " + name() + " receives " +
                                 std::to_string(bytes) + " bytes",
                             StatusCode::Internal);
      if (bytes > 0)
        std::memcpy(target, message.data(), bytes);
      return Status();
    });
  }

  void abort(std::string_view reason) override {
    meeting->fail([&] { return name() + ": " + std::string(reason); });
  }

  Status failure() const override { return meeting->reason(); }

private:
  std::string name() const { return "rank " + std::to_string(rank()); }

  /// Others wait for what does not come.
  template <typename Fn> Status orAbort(Fn fn) {
    const Status status = catchExceptions(fn);
    if (!status.ok())
      abort(status.message());
    return status;
  }

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
      meeting->fail([&] { return alike.message(); });
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
