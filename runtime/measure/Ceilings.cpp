//===- Ceilings.cpp - Measuring what a machine can do at most -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/Ceilings.h"

#include "runtime/core/ByteCount.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/core/UsableThreads.h"
#include "runtime/devices/HostDevice.h"
#include "runtime/measure/HostLoops.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <vector>

using namespace kf;

namespace {

constexpr int kLeastTries = 3;
/// Granularity of ReadLoop.
constexpr uint64_t kLine = 64;
/// What a thread reads before it asks for more: little, so that one that the
/// system takes away does not hold the others up.
constexpr uint64_t kMostChunk = uint64_t(2) << 20;
/// Rounds of multiply-adds that a thread does before it asks for more, some
/// 0.2 ms, and how often each may ask.
constexpr int64_t kRounds = int64_t(1) << 16;
constexpr int64_t kPieces = 16;
/// Part of the time that threads work at least if nobody else has their cores.
constexpr double kQuiet = 0.75;
/// Last caches that no system tells of hold no more.
constexpr uint64_t kUnknownCacheBytes = uint64_t(256) << 20;

/// Runs `pass` for a while; the most of what it returns by its seconds.
Result<double> bestRate(const CeilingOptions &options,
                        const std::function<Result<double>()> &pass) {
  double best = 0;
  const Stopwatch all;
  for (int tries = 0; tries < kLeastTries || all.seconds() < options.seconds;
       ++tries) {
    if (isCancelled(options.cancelled))
      return Status::cancelled();
    const Stopwatch watch;
    KF_ASSIGN_OR_RETURN(const double amount, pass());
    if (const double seconds = watch.seconds(); seconds > 0)
      best = std::max(best, amount / seconds);
  }
  return best;
}

/// Operations a second of the fastest of `loops`; 0 if there is none.
Result<double> multiplyRate(ThreadPool &pool, const CeilingOptions &options,
                            const std::vector<MultiplyLoop> &loops) {
  if (loops.empty())
    return 0.0;
  const int64_t pieces = pool.size() == 1 ? 1 : pool.size() * kPieces;
  const int64_t rounds = pool.size() == 1 ? kRounds * kPieces : kRounds;
  std::vector<double> done(static_cast<size_t>(pieces));
  return bestRate(options, [&]() -> Result<double> {
    KF_RETURN_IF_ERROR(pool.parallelFor(pieces, [&](int64_t piece) {
      done[static_cast<size_t>(piece)] = loops.front().run(rounds);
      return Status();
    }));
    double sum = 0;
    for (double count : done)
      sum += count;
    return 2 * sum;
  });
}

/// Bytes a second that `move` moves, `bytes` each of the times it is told.
Result<double> moveRate(const CeilingOptions &options, uint64_t bytes,
                        const std::function<Status(int64_t times)> &move) {
  KF_RETURN_IF_ERROR(move(1)); // makes what the first one needs
  const Stopwatch watch;
  KF_RETURN_IF_ERROR(move(1));
  // So many that the wait at their end does not count.
  const int64_t times = static_cast<int64_t>(
      std::clamp(0.01 / std::max(watch.seconds(), 1e-9), 1.0, 64.0));
  return bestRate(options, [&]() -> Result<double> {
    KF_RETURN_IF_ERROR(move(times));
    return static_cast<double>(bytes) * static_cast<double>(times);
  });
}

/// Bytes that are read and written a second where one of two buffers of a
/// device is copied to the other, by its stream or by a kernel, whichever is
/// faster.
Result<double> copyRate(Device &device, const CeilingOptions &options) {
  constexpr uint64_t rowBytes = kCopyWidth * sizeof(float);
  KF_ASSIGN_OR_RETURN(const DeviceMemory memory, device.memory());
  const uint64_t wanted =
      options.readBytes ? options.readBytes : uint64_t(256) << 20;
  const uint64_t bytes =
      std::min({wanted, memory.free / 8, memory.largestBuffer,
                device.mostTensorBytes()}) /
      4 * 4;
  if (bytes == 0)
    return 0.0;
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> from, device.allocate(bytes));
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> to, device.allocate(bytes));
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device.createStream());
  KF_ASSIGN_OR_RETURN(
      double rate, moveRate(options, 2 * bytes, [&](int64_t times) -> Status {
        for (int64_t i = 0; i < times; ++i)
          KF_RETURN_IF_ERROR(stream->copy(*to, 0, *from, 0, bytes));
        return stream->synchronize(options.cancelled);
      }));
  const int64_t rows = static_cast<int64_t>(bytes / rowBytes);
  if (!options.copyProgram || rows == 0)
    return rate;
  KF_ASSIGN_OR_RETURN(const Executable program,
                      options.copyProgram(device, rows));
  KF_ASSIGN_OR_RETURN(std::unique_ptr<LoadedProgram> loaded,
                      device.load(program));
  BindingTable table;
  table.inputs = {from.get()};
  table.outputs = {to.get()};
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Instance> instance, loaded->bind(table));
  std::array<int64_t, KF_SCALAR_COUNT> scalars = {};
  scalars[KF_SCALAR_N_TOKENS] = rows;
  KF_ASSIGN_OR_RETURN(
      const double byKernel,
      moveRate(options, 2 * static_cast<uint64_t>(rows) * rowBytes,
               [&](int64_t times) -> Status {
                 for (int64_t i = 0; i < times; ++i)
                   KF_RETURN_IF_ERROR(stream->enqueue(*instance, scalars));
                 return stream->synchronize(options.cancelled);
               }));
  return std::max(rate, byKernel);
}

} // namespace

uint64_t kf::lastLevelCacheBytes(const std::string &root) {
  uint64_t largest = 0;
  for (int index = 0; index < 16; ++index) {
    std::ifstream file(root + "/sys/devices/system/cpu/cpu0/cache/index" +
                       std::to_string(index) + "/size");
    std::string size;
    if (file >> size)
      largest = std::max(largest, parseByteCount(size).value_or(0));
  }
  return largest;
}

static bool isHost(const Device &device) {
  return device.name() == "cpu" || device.name() == "reference";
}

uint64_t kf::lastCacheBytes(const Device &device, const std::string &root) {
  const uint64_t known = isHost(device) ? lastLevelCacheBytes(root) : 0;
  return known ? known : kUnknownCacheBytes;
}

uint64_t kf::uncachedBytes(uint64_t cacheBytes, uint64_t freeBytes) {
  const uint64_t least = uint64_t(256) << 20;
  // Caches that no machine has are a system that errs.
  const uint64_t cache = std::min(cacheBytes, uint64_t(1) << 40);
  return std::min(std::max(4 * cache, least), freeBytes / 4);
}

Result<std::unique_ptr<HostCeilings>>
HostCeilings::create(int threads, const CeilingOptions &options) try {
  std::unique_ptr<HostCeilings> made(new HostCeilings(options));
  KF_ASSIGN_OR_RETURN(made->pool, ThreadPool::create(threads));
  uint64_t bytes = options.readBytes;
  if (bytes == 0) {
    KF_ASSIGN_OR_RETURN(const DeviceMemory memory, hostMemory());
    bytes = uncachedBytes(lastLevelCacheBytes(), memory.free);
    if (options.mostReadBytes)
      bytes = std::min(bytes, options.mostReadBytes);
  }
  bytes = std::max(bytes, kLine) / kLine * kLine;
  KF_ASSIGN_OR_RETURN(made->array, AlignedBuffer::allocate(bytes));
  // Pages that were never written to are all the same one.
  const std::span<std::byte> all = made->array.span();
  const uint64_t chunks = (bytes + kMostChunk - 1) / kMostChunk;
  KF_RETURN_IF_ERROR(
      made->pool->parallelFor(static_cast<int64_t>(chunks), [&](int64_t chunk) {
        if (isCancelled(options.cancelled))
          return Status::cancelled();
        const uint64_t begin = static_cast<uint64_t>(chunk) * kMostChunk;
        std::memset(all.data() + begin, 0x5a,
                    std::min(kMostChunk, bytes - begin));
        return Status();
      }));
  return made;
} catch (...) {
  return statusOfException();
}

/// Seconds that the threads of `pool` have worked; nothing where the system
/// does not tell.
static std::optional<double> workedSeconds(const ThreadPool &pool) {
  double seconds = 0;
  for (int thread = 0; thread < pool.size(); ++thread) {
    const auto time = pool.cpuTime(thread);
    if (!time)
      return std::nullopt;
    seconds += std::chrono::duration<double>(*time).count();
  }
  return seconds;
}

Result<double>
HostCeilings::watched(const std::function<Result<double>()> &measure) {
  const std::optional<double> before = workedSeconds(*pool);
  const Stopwatch watch;
  Result<double> rate = measure();
  const double seconds = watch.seconds();
  const std::optional<double> after = workedSeconds(*pool);
  const int cores = std::min(threads(), usableThreads());
  disturbed = before && after && !hadCores(*after - *before, seconds, cores);
  return rate;
}

bool kf::hadCores(double worked, double seconds, int cores) {
  return worked >= kQuiet * seconds * cores;
}

Result<double> HostCeilings::readBytesPerSecond(uint64_t bytes) {
  const ReadLoop loop = readLoops().front();
  if (bytes == 0 || bytes > array.size())
    bytes = array.size();
  const std::span<const std::byte> all =
      std::as_const(array).span().first(std::max(bytes, kLine) / kLine * kLine);
  // Threads share a small array evenly.
  const uint64_t share =
      all.size() / static_cast<uint64_t>(4 * pool->size()) / kLine * kLine;
  const uint64_t chunk = std::clamp(share, kLine, kMostChunk);
  const uint64_t chunks = (all.size() + chunk - 1) / chunk;
  return watched([&] {
    return bestRate(options, [&]() -> Result<double> {
      KF_RETURN_IF_ERROR(
          pool->parallelFor(static_cast<int64_t>(chunks), [&](int64_t index) {
            const uint64_t begin = static_cast<uint64_t>(index) * chunk;
            const uint64_t bytes =
                std::min<uint64_t>(chunk, all.size() - begin);
            // Keeps what is read.
            volatile uint64_t sum = loop.run(all.subspan(begin, bytes));
            (void)sum;
            return Status();
          }));
      return static_cast<double>(all.size());
    });
  });
}

Result<double> HostCeilings::f32FlopsPerSecond() {
  return watched([&] { return multiplyRate(*pool, options, f32Loops()); });
}

Result<double> HostCeilings::i8OpsPerSecond() {
  return watched([&] { return multiplyRate(*pool, options, i8Loops()); });
}

Result<double> HostCeilings::i8TileOpsPerSecond() {
  return watched([&] { return multiplyRate(*pool, options, i8TileLoops()); });
}

Result<double> HostCeilings::bf16FlopsPerSecond() {
  return watched([&] { return multiplyRate(*pool, options, bf16Loops()); });
}

Result<MachineRates> HostCeilings::measure(uint64_t bytes) {
  MachineRates rates;
  rates.threads = threads();
  bool any = false;
  KF_ASSIGN_OR_RETURN(rates.f32FlopsPerSecond, f32FlopsPerSecond());
  any |= disturbed;
  KF_ASSIGN_OR_RETURN(rates.i8OpsPerSecond, i8OpsPerSecond());
  any |= disturbed && rates.i8OpsPerSecond > 0;
  KF_ASSIGN_OR_RETURN(rates.i8TileOpsPerSecond, i8TileOpsPerSecond());
  any |= disturbed && rates.i8TileOpsPerSecond > 0;
  KF_ASSIGN_OR_RETURN(rates.bf16FlopsPerSecond, bf16FlopsPerSecond());
  any |= disturbed && rates.bf16FlopsPerSecond > 0;
  KF_ASSIGN_OR_RETURN(rates.readBytesPerSecond, readBytesPerSecond(bytes));
  disturbed |= any;
  return rates;
}

Result<MachineRates> kf::measureRates(Device &device,
                                      const CeilingOptions &options,
                                      bool *disturbed) {
  if (disturbed)
    *disturbed = false;
  if (isHost(device)) {
    const int workers = std::max(device.workers(), 1);
    KF_ASSIGN_OR_RETURN(std::unique_ptr<HostCeilings> host,
                        HostCeilings::create(workers, options));
    Result<MachineRates> rates = host->measure();
    if (disturbed)
      *disturbed = host->wasDisturbed();
    return rates;
  }
  MachineRates rates;
  KF_ASSIGN_OR_RETURN(rates.readBytesPerSecond, copyRate(device, options));
  return rates;
}
