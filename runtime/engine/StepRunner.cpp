//===- StepRunner.cpp - One size of step, ready to run --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/StepRunner.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <utility>

using namespace kf;

StepRunner::StepRunner(std::unique_ptr<ProgramRunner> program,
                       const StepShape &shape)
    : program(std::move(program)), shape(shape),
      written(this->program->program().inputs.size()) {}

Result<std::unique_ptr<StepRunner>>
StepRunner::create(LoadedProgram &program, const StepShape &shape,
                   Device &device, WeightStore &weights, KVCache &cache,
                   Stream &stream) try {
  KF_ASSIGN_OR_RETURN(
      std::unique_ptr<ProgramRunner> runner,
      ProgramRunner::create(program, device, weights, cache, &stream));
  std::unique_ptr<StepRunner> self(new StepRunner(std::move(runner), shape));
  if (shape.output == StepOutput::Ids)
    KF_RETURN_IF_ERROR(self->prepareSlots(device));
  return self;
} catch (...) {
  return statusOfException();
}

Status StepRunner::prepareSlots(Device &device) {
  for (Slot &slot : slots) {
    KF_ASSIGN_OR_RETURN(
        slot.ids,
        device.allocate(static_cast<uint64_t>(shape.wanted) * sizeof(int32_t),
                        MemoryKind::HostPinned));
    KF_ASSIGN_OR_RETURN(slot.done, device.createEvent());
  }
  return Status();
}

/// Writes `bytes` where the input has others: most of what steps take is the
/// same from token to token. In pieces that need not be waited for.
Status StepRunner::write(size_t input, std::span<const std::byte> bytes) {
  std::vector<std::byte> &known = written[input];
  for (size_t at = 0, end; at < bytes.size(); at = end) {
    end = std::min<size_t>(bytes.size(), at + Stream::smallUpload);
    const auto piece = bytes.subspan(at, end - at);
    if (known.size() >= end &&
        std::ranges::equal(piece, std::span(known).subspan(at, piece.size())))
      continue;
    std::vector<std::byte> held = std::exchange(known, {});
    KF_RETURN_IF_ERROR(program->write(input, at, piece.data(), piece.size()));
    held.resize(std::max(held.size(), end));
    std::ranges::copy(piece, held.begin() + static_cast<ptrdiff_t>(at));
    known = std::move(held); // nothing while that is not sure
  }
  return Status();
}

void StepRunner::forgetInputs() {
  for (std::vector<std::byte> &known : written)
    known.clear();
}

/// The table's columns are pages of a sequence; those that it has not are not
/// read.
Status StepRunner::writePages(const StepPlan &plan) {
  const std::vector<int64_t> &dims =
      program->program().inputs[kStepPageTable].shape;
  const size_t columns = static_cast<size_t>(dims[1]);
  table.resize(plan.pages.size() * columns);
  for (size_t i = 0; i < plan.pages.size(); ++i)
    std::ranges::copy(plan.pages[i],
                      table.begin() + static_cast<ptrdiff_t>(i * columns));
  return write(kStepPageTable, std::as_bytes(std::span(table)));
}

/// Neighbours go at once.
Status StepRunner::copyIds(const Source &source) {
  written[kStepIds].clear();
  const std::vector<uint32_t> &rows = source.rows;
  for (size_t first = 0, end; first < rows.size(); first = end) {
    for (end = first + 1; end < rows.size() && rows[end] == rows[end - 1] + 1;)
      ++end;
    KF_RETURN_IF_ERROR(program->copyInput(
        kStepIds, first * sizeof(int32_t), *source.step->program, 0,
        rows[first] * sizeof(int32_t), (end - first) * sizeof(int32_t)));
  }
  return Status();
}

Status StepRunner::writeInputs(const StepPlan &plan, const Source *source) {
  for (size_t input = 0; input < written.size(); ++input) {
    if (input == kStepIds && source)
      KF_RETURN_IF_ERROR(copyIds(*source));
    else if (input == kStepPageTable)
      KF_RETURN_IF_ERROR(writePages(plan));
    else
      KF_RETURN_IF_ERROR(write(input, plan.columns[input]));
  }
  return Status();
}

Status StepRunner::run(const StepPlan &plan, CancelFlag cancelled) try {
  KF_RETURN_IF_ERROR(writeInputs(plan, nullptr));
  return program->execute(StepSizes(stepScalars(shape, plan.counts())),
                          cancelled);
} catch (...) {
  return statusOfException();
}

Result<uint64_t> StepRunner::start(const StepPlan &plan, CancelFlag cancelled,
                                   const Source *source) try {
  if (isCancelled(cancelled))
    return Status::cancelled();
  KF_RETURN_IF_ERROR(writeInputs(plan, source));
  const StepSizes sizes = StepSizes(stepScalars(shape, plan.counts()));
  Slot &slot = slotOf(started);
  slot.wanted = static_cast<size_t>(plan.wanted());
  Status status =
      isMeasured ? program->execute(sizes, cancelled) : program->start(sizes);
  if (status && slot.wanted > 0)
    status = program->fetch(0, *slot.ids, slot.wanted * sizeof(int32_t));
  if (status)
    status = program->workStream().record(*slot.done);
  KF_RETURN_IF_ERROR(status);
  return started++;
} catch (...) {
  return statusOfException();
}

Result<std::span<const int32_t>> StepRunner::finish(uint64_t number,
                                                    CancelFlag cancelled) try {
  assert(number < started && started - number <= slots.size() &&
         "a step that is not known any more");
  Slot &slot = slotOf(number);
  if (Status status = slot.done->synchronize(cancelled); !status) {
    // What else there is was dropped, or is of no use.
    (void)program->workStream().synchronize(cancelled);
    return status;
  }
  return std::span(static_cast<const int32_t *>(slot.ids->hostPointer()),
                   slot.wanted);
} catch (...) {
  return statusOfException();
}

Result<std::span<const float>> StepRunner::logits(size_t index) {
  const size_t columns =
      static_cast<size_t>(program->program().outputs[0].shape[1]);
  const uint64_t bytes = columns * sizeof(float);
  KF_ASSIGN_OR_RETURN(const void *row, program->read(0, index * bytes, bytes));
  return std::span(static_cast<const float *>(row), columns);
}
