//===- StepExecutor.cpp - Steps on a device -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/StepExecutor.h"

#include "runtime/core/Exceptions.h"
#include "runtime/engine/RankLeader.h"

#include <algorithm>
#include <bit>
#include <utility>

using namespace kf;

//===----------------------------------------------------------------------===//
// Programs and buffers
//===----------------------------------------------------------------------===//

/// What may end a step that has begun: nothing where others are in it.
CancelFlag StepExecutor::withinStep(CancelFlag cancelled) const {
  return model.ranks() ? nullptr : cancelled;
}

Status StepExecutor::prepareSlots() {
  for (Slot &slot : slots) {
    if (slot.done)
      continue;
    KF_ASSIGN_OR_RETURN(slot.ids,
                        model.device().allocate(
                            static_cast<uint64_t>(mostChosen) * sizeof(int32_t),
                            MemoryKind::HostPinned));
    KF_ASSIGN_OR_RETURN(slot.done, model.device().createEvent());
  }
  return Status();
}

Status StepExecutor::prepare(const StepShape &shape) try {
  if (isReady(shape))
    return Status();
  // It reads that one's logits.
  if (shape.part == StepPart::Choose)
    KF_RETURN_IF_ERROR(prepare({StepPart::Head, shape.rows}));
  return bind(shape);
} catch (...) {
  return statusOfException();
}

Status StepExecutor::bind(const StepShape &shape) {
  // Others answer when they are through with what was begun, where they wait
  // for this rank; a device may begin with it when it is waited for.
  if (model.ranks() && stream)
    KF_RETURN_IF_ERROR(stream->synchronize());
  KF_RETURN_IF_ERROR(model.program(shape).status());
  KF_RETURN_IF_ERROR(prepareSlots());
  const auto own = [&] { return programs.bind(shape); };
  if (RankLeader *const ranks = model.ranks(); ranks && parts.empty()) {
    if (isMeasured)
      KF_RETURN_IF_ERROR(ranks->tell(BeginProfile()));
    KF_RETURN_IF_ERROR(
        ranks->tell(OpenCache{cache.pages(), mostRows, cache.positions()}));
  }
  if (RankLeader *const ranks = model.ranksWith(shape.part)) {
    const RankCommand binds = BindProgram{shape};
    KF_RETURN_IF_ERROR(ranks->together(std::span(&binds, 1), own));
  } else {
    KF_RETURN_IF_ERROR(own());
  }
  KF_ASSIGN_OR_RETURN(stream, programs.stream());
  ProgramRunner *const program = programs.find(shape);
  Part part = {shape, program, {}};
  part.written.resize(program->program().inputs.size());
  parts.emplace(shape, std::move(part));
  return Status();
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

Status StepExecutor::write(Part &part, StepInput input,
                           std::span<const std::byte> bytes) {
  return write(part, numberOf(input, model.config()), bytes);
}

/// Writes `bytes` where the input has others: most of what steps take is the
/// same from token to token. In pieces that need not be waited for.
Status StepExecutor::write(Part &part, size_t number,
                           std::span<const std::byte> bytes) {
  std::vector<std::byte> &known = part.written[number];
  for (size_t at = 0, end; at < bytes.size(); at = end) {
    end = std::min<size_t>(bytes.size(), at + Stream::smallUpload);
    const auto piece = bytes.subspan(at, end - at);
    if (known.size() >= end &&
        std::ranges::equal(piece, std::span(known).subspan(at, piece.size())))
      continue;
    std::vector<std::byte> held = std::exchange(known, {});
    if (RankLeader *const ranks = model.ranksWith(part.shape.part))
      KF_RETURN_IF_ERROR(ranks->tell(
          WriteInput{part.shape, static_cast<uint32_t>(number), at, piece}));
    KF_RETURN_IF_ERROR(
        part.program->write(number, at, piece.data(), piece.size()));
    held.resize(std::max(held.size(), end));
    std::ranges::copy(piece, held.begin() + static_cast<ptrdiff_t>(at));
    known = std::move(held); // nothing while that is not sure
  }
  return Status();
}

void StepExecutor::forgetInputs() {
  for (auto &[shape, part] : parts)
    for (std::vector<std::byte> &known : part.written)
      known.clear();
}

/// The tables' columns are pages of a sequence; those that it has not are not
/// read.
Status StepExecutor::writePages(Part &body, const StepPlan &plan) {
  const std::vector<int64_t> &dims =
      body.program->program().inputs[kStepPageTable].shape;
  const size_t columns = static_cast<size_t>(dims[1]);
  const size_t windows = windowTables.size();
  assert(plan.windowPages.size() == (windows > 0 ? plan.pages.size() : 0) &&
         "each sequence of a step has pages of windows");
  auto writeTable = [&](std::vector<int32_t> &table, size_t number,
                        auto pagesOf) {
    table.resize(plan.pages.size() * columns);
    for (size_t i = 0; i < plan.pages.size(); ++i)
      std::ranges::copy(pagesOf(i),
                        table.begin() + static_cast<ptrdiff_t>(i * columns));
    return write(body, number, std::as_bytes(std::span(table)));
  };
  KF_RETURN_IF_ERROR(writeTable(table, kStepPageTable,
                                [&](size_t i) { return plan.pages[i]; }));
  for (size_t window = 0; window < windows; ++window)
    KF_RETURN_IF_ERROR(writeTable(
        windowTables[window],
        numberOfWindow(static_cast<int64_t>(window) + 1, model.config()),
        [&](size_t i) -> std::span<const int32_t> {
          return plan.windowPages[i][window];
        }));
  return Status();
}

/// Neighbours go at once.
Status StepExecutor::copyIds(Part &body, const Source &source) {
  const Part *const choice = slotOf(source.step).choice;
  assert(choice && "a step that chooses nothing");
  assert(!model.hasStages() && "no rank but the last stage's has the ids");
  body.written[kStepIds].clear();
  const std::vector<uint32_t> &rows = source.rows;
  for (size_t first = 0, end; first < rows.size(); first = end) {
    for (end = first + 1; end < rows.size() && rows[end] == rows[end - 1] + 1;)
      ++end;
    const uint64_t offset = first * sizeof(int32_t),
                   from = rows[first] * sizeof(int32_t),
                   bytes = (end - first) * sizeof(int32_t);
    if (RankLeader *const ranks = model.ranks())
      KF_RETURN_IF_ERROR(ranks->tell(
          CopyInput{body.shape, kStepIds, offset, choice->shape, from, bytes}));
    KF_RETURN_IF_ERROR(body.program->copyInput(
        kStepIds, offset, *choice->program, 0, from, bytes));
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Status StepExecutor::copyPages(std::span<const PageCopy> copies) try {
  KF_ASSIGN_OR_RETURN(Stream * work, programs.stream());
  if (RankLeader *const ranks = model.ranks())
    KF_RETURN_IF_ERROR(ranks->tell(CopyPages{{copies.begin(), copies.end()}}));
  const Status status = cache.copyPages(*work, copies);
  const Status done = work->synchronize();
  return status.ok() ? done : status;
} catch (...) {
  return statusOfException();
}

/// Has a part run, whose inputs are written.
Status StepExecutor::run(Part &part, const StepCounts &counts,
                         CancelFlag cancelled) {
  const StepSizes sizes(stepScalars(part.shape, counts));
  if (RankLeader *const ranks = model.ranksWith(part.shape.part)) {
    KF_RETURN_IF_ERROR(ranks->tell(StartProgram{part.shape, sizes.scalars}));
    KF_RETURN_IF_ERROR(ranks->flush());
  }
  return isMeasured ? part.program->execute(sizes, withinStep(cancelled))
                    : part.program->start(sizes);
}

Result<uint64_t> StepExecutor::submit(const StepPlan &plan, int64_t body,
                                      int64_t head, CancelFlag cancelled,
                                      const Source *source) try {
  if (isCancelled(cancelled))
    return Status::cancelled();
  const StepCounts counts = plan.counts();
  Part &layers = partOf(StepPart::Body, body);
  KF_RETURN_IF_ERROR(source ? copyIds(layers, *source)
                            : write(layers, kStepIds, plan.columns[kStepIds]));
  for (StepInput input : {kStepPositions, kStepSequences})
    KF_RETURN_IF_ERROR(write(layers, input, plan.columns[input]));
  KF_RETURN_IF_ERROR(writePages(layers, plan));
  if (model.config().hasStates()) {
    assert(plan.columns[kStepStates].size() ==
               plan.pages.size() * sizeof(int32_t) &&
           "each sequence of a step has a slot");
    KF_RETURN_IF_ERROR(write(layers, kStepStates, plan.columns[kStepStates]));
  }
  if (hasInput(model.config(), kStepAdapters))
    KF_RETURN_IF_ERROR(
        write(layers, kStepAdapters, plan.columns[kStepAdapters]));
  KF_RETURN_IF_ERROR(run(layers, counts, cancelled));
  Slot &slot = slotOf(started);
  slot.choice = nullptr;
  slot.head = head;
  slot.wanted = 0;
  if (counts.wanted > 0) {
    Part &output = partOf(StepPart::Head, head);
    KF_RETURN_IF_ERROR(write(output, kStepWanted, plan.columns[kStepWanted]));
    KF_RETURN_IF_ERROR(run(output, counts, cancelled));
  } else {
    KF_RETURN_IF_ERROR(stream->record(*slot.done));
  }
  return started++;
} catch (...) {
  return statusOfException();
}

/// Ahead of what the next step's head writes.
Status StepExecutor::fetchLogits(Slot &slot, std::span<const int32_t> rows) {
  const uint64_t rowBytes =
      static_cast<uint64_t>(model.config().vocabSize) * sizeof(float);
  if (!rows.empty() &&
      (!slot.logits || slot.logits->size() < rows.size() * rowBytes)) {
    // Of a step that nobody waited for, copies may still come.
    // What became of it is nothing to this one.
    if (slot.logits)
      (void)slot.done->synchronize();
    const uint64_t room = std::bit_ceil(rows.size());
    KF_ASSIGN_OR_RETURN(
        slot.logits,
        model.device().allocate(room * rowBytes, MemoryKind::HostPinned));
  }
  Buffer &source = partOf(StepPart::Head, slot.head).program->output(0);
  for (size_t i = 0; i < rows.size(); ++i)
    KF_RETURN_IF_ERROR(stream->copy(*slot.logits, i * rowBytes, source,
                                    static_cast<uint64_t>(rows[i]) * rowBytes,
                                    rowBytes));
  return Status();
}

Status StepExecutor::choose(uint64_t step, const StepPlan &plan,
                            CancelFlag cancelled) try {
  assert(step + 1 == started && "another one's logits are there by now");
  if (isCancelled(withinStep(cancelled)))
    return Status::cancelled();
  Slot &slot = slotOf(step);
  Part &part = partOf(StepPart::Choose, slot.head);
  const StepCounts counts = plan.counts();
  for (size_t input = kStepLogits + 1; input < kStepInputCount; ++input)
    KF_RETURN_IF_ERROR(
        write(part, static_cast<StepInput>(input), plan.columns[input]));
  KF_RETURN_IF_ERROR(run(part, counts, cancelled));
  const size_t wanted = static_cast<size_t>(counts.wanted);
  KF_RETURN_IF_ERROR(
      part.program->fetch(0, *slot.ids, wanted * sizeof(int32_t)));
  KF_RETURN_IF_ERROR(fetchLogits(slot, plan.fetchedRows));
  KF_RETURN_IF_ERROR(stream->record(*slot.done));
  slot.choice = &part;
  slot.wanted = wanted;
  return Status();
} catch (...) {
  return statusOfException();
}

Result<std::span<const int32_t>> StepExecutor::wait(uint64_t step,
                                                    CancelFlag cancelled) try {
  assert(step < started && started - step <= slots.size() &&
         "a step that is not known any more");
  Slot &slot = slotOf(step);
  cancelled = withinStep(cancelled);
  if (Status status = slot.done->synchronize(cancelled); !status) {
    // What else there is was dropped, or is of no use.
    (void)stream->synchronize(cancelled);
    return status;
  }
  return std::span(static_cast<const int32_t *>(slot.ids->hostPointer()),
                   slot.wanted);
} catch (...) {
  return statusOfException();
}

std::span<const float> StepExecutor::fetchedLogits(uint64_t step,
                                                   size_t index) {
  const size_t columns = static_cast<size_t>(model.config().vocabSize);
  return std::span(
      static_cast<const float *>(slotOf(step).logits->hostPointer()) +
          index * columns,
      columns);
}

Status StepExecutor::compute(const StepShape &shape,
                             std::span<const int32_t> rows, int64_t tokens,
                             CancelFlag cancelled) try {
  if (isCancelled(cancelled))
    return Status::cancelled();
  Part &output = parts.at(shape);
  KF_RETURN_IF_ERROR(write(output, kStepWanted, std::as_bytes(rows)));
  StepCounts counts;
  counts.tokens = tokens;
  counts.wanted = static_cast<int64_t>(rows.size());
  KF_RETURN_IF_ERROR(run(output, counts, cancelled));
  return stream->synchronize(withinStep(cancelled));
} catch (...) {
  return statusOfException();
}

Result<std::span<const float>>
StepExecutor::computed(const StepShape &shape, size_t first, size_t count) {
  ProgramRunner &program = *parts.at(shape).program;
  const size_t columns =
      static_cast<size_t>(program.program().outputs[0].shape[1]);
  const uint64_t bytes = columns * sizeof(float);
  KF_ASSIGN_OR_RETURN(const void *rows,
                      program.read(0, first * bytes, count * bytes));
  return std::span(static_cast<const float *>(rows), count * columns);
}
