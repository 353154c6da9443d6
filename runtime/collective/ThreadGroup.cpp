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

#include "runtime/core/EventCount.h"
#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

using namespace kf;

namespace {

/// What a rank calls.
struct Call {
  CollectiveSpec::Kind kind = CollectiveSpec::Kind::AllReduce;
  DataType type = DataType::F32; ///< of a sum
  uint64_t count = 0;            ///< elements of a sum; bytes
  const std::byte *source = nullptr;

  bool isLike(const Call &other) const {
    return kind == other.kind && type == other.type && count == other.count;
  }
  std::string describe() const {
    return kind == CollectiveSpec::Kind::AllReduce
               ? "sums up " + std::to_string(count) + " elements of " +
                     std::string(nameOf(type))
               : "gathers " + std::to_string(count) + " bytes";
  }
};

/// What the ranks share. Arrivals are counted over all calls: call number n,
/// from 1, is whole when n * ranks have arrived, and over when n * ranks have
/// read.
class Meeting {
public:
  explicit Meeting(int64_t ranks) : calls(static_cast<size_t>(ranks)) {}

  /// Shows `call`, the rank's number `number`, and waits for the others'. All
  /// of them return alike: where the last one has arrived, nothing can fail
  /// any more before all have read.
  Status meet(size_t rank, const Call &call, uint64_t number) {
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
  std::span<const Call> shown() const { return calls; }

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
  std::vector<Call> calls;     ///< [ranks]; each rank writes its own in meet()
  mutable std::mutex arriving; ///< of `arrived` with `failed`
  std::atomic<uint64_t> arrived{0}, left{0};
  std::atomic<bool> failed{false};
  Status failure;
  EventCount progress;
};

/// Adds up the elements of all sources, in the order of the ranks.
Status addUp(std::span<const Call> calls, std::byte *target) {
  constexpr uint64_t most = 1024;
  float sum[most], addend[most];
  const DataType type = calls[0].type;
  const uint64_t size = sizeOf(type), count = calls[0].count;
  for (uint64_t begin = 0; begin < count; begin += most) {
    const int64_t length = static_cast<int64_t>(std::min(most, count - begin));
    for (size_t rank = 0; rank < calls.size(); ++rank) {
      float *to = rank == 0 ? sum : addend;
      KF_RETURN_IF_ERROR(
          convertToFloat(type, calls[rank].source + begin * size, length, to));
      for (int64_t i = 0; rank > 0 && i < length; ++i)
        sum[i] += addend[i];
    }
    KF_RETURN_IF_ERROR(
        convertFromFloat(type, sum, length, target + begin * size));
  }
  return Status();
}

class ThreadRank final : public Group {
public:
  ThreadRank(int64_t rank, std::shared_ptr<Meeting> meeting)
      : Group(rank, static_cast<int64_t>(meeting->shown().size())),
        meeting(std::move(meeting)) {}
  ~ThreadRank() override { meeting->fail(name() + " has ended"); }

  Status allReduce(DataType type, const void *source, void *target,
                   uint64_t elements) override {
    return call({CollectiveSpec::Kind::AllReduce, type, elements,
                 static_cast<const std::byte *>(source)},
                static_cast<std::byte *>(target));
  }

  Status allGather(const void *source, void *target, uint64_t bytes) override {
    return call({CollectiveSpec::Kind::AllGather, DataType::U8, bytes,
                 static_cast<const std::byte *>(source)},
                static_cast<std::byte *>(target));
  }

  void abort(std::string_view reason) override {
    meeting->fail(name() + ": " + std::string(reason));
  }

  Status failure() const override { return meeting->reason(); }

private:
  std::string name() const { return "rank " + std::to_string(rank()); }

  Status call(const Call &own, std::byte *target) {
    ++number;
    KF_RETURN_IF_ERROR(meeting->meet(static_cast<size_t>(rank()), own, number));
    const Status status = catchExceptions([&] { return read(own, target); });
    meeting->part(number);
    return status;
  }

  /// Reads what all ranks have shown.
  Status read(const Call &own, std::byte *target) {
    const std::span<const Call> calls = meeting->shown();
    for (size_t i = 1; i < calls.size(); ++i)
      if (!calls[i].isLike(calls[0])) {
        const std::string difference = "rank " + std::to_string(i) + " " +
                                       calls[i].describe() + " where rank 0 " +
                                       calls[0].describe();
        meeting->fail(difference);
        return Status::error(difference, StatusCode::Internal);
      }
    if (own.kind == CollectiveSpec::Kind::AllReduce)
      return addUp(calls, target);
    if (own.count == 0)
      return Status();
    for (const Call &call : calls) {
      std::memcpy(target, call.source, own.count);
      target += own.count;
    }
    return Status();
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
