//===- StepPrograms.cpp - A step's programs and their buffers -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/StepPrograms.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Stopwatch.h"

#include <array>
#include <iterator>

using namespace kf;

/// Choices read what heads give, and end before them.
StepPrograms::~StepPrograms() {
  work.reset();
  while (!programs.empty())
    programs.erase(std::prev(programs.end()));
}

Result<Stream *> StepPrograms::stream() {
  if (!work) {
    KF_ASSIGN_OR_RETURN(work, model.device().createStream());
  }
  return work.get();
}

ProgramRunner *StepPrograms::find(const StepShape &shape) const {
  const auto found = programs.find(shape);
  return found == programs.end() ? nullptr : found->second.get();
}

/// What the program of `shape` shares with others.
Result<OutsideBuffers> StepPrograms::buffersOf(const StepShape &shape) {
  OutsideBuffers outside;
  if (shape.part == StepPart::Choose) {
    const ProgramRunner *head = find({StepPart::Head, shape.rows});
    if (!head)
      return Status::error(nameOf(shape) + " has no head whose logits it reads",
                           StatusCode::Internal);
    outside.inputs[numberOf(kStepLogits)] = &head->output(0);
    return outside;
  }
  // Its rows go to the next stage.
  if (shape.part == StepPart::Body && !model.config().stage.isLast())
    return outside;
  if (!hidden) {
    KF_ASSIGN_OR_RETURN(
        const int64_t bytes,
        checkedByteCount(DataType::F32,
                         std::array{mostRows, model.config().hiddenSize}));
    KF_ASSIGN_OR_RETURN(hidden,
                        model.device().allocate(static_cast<uint64_t>(bytes)));
  }
  if (shape.part == StepPart::Body)
    outside.outputs[0] = hidden.get();
  else
    outside.inputs[numberOf(kStepHidden)] = hidden.get();
  return outside;
}

Status StepPrograms::bind(const StepShape &shape) try {
  if (find(shape))
    return Status();
  KF_ASSIGN_OR_RETURN(LoadedProgram * program, model.program(shape));
  const Stopwatch watch;
  const double packed = model.weights().seconds();
  KF_ASSIGN_OR_RETURN(Stream * own, stream());
  KF_ASSIGN_OR_RETURN(const OutsideBuffers outside, buffersOf(shape));
  Result<std::unique_ptr<ProgramRunner>> made = ProgramRunner::create(
      *program, model.device(), model.weights(), cache, own, outside);
  binding += watch.seconds() - (model.weights().seconds() - packed);
  if (!made.ok())
    return made.status();
  (*made)->setProfile(profile);
  programs.emplace(shape, made.take());
  return Status();
} catch (...) {
  return statusOfException();
}

uint64_t StepPrograms::arenaBytes() const {
  uint64_t total = 0;
  for (const auto &[shape, program] : programs)
    total += program->arenaBytes();
  return total;
}

uint64_t StepPrograms::ioBytes() const {
  uint64_t total = hidden ? hidden->size() : 0;
  for (const auto &[shape, program] : programs)
    total += program->ioBytes();
  return total;
}
