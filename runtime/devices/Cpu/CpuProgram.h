//===- CpuProgram.h - A program made ready on the CPU -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks a program's dispatches with every thread of the pool.
//
// Each thread has a fixed, contiguous share of each dispatch's workgroups, so
// that it finds the same weights in its caches token after token. Workgroups
// are claimed one by one from the share's counter, by its owner first and, when
// a dispatch is not over a moment after a thread is done with its own share,
// by the others. A dispatch is over when all of its workgroups are, whoever ran
// them: a thread without a core delays nothing but the workgroup in its hands.
//
// A collective is thread 0's alone, which is the one that called run(): others
// wait for it, and take it for no stalled thread however long the ranks do.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CPU_CPUPROGRAM_H
#define KF_RUNTIME_DEVICES_CPU_CPUPROGRAM_H

#include "runtime/core/AlignedBuffer.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/devices/Cpu/ObjectLoader.h"
#include "runtime/devices/Cpu/ThreadTeam.h"
#include "runtime/devices/HostDevice.h"

#include <array>
#include <atomic>

namespace kf {

/// What the programs of one CPU device share.
struct CpuContext {
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<ThreadTeam> team;
  std::unique_ptr<ObjectLoader> loader;
  std::vector<AlignedBuffer> scratch; // [pool->size()], as large as any program

  /// Makes every thread's scratch at least `bytes` large.
  Status reserveScratch(uint64_t bytes);
};

/// An executable's kernels in memory. `context` outlives it.
class CpuProgram final : public LoadedProgram {
public:
  static Result<std::unique_ptr<LoadedProgram>>
  load(const Executable &executable, CpuContext &context);

private:
  CpuProgram(const Executable &executable, CpuContext &context)
      : LoadedProgram(executable), context(context) {}
  Result<std::unique_ptr<Instance>> doBind(const BindingTable &table) override;

  CpuContext &context;
  std::unique_ptr<ObjectLoader::LoadedObject> object; // null without kernels
};

/// Calls of kernels on bound buffers.
class CpuInstance final : public HostInstance, private ThreadPool::Job {
public:
  /// `kernels` has a function for each of the program's kernels.
  CpuInstance(const Executable &program, const BindingTable &table,
              std::span<const kf_kernel_fn> kernels, CpuContext &context);
  ~CpuInstance() override;

  Status run(std::span<const int64_t> scalars, CancelFlag cancelled,
             DispatchTimes *times) override;

private:
  /// One dispatch, ready to call.
  struct Call {
    kf_kernel_fn function = nullptr;
    size_t firstBinding = 0;                    // index into `pointers`
    const CollectiveSpec *collective = nullptr; // in the function's place
  };

  /// A binding of a cache's layer, whose place depends on the pages.
  struct Layer {
    size_t pointer; // index into `pointers`
    uint32_t cache;
    uint64_t index;
    std::byte *base; // of the cache
  };

  /// Where a thread's share of the current dispatch stands: the number of the
  /// dispatch since the last prepare() above `kIndexBits`, how many workgroups
  /// of the share are claimed below. A stale number stands for none claimed.
  struct alignas(64) Share {
    std::atomic<uint64_t> claimed{0};
  };
  /// Number of the dispatch that a thread is running workgroups of, or 0.
  struct alignas(64) Activity {
    std::atomic<uint64_t> number{0};
  };
  static constexpr int kIndexBits = 24;

  using Clock = std::chrono::steady_clock;

  Status doCheck(std::span<const int64_t> scalars) override;
  /// What a thread did for a dispatch of a run that is measured: its share, or
  /// what it took over.
  struct Stint {
    uint64_t workgroups = 0;
    Clock::time_point begin, end;
  };

  Status prepare(std::span<const int64_t> newScalars);
  void setMeasuring(bool on);
  void addWorkers(size_t dispatch, Clock::time_point start,
                  DispatchTime &time) const;
  Status runOnce();
  Status runTogether();
  void reset();
  Status runAlone();
  void work(int thread) override;
  bool walk(int thread, uint64_t run);
  void takePart(int thread, int rank, size_t d, uint64_t number,
                uint64_t target);
  void takePartInCollective(int thread, size_t d, uint64_t number,
                            uint64_t target);
  Status collect(size_t dispatch);
  void waitFor(int thread, uint64_t number, uint64_t target);
  uint64_t runShare(int owner, int thread, size_t dispatch, uint64_t number);
  Clock::time_point startStint() const;
  void endStint(int thread, size_t stint, uint64_t workgroups,
                Clock::time_point begin);
  void call(int thread, size_t dispatch, int64_t workgroup);
  void finish(uint64_t workgroups, uint64_t number, uint64_t target);

  CpuContext &context;
  // From the buffers.
  std::vector<Call> calls;      // [dispatches]
  std::vector<void *> pointers; // bindings of all calls
  std::vector<Layer> layers;

  // From prepare(): for the scalars of the last run.
  bool prepared = false;
  std::array<int64_t, KF_SCALAR_COUNT> scalars{};
  /// Workgroups before each dispatch; [dispatches + 1].
  std::vector<uint64_t> before;
  /// Of the last run; looked at while it cannot be over.
  CancelFlag cancelled = nullptr;
  /// What a dispatch took on an average, in the fastest run with as many
  /// tokens, for stalls are not to count; the first run is for all threads.
  Clock::duration leastDispatch = Clock::duration::max();
  /// It was set, or a collective failed; threads look at this between
  /// dispatches.
  std::atomic<bool> stopped = false;
  Status collected;               // of the run's collectives; thread 0's
  std::vector<std::byte> staging; // of collectives
  /// [pool->size()][2 * dispatches], each thread's own to write, before it
  /// counts what it did; empty where nobody asks. Changes size only while no
  /// worker is in the program.
  std::vector<std::vector<Stint>> stints;

  // What threads share during a run. Workgroups of all runs since the last
  // reset() are counted in one row: dispatch d of run r is over when
  // finished >= r * before.back() + before[d + 1].
  uint64_t teamVersion = 0;
  std::unique_ptr<Share[]> shares;        // [team->size()]
  std::unique_ptr<Activity[]> activities; // [pool->size()]
  alignas(64) std::atomic<uint64_t> currentRun{0};
  alignas(64) std::atomic<uint64_t> finished{0};
  /// The last dispatch that got over, and when.
  std::atomic<uint64_t> overNumber{0};
  std::atomic<ThreadTeam::Clock::time_point> overTime{};
  EventCount progress;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CPU_CPUPROGRAM_H
