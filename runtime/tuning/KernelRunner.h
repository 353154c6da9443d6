//===- KernelRunner.h - One kernel, measured and compared -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a program of few dispatches, mostly a single one, with weights, caches
// and inputs that are made from a seed. The reference device runs the same
// program first; variants of it, compiled for the device under test with
// whatever schedules, are then compared with its results and timed:
//
//   auto runner = KernelRunner::create(device, *reference, program, aCase);
//   auto variant = (*runner)->load(executable);
//   auto difference = (*variant)->check();
//   auto seconds = (*variant)->measure(20);
//
// In a step, a kernel's weights come from memory, for those of all others were
// read since it ran last; its activations do not, for the kernel before it made
// them. So runs go round copies of weights and caches, as many as the caches
// of the device do not hold, and share inputs and outputs.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TUNING_KERNELRUNNER_H
#define KF_RUNTIME_TUNING_KERNELRUNNER_H

#include "runtime/devices/Device.h"
#include "runtime/model/DummyWeights.h"
#include "runtime/tuning/KernelInputs.h"
#include "runtime/tuning/ResultComparison.h"
#include "runtime/weights/WeightStore.h"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kf {

struct KernelRunnerOptions {
  /// Rows that results are compared with the reference's for, which is slow;
  /// those of all rows are compared with the first variant's that agreed. Many
  /// enough for whole tiles of any schedule and a rest.
  int64_t checkTokens = 37;
  /// Bytes of weights and caches that runs read before they read the same
  /// again, as far as a quarter of the free memory goes: those of a step, or
  /// twice the device's last cache if that is less. 0: always the same.
  uint64_t rotateBytes = 0;
  PackOptions packing = {};
};

class KernelVariant;

/// What variants of one kernel share. Owns all buffers; the devices must
/// outlive it, and it its variants. One thread; one variant runs at a time.
class KernelRunner {
public:
  /// `program` is the kernel compiled for `reference`, whose results it runs
  /// for at once. Errors: a case that the program does not take, inputs that
  /// fit no role, no memory, what the reference says.
  static Result<std::unique_ptr<KernelRunner>>
  create(Device &device, Device &reference, const Executable &program,
         const KernelCase &kernelCase, const KernelRunnerOptions &options = {});

  /// Makes a variant ready. Errors: a program with other inputs, outputs,
  /// caches or weights than the reference's, layouts apart; those of the
  /// device; no memory.
  Result<std::unique_ptr<KernelVariant>> load(const Executable &executable);

  const KernelCase &kernelCase() const { return runCase; }
  /// Copies of weights and caches that runs go round, once a variant is loaded.
  int64_t copies() const { return copyCount; }
  /// Bytes of the weights and caches that one run may read, as the last variant
  /// that was loaded has them.
  uint64_t storedBytes() const { return bytesOfRun; }
  /// Bytes of all copies, once a variant was measured; the first ones are none.
  uint64_t copiedBytes() const { return bytesOfCopies; }
  /// Whether other processes had cores of the device's workers in the last
  /// KernelVariant::measure(): it ran with fewer workers than it has, or the
  /// only one had to wait. False of devices that do not tell.
  bool wasDisturbed() const { return disturbed; }

private:
  friend class KernelVariant;
  using Scalars = std::array<int64_t, KF_SCALAR_COUNT>;

  bool lacksWorkers() const { return device.readyWorkers() < device.workers(); }
  /// Whether whoever waits for a stream does all of its work.
  bool isCallersWork() const {
    return device.workers() == 1 && !device.runsAlone();
  }

  KernelRunner(Device &device, const Executable &program,
               const KernelCase &kernelCase,
               const KernelRunnerOptions &options);

  Status runReference(Device &reference, const Executable &program);
  Status makeSource();
  /// Buffers of inputs and outputs, with the inputs in place.
  Status makeBuffers();
  Status checkSame(const Executable &executable) const;
  /// The buffers that run number `copy` reads.
  Result<BindingTable> tableOf(const Executable &executable, Buffer *arena,
                               int64_t copy);
  Result<Buffer *> cacheBuffer(size_t index, const CacheSpec &spec);
  Result<Buffer *> copyOf(Buffer &original, int64_t copy);
  /// What there are copies of: weights, then caches.
  Result<std::vector<Buffer *>> copiedBuffers(const Executable &executable);
  Status chooseCopies(const Executable &executable);
  /// Makes all copies, in the order in which runs read them: one that was made
  /// just before the run would still be in a cache.
  Status makeCopies(const Executable &executable);
  Status resetCaches(const Executable &executable);
  /// The results of a run that has just been synchronized, caches included.
  Result<std::vector<HostTensor>> results(const Executable &executable,
                                          const Scalars &scalars);
  Scalars scalarsFor(int64_t tokens) const;

  Device &device;
  const Executable program; ///< the reference's, without its binary
  const KernelCase runCase;
  const KernelRunnerOptions options;
  Scalars scalars = {}; ///< of a whole run
  int64_t checkTokens = 1;
  bool writesCaches = false;
  ResultTolerance tolerance; ///< of all variants, which may have more

  std::unique_ptr<DummyWeights> source;
  std::optional<WeightStore> weights;
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> cacheContents; ///< [caches] before a run
  std::vector<HostTensor> expected;      ///< the reference's, of fewer rows
  std::vector<HostTensor> standard; ///< of all rows; none before one agreed
  bool standardRoundsPairs = false; ///< as ResultTolerance has it

  std::vector<std::unique_ptr<Buffer>> inputBuffers, outputBuffers;
  /// By index and key block.
  std::map<std::pair<size_t, int64_t>, std::unique_ptr<Buffer>> cacheBuffers;
  std::map<Buffer *, std::vector<std::unique_ptr<Buffer>>> copiesOfBuffer;
  std::unique_ptr<Stream> stream;
  int64_t copyCount = 1, nextCopy = 0;
  uint64_t bytesOfRun = 0, bytesOfCopies = 0;
  bool disturbed = false;
};

/// A program on the device under test. The runner must outlive it.
class KernelVariant {
public:
  /// Runs it and compares the results: with the reference's, and where the case
  /// has more rows, with those of the first variant that agreed; or, once there
  /// is one, of the first that agreed and does not round its rows to bf16.
  Result<ResultDifference> check();
  /// Seconds of each of `runs` runs, as the device measures them, all
  /// dispatches together. The first run ever is not among them. `tokens` are
  /// the case's first rows that it runs with; 0: all of them. Errors: `tokens`
  /// are more, or too few for the program.
  Result<std::vector<double>>
  measure(int64_t runs, CancelFlag cancelled = nullptr, int64_t tokens = 0);

private:
  friend class KernelRunner;
  KernelVariant(KernelRunner &runner, std::unique_ptr<LoadedProgram> loaded)
      : runner(runner), loaded(std::move(loaded)) {}

  Result<Instance *> instanceFor(int64_t copy);
  Result<std::vector<HostTensor>> run(int64_t tokens);
  /// Runs once on each of the next copies.
  Status measureSome(std::span<double> seconds, int64_t tokens,
                     CancelFlag cancelled);

  KernelRunner &runner;
  std::unique_ptr<LoadedProgram> loaded;
  ResultTolerance tolerance;
  std::unique_ptr<Buffer> arena;                    ///< may be null
  std::vector<std::unique_ptr<Instance>> instances; ///< by copy
  bool isWarm = false;
};

} // namespace kf

#endif // KF_RUNTIME_TUNING_KERNELRUNNER_H
