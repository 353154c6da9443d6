//===- ProgramRunner.h - One program, ready to run --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_PROGRAMRUNNER_H
#define KF_RUNTIME_ENGINE_PROGRAMRUNNER_H

#include "runtime/devices/Device.h"
#include "runtime/engine/KVCache.h"
#include "runtime/measure/Profile.h"
#include "runtime/weights/WeightStore.h"

#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kf {

/// "2x8xf32", as tensor literals spell it; "?" for a size of the step.
std::string describe(const TensorSpec &spec);

/// The sizes of one step.
struct StepSizes {
  /// Named sizes come in the order of Executable::namedSizes.
  StepSizes(int64_t tokens, std::initializer_list<int64_t> named = {});
  explicit StepSizes(const std::array<int64_t, KF_SCALAR_COUNT> &scalars)
      : scalars(scalars) {}

  std::array<int64_t, KF_SCALAR_COUNT> scalars = {}; ///< in their slots
};

/// Buffers that inputs and outputs of a program are bound to, by number,
/// instead of ones of its own: those of other programs, which so need no
/// copies. Not owned; they outlive the runner. What is too small for the sizes
/// of a run is an error of that run.
struct OutsideBuffers {
  std::map<size_t, Buffer *> inputs = {}, outputs = {};
};

/// One program on one Device with all its buffers. Owns its arena and the
/// buffers of its inputs and outputs, but for OutsideBuffers; refers to
/// `device`, `weights` and `cache`, which must outlive it. One thread.
class ProgramRunner {
public:
  /// Loads the program, packs the weights that `weights` lacks, and binds all
  /// buffers.
  static Result<std::unique_ptr<ProgramRunner>>
  create(const Executable &executable, Device &device, WeightStore &weights,
         KVCache &cache);
  /// The same of a program that is loaded, and outlives the runner. Its work is
  /// done in `stream`, which outlives its use; null: in one of its own.
  static Result<std::unique_ptr<ProgramRunner>>
  create(LoadedProgram &loaded, Device &device, WeightStore &weights,
         KVCache &cache, Stream *stream = nullptr,
         const OutsideBuffers &outside = {});

  /// Runs the program once. Dynamic dimensions of `inputs` say what its sizes
  /// are; for a program that has tokens in its outputs alone `nTokens` does.
  /// Errors: inputs that do not fit the program, before anything runs.
  Result<std::vector<HostTensor>> run(std::span<const HostTensor> inputs,
                                      std::optional<int64_t> nTokens = {});
  /// What run() takes from `inputs`.
  Result<StepSizes> sizesOf(std::span<const HostTensor> inputs,
                            std::optional<int64_t> nTokens = {}) const;

  /// Has every run from now on measured, and added to `profile`, which must
  /// outlive them; null: none. What was written before is not known to it:
  /// attention to a cache, whose work depends on inputs, has none then.
  void setProfile(Profile *profile);

  // The same in steps, for callers that keep inputs and outputs in place.

  /// Writes `bytes` bytes of input number `index` from `offset` on; `data` is
  /// free again afterwards.
  Status write(size_t index, uint64_t offset, const void *data, uint64_t bytes);
  Status write(size_t index, const void *data, uint64_t bytes) {
    return write(index, 0, data, bytes);
  }
  /// Copies part of what an output of `from`, which works in the same stream,
  /// holds when its runs so far are over, to an input of this one.
  Status copyInput(size_t index, uint64_t offset, const ProgramRunner &from,
                   size_t output, uint64_t outputOffset, uint64_t bytes);
  /// Runs the program on what was written, with sizes within its limits. Ends
  /// before or between dispatches when `cancelled` is set, where the device
  /// can; outputs and the cache's rows of these tokens are undefined then.
  Status execute(const StepSizes &sizes, CancelFlag cancelled = nullptr);
  /// Has the program run, and does not wait for it; not where runs are
  /// measured.
  Status start(const StepSizes &sizes);
  /// Copies the first `bytes` bytes that output number `index` holds when the
  /// runs so far are over to the beginning of `target`.
  Status fetch(size_t index, Buffer &target, uint64_t bytes);
  /// Bytes [offset, offset + bytes) of output number `index`, valid until the
  /// next call.
  Result<const void *> read(size_t index, uint64_t offset, uint64_t bytes);

  const Executable &program() const { return executable; }
  /// The buffer of output number `index`, for OutsideBuffers of others.
  Buffer &output(size_t index) const {
    return *instance->buffers().outputs[index];
  }
  uint64_t arenaBytes() const { return arena ? arena->size() : 0; }
  /// Bytes of its own buffers of inputs and outputs.
  uint64_t ioBytes() const;

private:
  ProgramRunner(LoadedProgram &loaded, Device &device, int64_t cachePages)
      : loaded(loaded), executable(loaded.program()), device(device),
        cachePages(cachePages) {}

  Status prepare(WeightStore &weights, KVCache &cache,
                 const OutsideBuffers &outside);
  Buffer &input(size_t index) const {
    return *instance->buffers().inputs[index];
  }
  Status checkSizes(const StepSizes &sizes) const;
  Status executeProfiled(std::span<const int64_t> scalars,
                         CancelFlag cancelled);

  std::unique_ptr<LoadedProgram> ownProgram; ///< may be null
  LoadedProgram &loaded;
  const Executable &executable; ///< without its binary
  Device &device;
  int64_t cachePages; ///< of each pool
  std::unique_ptr<Buffer> arena;
  std::vector<std::unique_ptr<Buffer>> owned; ///< of inputs and outputs
  std::vector<std::byte> staging; ///< what read() copied from the device
  Profile *profile = nullptr;
  /// What inputs hold that kernels' work depends on, where there is a profile.
  std::map<uint32_t, std::vector<int32_t>> watched;
  std::unique_ptr<Instance> instance;
  Stream *stream = nullptr;
  std::unique_ptr<Stream> ownStream; ///< null where the work is in another one
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_PROGRAMRUNNER_H
