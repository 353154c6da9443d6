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

//===----------------------------------------------------------------------===//
// StepBatch
//===----------------------------------------------------------------------===//

void StepBatch::addRow(int32_t id, int64_t position) {
  ids.push_back(id);
  positions.push_back(static_cast<int32_t>(position));
  sequences.push_back(static_cast<int32_t>(pages.size()) - 1);
}

void StepBatch::want(const SampleSettings &settings,
                     const SamplePenalties &penalties,
                     std::span<const LogitAdjustment> adjustments,
                     std::span<const uint32_t> allowed) {
  want();
  temperature.push_back(settings.temperature);
  topK.push_back(settings.topK);
  topP.push_back(settings.topP);
  minP.push_back(settings.minP);
  seed.push_back(static_cast<int64_t>(settings.seed));
  counter.push_back(static_cast<int32_t>(settings.counter));
  repetition.push_back(penalties.repetition);
  presence.push_back(penalties.presence);
  frequency.push_back(penalties.frequency);
  first.push_back(static_cast<int32_t>(adjustedIds.size()));
  count.push_back(static_cast<int32_t>(adjustments.size()));
  for (const LogitAdjustment &adjustment : adjustments) {
    adjustedIds.push_back(adjustment.id);
    seen.push_back(adjustment.seen);
    bias.push_back(adjustment.bias);
  }
  masked.push_back(allowed.empty() ? -1 : masks++);
  mask.insert(mask.end(), allowed.begin(), allowed.end());
}

void StepBatch::clear() {
  auto empty = [](auto &...lists) { (lists.clear(), ...); };
  empty(ids, positions, sequences, pages, wanted, temperature, topP, minP, topK,
        counter, first, count, seed, repetition, presence, frequency,
        adjustedIds, seen, bias, masked, mask);
  masks = 0;
}

//===----------------------------------------------------------------------===//
// StepRunner
//===----------------------------------------------------------------------===//

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

/// Writes `values` where the input has others: most of what steps take is the
/// same from token to token. In pieces that need not be waited for.
template <typename T>
Status StepRunner::write(StepInput input, const std::vector<T> &values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
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
Status StepRunner::writePages(const StepBatch &batch) {
  const std::vector<int64_t> &dims =
      program->program().inputs[kStepPageTable].shape;
  const size_t columns = static_cast<size_t>(dims[1]);
  table.resize(batch.pages.size() * columns);
  for (size_t i = 0; i < batch.pages.size(); ++i)
    std::ranges::copy(batch.pages[i],
                      table.begin() + static_cast<ptrdiff_t>(i * columns));
  return write(kStepPageTable, table);
}

Status StepRunner::writeSampling(const StepBatch &batch) {
  KF_RETURN_IF_ERROR(write(kStepTemperature, batch.temperature));
  KF_RETURN_IF_ERROR(write(kStepTopK, batch.topK));
  KF_RETURN_IF_ERROR(write(kStepTopP, batch.topP));
  KF_RETURN_IF_ERROR(write(kStepMinP, batch.minP));
  KF_RETURN_IF_ERROR(write(kStepSeed, batch.seed));
  KF_RETURN_IF_ERROR(write(kStepCounter, batch.counter));
  KF_RETURN_IF_ERROR(write(kStepFirst, batch.first));
  KF_RETURN_IF_ERROR(write(kStepCount, batch.count));
  KF_RETURN_IF_ERROR(write(kStepRepetition, batch.repetition));
  KF_RETURN_IF_ERROR(write(kStepPresence, batch.presence));
  KF_RETURN_IF_ERROR(write(kStepFrequency, batch.frequency));
  KF_RETURN_IF_ERROR(write(kStepAdjustedIds, batch.adjustedIds));
  KF_RETURN_IF_ERROR(write(kStepSeen, batch.seen));
  KF_RETURN_IF_ERROR(write(kStepBias, batch.bias));
  KF_RETURN_IF_ERROR(write(kStepMasked, batch.masked));
  return write(kStepMask, batch.mask);
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

Status StepRunner::writeInputs(const StepBatch &batch, const Source *source) {
  KF_RETURN_IF_ERROR(source ? copyIds(*source) : write(kStepIds, batch.ids));
  KF_RETURN_IF_ERROR(write(kStepPositions, batch.positions));
  KF_RETURN_IF_ERROR(write(kStepSequences, batch.sequences));
  KF_RETURN_IF_ERROR(writePages(batch));
  KF_RETURN_IF_ERROR(write(kStepWanted, batch.wanted));
  return shape.output == StepOutput::Ids ? writeSampling(batch) : Status();
}

StepSizes StepRunner::sizesOf(const StepBatch &batch) const {
  StepCounts counts;
  counts.tokens = batch.rows();
  counts.sequences = static_cast<int64_t>(batch.pages.size());
  counts.wanted = static_cast<int64_t>(batch.wanted.size());
  counts.adjustments = static_cast<int64_t>(batch.adjustedIds.size());
  counts.masks = batch.masks;
  return StepSizes(stepScalars(shape, counts));
}

Status StepRunner::run(const StepBatch &batch, CancelFlag cancelled) try {
  KF_RETURN_IF_ERROR(writeInputs(batch, nullptr));
  return program->execute(sizesOf(batch), cancelled);
} catch (...) {
  return statusOfException();
}

Result<uint64_t> StepRunner::start(const StepBatch &batch, CancelFlag cancelled,
                                   const Source *source) try {
  if (isCancelled(cancelled))
    return Status::cancelled();
  KF_RETURN_IF_ERROR(writeInputs(batch, source));
  const StepSizes sizes = sizesOf(batch);
  Slot &slot = slotOf(started);
  slot.wanted = batch.wanted.size();
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
