//===- StepRunner.h - One size of step, ready to run ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_STEPRUNNER_H
#define KF_RUNTIME_ENGINE_STEPRUNNER_H

#include "runtime/engine/ProgramRunner.h"
#include "runtime/engine/StepPlan.h"
#include "runtime/model/Step.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kf {

/// A step's program with its buffers. Refers to what ProgramRunner does. One
/// thread.
class StepRunner {
public:
  /// `program` was compiled for `shape` and fits the model; `stream` outlives
  /// the use of this.
  static Result<std::unique_ptr<StepRunner>>
  create(LoadedProgram &program, const StepShape &shape, Device &device,
         WeightStore &weights, KVCache &cache, Stream &stream);

  /// Runs `plan`, which fits the shape, and waits. Errors: as
  /// ProgramRunner::execute().
  Status run(const StepPlan &plan, CancelFlag cancelled);
  /// The logits of wanted row `index`, valid until the next call.
  Result<std::span<const float>> logits(size_t index);

  /// Of a step whose ids are what another one of the same stream chooses:
  /// which of its wanted rows each row reads.
  struct Source {
    StepRunner *step = nullptr;
    std::vector<uint32_t> rows = {}; ///< [T]
  };
  /// Begins with a step that chooses tokens, and does not wait unless it is
  /// measured. A second one may begin before the first is over. With `source`,
  /// the ids of `plan` say nothing. Returns its number for finish(). Errors:
  /// as ProgramRunner::execute().
  Result<uint64_t> start(const StepPlan &plan, CancelFlag cancelled,
                         const Source *source = nullptr);
  /// Waits for a step of the last two; returns what it chose for its wanted
  /// rows, valid until the second step from there begins. -1: a row's logits
  /// are not finite. Errors: as Stream::synchronize(), which is called then.
  Result<std::span<const int32_t>> finish(uint64_t number,
                                          CancelFlag cancelled);

  /// What inputs hold is not known any more: a step ahead of them in the stream
  /// has failed, and they were dropped with it.
  void forgetInputs();

  /// As ProgramRunner::setProfile(); before the first run.
  void setProfile(Profile *profile) {
    program->setProfile(profile);
    isMeasured = profile != nullptr;
  }

  uint64_t arenaBytes() const { return program->arenaBytes(); }
  uint64_t ioBytes() const { return program->ioBytes(); }

private:
  StepRunner(std::unique_ptr<ProgramRunner> program, const StepShape &shape);

  /// What a step chose, on its way to the host.
  struct Slot {
    std::unique_ptr<Buffer> ids; ///< pinned, [L] i32
    std::unique_ptr<Event> done;
    size_t wanted = 0;
  };

  Slot &slotOf(uint64_t number) { return slots[number % slots.size()]; }
  Status prepareSlots(Device &device);
  Status copyIds(const Source &source);
  Status writeInputs(const StepPlan &plan, const Source *source);
  Status writePages(const StepPlan &plan);
  Status write(size_t input, std::span<const std::byte> bytes);

  std::unique_ptr<ProgramRunner> program;
  StepShape shape;
  std::array<Slot, 2> slots; ///< of steps that choose tokens
  uint64_t started = 0;      ///< of them, so far
  bool isMeasured = false;
  std::vector<std::vector<std::byte>> written; ///< what each input holds
  std::vector<int32_t> table;                  ///< [S, P]
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_STEPRUNNER_H
