//===- CeilingLoops.cpp - Ceilings as contenders --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "benchmarks/CeilingLoops.h"

#include "benchmarks/Operations.h"
#include "runtime/core/AlignedBuffer.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/measure/HostLoops.h"

#include <atomic>
#include <cstring>

using namespace kf;
using namespace kf::bench;

namespace {

/// One run of a thread, about a millisecond.
constexpr int64_t rounds = 1 << 17;
constexpr int64_t sliceBytes = 16 << 20;

class Multiplying : public Contender {
public:
  Multiplying(std::unique_ptr<ThreadPool> pool, MultiplyLoop loop)
      : pool(std::move(pool)), loop(loop) {}

  Status run() override {
    return pool->parallelFor(pool->size(), [&](int64_t) {
      sink = loop.run(rounds);
      return Status();
    });
  }

private:
  std::unique_ptr<ThreadPool> pool;
  MultiplyLoop loop;
  std::atomic<double> sink = 0;
};

class Reading : public Contender {
public:
  Reading(std::unique_ptr<ThreadPool> pool, ReadLoop loop, AlignedBuffer data)
      : pool(std::move(pool)), loop(loop), data(std::move(data)) {}

  /// Each thread reads a slice.
  Status run() override {
    const auto slices = static_cast<int64_t>(data.size() / sliceBytes);
    const int64_t first = next;
    next = (next + pool->size()) % slices;
    return pool->parallelFor(pool->size(), [&](int64_t thread) {
      sink = loop.run(data.span().subspan(
          (first + thread) % slices * sliceBytes, sliceBytes));
      return Status();
    });
  }

private:
  std::unique_ptr<ThreadPool> pool;
  ReadLoop loop;
  AlignedBuffer data;
  int64_t next = 0;
  std::atomic<uint64_t> sink = 0;
};

Result<Entry> multiplying(int threads, const std::vector<MultiplyLoop> &loops) {
  if (loops.empty())
    return Status::error("this CPU has no instruction for products of 8 bits");
  KF_ASSIGN_OR_RETURN(auto pool, ThreadPool::create(threads));
  const double perThread = 2 * loops.front().run(rounds);
  return Entry{"ceiling",
               std::make_unique<Multiplying>(std::move(pool), loops.front()),
               perThread * threads, true};
}

} // namespace

Result<Entry> bench::f32Ceiling(int threads) {
  return multiplying(threads, f32Loops());
}

Result<Entry> bench::i8Ceiling(int threads) {
  return multiplying(threads, i8Loops());
}

Result<Entry> bench::readCeiling(int threads) {
  KF_ASSIGN_OR_RETURN(auto pool, ThreadPool::create(threads));
  const int64_t slices =
      std::max<int64_t>(copiesBeyondCaches(sliceBytes), threads);
  KF_ASSIGN_OR_RETURN(AlignedBuffer data,
                      AlignedBuffer::allocate(slices * sliceBytes));
  // Pages that nobody wrote are all the same one.
  std::memset(data.data(), 1, data.size());
  return Entry{"ceiling",
               std::make_unique<Reading>(std::move(pool), readLoops().front(),
                                         std::move(data)),
               static_cast<double>(sliceBytes) * threads, true};
}
