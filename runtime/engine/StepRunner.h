//===- StepRunner.h - One size of step, ready to run ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_STEPRUNNER_H
#define KF_RUNTIME_ENGINE_STEPRUNNER_H

#include "runtime/core/SamplingMath.h"
#include "runtime/engine/ProgramRunner.h"
#include "runtime/model/Step.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kf {

/// What a step reads and what is wanted of it: the inputs that
/// runtime/model/Step.h lists, those of rows in the order of the rows.
struct StepBatch {
  std::vector<int32_t> ids, positions, sequences; ///< [T]
  std::vector<std::span<const int32_t>> pages;    ///< [S], in use; not owned
  std::vector<int32_t> wanted;                    ///< [L]

  std::vector<float> temperature, topP, minP; ///< [L], as what follows
  std::vector<int32_t> topK, counter, first, count;
  std::vector<int64_t> seed;
  std::vector<float> repetition, presence, frequency;
  std::vector<int32_t> adjustedIds, seen; ///< [A]
  std::vector<float> bias;                ///< [A]
  std::vector<int32_t> masked;            ///< [L]
  std::vector<uint32_t> mask;             ///< [M, words of a mask]
  int32_t masks = 0;                      ///< M

  int64_t rows() const { return static_cast<int64_t>(ids.size()); }
  /// Adds a row of the last of `pages`.
  void addRow(int32_t id, int64_t position);
  /// Asks for what follows the last row. A step that chooses tokens needs to
  /// know how.
  void want() { wanted.push_back(static_cast<int32_t>(rows() - 1)); }
  /// `allowed` has a bit for each token of the vocabulary, or is empty: any.
  void want(const SampleSettings &settings, const SamplePenalties &penalties,
            std::span<const LogitAdjustment> adjustments,
            std::span<const uint32_t> allowed = {});
  void clear();
};

/// A step's program with its buffers. Refers to what ProgramRunner does. One
/// thread.
class StepRunner {
public:
  /// `program` was compiled for `shape` and fits the model; `stream` outlives
  /// the use of this.
  static Result<std::unique_ptr<StepRunner>>
  create(LoadedProgram &program, const StepShape &shape, Device &device,
         WeightStore &weights, KVCache &cache, Stream &stream);

  /// Runs `batch`, which fits the shape, and waits. Errors: as
  /// ProgramRunner::execute().
  Status run(const StepBatch &batch, CancelFlag cancelled);
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
  /// the ids of `batch` say nothing. Returns its number for finish(). Errors:
  /// as ProgramRunner::execute().
  Result<uint64_t> start(const StepBatch &batch, CancelFlag cancelled,
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
  StepSizes sizesOf(const StepBatch &batch) const;
  Status writeInputs(const StepBatch &batch, const Source *source);
  Status writeSampling(const StepBatch &batch);
  Status writePages(const StepBatch &batch);
  template <typename T>
  Status write(StepInput input, const std::vector<T> &values);

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
