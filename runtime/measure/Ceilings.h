//===- Ceilings.h - Measuring what a machine can do at most -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rates that code can be held against: the best of several tries, since nothing
// makes a machine faster than it is, and much makes it slower.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MEASURE_CEILINGS_H
#define KF_RUNTIME_MEASURE_CEILINGS_H

#include "runtime/core/AlignedBuffer.h"
#include "runtime/core/Cancellation.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/devices/Device.h"
#include "runtime/measure/MachineRates.h"
#include "runtime/program/Executable.h"

#include <functional>
#include <memory>
#include <string>

namespace kf {

/// Bytes that have to be read at least for all threads to be fast.
inline constexpr uint64_t kLeastReadBytes = uint64_t(16) << 20;

struct CeilingOptions {
  /// Bytes of the array that is read again and again; 0 for so many that no
  /// cache helps. Code whose data fits the caches is to be held against reading
  /// as much.
  uint64_t readBytes = 0;
  /// What such code reads at most, where `readBytes` is 0: no more is read of
  /// the host, and no cache helps that does not help the code; 0: any.
  uint64_t mostReadBytes = 0;
  /// Seconds that each rate is tried for; each is tried three times at least.
  double seconds = 0.1;
  /// Makes a program for a device that reads its input, [tokens, kCopyWidth] of
  /// f32, and writes as much to its output, without an arena, for `rows` tokens
  /// at most: that tells what kernels move, which may be more than a stream's
  /// copies do. Empty: copies tell alone. The host is measured without either.
  std::function<Result<Executable>(const Device &, int64_t rows)> copyProgram =
      {};
  /// Ends a measurement, which then returns Status::cancelled(). Not owned.
  CancelFlag cancelled = nullptr;
};

/// Elements of a row of CeilingOptions::copyProgram.
inline constexpr int64_t kCopyWidth = 4096;

/// Bytes of the host's largest cache, the last level's; 0 where the system does
/// not tell. `root` is put in front of every path. Any thread.
uint64_t lastLevelCacheBytes(const std::string &root = "");

/// Bytes that the last cache of `device` holds at most: the host's, or 256 MiB
/// where the system does not tell, and of GPUs, whose caches are smaller.
/// `root` is as in lastLevelCacheBytes().
uint64_t lastCacheBytes(const Device &device, const std::string &root = "");

/// Bytes of which a cache of `cacheBytes` holds little: four times as many, and
/// 256 MiB at least, but no more than a quarter of `freeBytes`.
uint64_t uncachedBytes(uint64_t cacheBytes, uint64_t freeBytes);

/// Measures the host with a number of threads. One thread may use it, which
/// works, too.
class HostCeilings {
public:
  /// Makes the threads, 0 for usableThreads(), and the array that is read.
  /// Errors: threads or memory that cannot be had, Status::cancelled().
  static Result<std::unique_ptr<HostCeilings>>
  create(int threads, const CeilingOptions &options = {});

  // Each measures anew. The only error is Status::cancelled(). `bytes` is how
  // much of the array is read; 0 for all.
  Result<MachineRates> measure(uint64_t bytes = 0);
  Result<double> readBytesPerSecond(uint64_t bytes = 0);
  Result<double> f32FlopsPerSecond();
  // 0 where the CPU has no instruction for it.
  Result<double> i8OpsPerSecond();
  Result<double> i8TileOpsPerSecond();
  Result<double> bf16FlopsPerSecond();

  /// Whether threads had to wait for others' in the last measurement, so that
  /// the rate may be too low. False where the system does not tell. Of one
  /// thread, the one that measures is meant to be the one that made this.
  bool wasDisturbed() const { return disturbed; }
  int threads() const { return pool->size(); }
  uint64_t arrayBytes() const { return array.size(); }

private:
  explicit HostCeilings(const CeilingOptions &options) : options(options) {}
  Result<double> watched(const std::function<Result<double>()> &measure);

  CeilingOptions options;
  bool disturbed = false;
  std::unique_ptr<ThreadPool> pool;
  AlignedBuffer array;
};

/// Whether threads that worked for `worked` seconds, all together, had `cores`
/// cores about to themselves for `seconds`.
bool hadCores(double worked, double seconds, int cores);

/// Measures `device`: of the CPU and the reference, the host's rates with as
/// many threads as the device has; of others, how many bytes a copy within
/// their memory reads and writes a second, or a kernel where
/// `options.copyProgram` has one and it is faster, while the rates of
/// multiply-adds stay unknown. Sets `disturbed`, unless that is null, as
/// HostCeilings::wasDisturbed(). Errors: as HostCeilings, the device's, and
/// those of `options.copyProgram`.
Result<MachineRates> measureRates(Device &device,
                                  const CeilingOptions &options = {},
                                  bool *disturbed = nullptr);

} // namespace kf

#endif // KF_RUNTIME_MEASURE_CEILINGS_H
