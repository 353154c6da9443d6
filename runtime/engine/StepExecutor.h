//===- StepExecutor.h - Steps on a device -----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   uint64_t step = executor.submit(plan, body, head, cancelled).take();
//   executor.choose(step, plan, choose);
//   std::span<const int32_t> ids = executor.wait(step, cancelled).take();
//
// Where the model has several ranks, this one is the first of them, and tells
// the others what to do ahead of doing it itself: runs meet in collectives. A
// step that has begun is not cancelled then, as the others are in it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_STEPEXECUTOR_H
#define KF_RUNTIME_ENGINE_STEPEXECUTOR_H

#include "runtime/engine/KVCache.h"
#include "runtime/engine/Model.h"
#include "runtime/engine/StepPlan.h"
#include "runtime/engine/StepPrograms.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace kf {

/// Runs steps as they are planned, one after the other in one stream. Decides
/// nothing. Refers to `model` and `cache`, which must outlive it. One thread.
class StepExecutor {
public:
  /// Allocates nothing yet. Steps have at most `mostRows` rows, and want at
  /// most `mostChosen` tokens; what the last `steps` chose is kept.
  StepExecutor(Model &model, KVCache &cache, int64_t mostRows,
               int64_t mostChosen, size_t steps)
      : model(model), cache(cache), mostRows(mostRows), mostChosen(mostChosen),
        slots(steps), programs(model, cache, mostRows),
        windowTables(
            static_cast<size_t>(cacheWindowsOf(model.config()).moreTables())) {}
  StepExecutor(const StepExecutor &) = delete;
  StepExecutor &operator=(const StepExecutor &) = delete;

  /// Makes a program ready, so that no step has to wait for it. Errors: as
  /// Model::program(), and the device's.
  Status prepare(const StepShape &shape);
  /// Whether a program is ready.
  bool isReady(const StepShape &shape) const { return parts.contains(shape); }

  /// Makes the copies of pages that a plan has, and waits.
  Status copyPages(std::span<const PageCopy> copies);

  /// Of a step whose ids are what another one chooses: its number, and which
  /// of its wanted rows each row reads.
  struct Source {
    uint64_t step = 0;
    std::vector<uint32_t> rows = {}; ///< [T]
  };
  /// Begins with the plan's rows, and with the logits of its wanted rows if
  /// there are any, in programs of `body` and `head` rows at most, which are
  /// ready. Does not wait unless it is measured. Others may begin before it is
  /// over, as many as are kept, and go behind it. With `source`, the ids of
  /// `plan` say nothing. Returns the step's number. Errors: as
  /// ProgramRunner::execute().
  Result<uint64_t> submit(const StepPlan &plan, int64_t body, int64_t head,
                          CancelFlag cancelled, const Source *source = nullptr);
  /// How many steps have begun so far, those included that failed when they
  /// were to choose: the next one's number.
  uint64_t begun() const { return started; }
  /// Chooses the tokens behind the wanted rows of the step that was submitted
  /// last, of which `plan` says how, with as many rows at most as its head; and
  /// has the logits of `plan.fetchedRows` come to the host.
  Status choose(uint64_t step, const StepPlan &plan, CancelFlag cancelled);
  /// Waits for a step of those that are kept; returns what it chose for its
  /// wanted rows, valid until it is kept no more. -1: a row's logits are not
  /// finite. Errors: as Stream::synchronize(), which is called then: steps
  /// behind it fail, too.
  Result<std::span<const int32_t>> wait(uint64_t step, CancelFlag cancelled);

  /// The logits behind fetched row number `index` of a step that was waited
  /// for, valid as long as what it chose.
  std::span<const float> fetchedLogits(uint64_t step, size_t index);

  /// Computes the logits, or the embeddings, of rows of the step that was
  /// submitted last, of `tokens` rows, in the program of `shape`, which is
  /// ready and has room for them; and waits.
  Status compute(const StepShape &shape, std::span<const int32_t> rows,
                 int64_t tokens, CancelFlag cancelled);
  /// Of these, `count` rows from number `first` on, one behind the other; valid
  /// until the next call.
  Result<std::span<const float>> computed(const StepShape &shape, size_t first,
                                          size_t count);

  /// What inputs hold is not known any more: a step ahead of them in the stream
  /// has failed, and they were dropped with it.
  void forgetInputs();

  /// As ProgramRunner::setProfile(), for all programs; before the first.
  void setProfile(Profile *wanted) {
    isMeasured = wanted != nullptr;
    programs.setProfile(wanted);
  }

  uint64_t arenaBytes() const { return programs.arenaBytes(); }
  uint64_t ioBytes() const { return programs.ioBytes(); }
  /// Seconds in binding programs to buffers, packing apart.
  double bindSeconds() const { return programs.bindSeconds(); }

private:
  /// A program that is bound.
  struct Part {
    StepShape shape;
    ProgramRunner *program;
    std::vector<std::vector<std::byte>> written; ///< what each input holds
  };
  /// What a step chose, on its way to the host.
  struct Slot {
    std::unique_ptr<Buffer> ids; ///< pinned, [mostChosen] i32
    /// Pinned, [fetched rows, V] f32; null until any are fetched.
    std::unique_ptr<Buffer> logits;
    std::unique_ptr<Event> done;
    const Part *choice = nullptr; ///< what chooses, once it was begun
    int64_t head = 0;             ///< rows of the head at most
    size_t wanted = 0;
  };

  Slot &slotOf(uint64_t step) { return slots[step % slots.size()]; }
  Part &partOf(StepPart part, int64_t rows) {
    return parts.at(StepShape{part, rows});
  }
  Status prepareSlots();
  Status bind(const StepShape &shape);
  CancelFlag withinStep(CancelFlag cancelled) const;
  Status run(Part &part, const StepCounts &counts, CancelFlag cancelled);
  Status copyIds(Part &body, const Source &source);
  Status fetchLogits(Slot &slot, std::span<const int32_t> rows);
  Status writePages(Part &body, const StepPlan &plan);
  Status write(Part &part, StepInput input, std::span<const std::byte> bytes);
  Status write(Part &part, size_t number, std::span<const std::byte> bytes);

  Model &model;
  KVCache &cache;
  int64_t mostRows, mostChosen;
  bool isMeasured = false;
  std::vector<Slot> slots; ///< of the last steps
  StepPrograms programs;   ///< their work ends before what it uses
  std::map<StepShape, Part> parts;
  Stream *stream = nullptr;   ///< the programs'; null until they have one
  uint64_t started = 0;       ///< steps, so far
  std::vector<int32_t> table; ///< [S, P]
  std::vector<std::vector<int32_t>> windowTables; ///< the same of windows
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_STEPEXECUTOR_H
