//===- EngineAhead.cpp - Steps that begin before they are asked for -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While the device computes a step that chooses tokens, the next one is put
// behind it: it reads these tokens where they are, on the device. When the host
// learns of them, and callers have read on as they said that they would
// (Reading::goesOn), the step is theirs. A row whose reading is another one, or
// none, a text that has ended for instance, is computed and thrown away: its
// keys and values lie behind the end of the sequence, where nobody looks and
// the next step writes.
//
// One step is ahead at most, and only where all that there is to read is in the
// step before, or waits for pages that there are not, so that nothing waits for
// it.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Exceptions.h"
#include "runtime/engine/Engine.h"

#include <algorithm>
#include <cassert>
#include <utility>

using namespace kf;

/// Whether the next step can follow `plan`, which is committed: nobody else
/// reads but those that wait for pages, and there are none for them.
bool Engine::mayBeginAhead() {
  if (!*options.runsAhead || options.profile || isCancelled())
    return false;
  auto isWhole = [](const Piece &piece) {
    return !piece.sequence || piece.sequence->isWhole();
  };
  auto isInPlan = [&](const ScheduledReading *reading) {
    return std::ranges::find(plan.pieces,
                             static_cast<const Sequence *>(reading),
                             &Piece::sequence) != plan.pieces.end();
  };
  auto isInPlanOrWaits = [&](const ScheduledReading *reading) {
    return !reading->begun() || isInPlan(reading);
  };
  return std::ranges::all_of(plan.pieces, isWhole) &&
         std::ranges::all_of(scheduler.queue(), isInPlanOrWaits) &&
         !scheduler.anyCouldBegin();
}

/// Puts the rows of readings that go on into `next`. All or none: who is not in
/// it would wait for it.
Status Engine::planAhead(Ahead &next) {
  StepPlan &batch = next.plan.batch;
  size_t row = 0;
  for (const Piece &piece : plan.pieces) {
    const size_t source = row;
    row += piece.wanted;
    if (!piece.sequence || !piece.wanted || !piece.sequence->reading->goesOn)
      continue;
    Sequence &sequence = *piece.sequence;
    const Sampler &sampler = *sequence.reading->sampler;
    const int64_t position = sequence.position();
    // Pages that others have are not copied here, where nobody asks yet.
    if (sampler.dependsOnTokens() || sequence.reading->constraint ||
        position >= options.contextLength ||
        (position % kCachePage != 0 && sequence.pages.pagesFor(1) > 0))
      return Status::cancelled();
    Expected expected;
    expected.settings = sampler.settings();
    ++expected.settings.counter;
    expected.penalties = sampler.penalties();
    expected.adjustments = adjustmentsOf(sampler);
    // First, so that whoever has pages is in the plan.
    next.plan.pieces.push_back({&sequence, 1, 1});
    next.source.push_back(static_cast<uint32_t>(source));
    KF_RETURN_IF_ERROR(sequence.pages.reserve(1, next.plan.batch.copies));
    batch.pages.push_back(sequence.pages.pages());
    batch.addRow(/*id=*/0, position);
    batch.want(expected.settings, expected.penalties, expected.adjustments);
    next.expected.push_back(std::move(expected));
  }
  assert(next.plan.batch.copies.empty() && "a page of its own is not copied");
  return Status();
}

/// Without `next.begun`, it has not begun.
Status Engine::tryBeginAhead(const Begun &before, Ahead &next) {
  KF_RETURN_IF_ERROR(planAhead(next));
  const StepPlan &batch = next.plan.batch;
  if (next.plan.pieces.empty() || batch.adjustments() > adjustmentLimit())
    return Status();
  // What has to be made ready first would keep the tokens waiting.
  const auto found = runners.find(
      shapeOf(batch.rows(), next.plan.pieces.size(), next.plan.output));
  if (found == runners.end())
    return Status();
  StepRunner &runner = *found->second;
  const StepRunner::Source source = {before.runner, next.source};
  KF_ASSIGN_OR_RETURN(next.begun.number,
                      runner.start(batch, options.cancelled, &source));
  next.begun.runner = &runner;
  return Status();
}

/// Begins with what follows the plan's step, which is in the stream as
/// `before`. What keeps it from beginning is seen when it is asked for.
void Engine::beginAhead(const Begun &before) {
  if (!mayBeginAhead())
    return;
  Ahead next;
  const Status status =
      catchExceptions([&] { return tryBeginAhead(before, next); });
  if (status && next.begun.runner)
    ahead = std::move(next);
  else
    dropAhead(next);
}

/// Remembers what the plan's step has chosen, of which the next one goes on.
void Engine::expectChosen(std::span<const int32_t> chosen) {
  if (!ahead)
    return;
  for (size_t i = 0; i < ahead->expected.size(); ++i)
    ahead->expected[i].id = chosen[ahead->source[i]];
}

bool Engine::isAsExpected(const Piece &piece, const Expected &expected) const {
  const Sequence &sequence = *piece.sequence;
  if (!sequence.reading || sequence.next != 0)
    return false;
  const Reading &reading = *sequence.reading;
  return sequence.ids.size() == 1 && sequence.ids.front() == expected.id &&
         !reading.onLogits && reading.sampler && !reading.constraint &&
         reading.sampler->settings() == expected.settings &&
         reading.sampler->penalties() == expected.penalties &&
         adjustmentsOf(*reading.sampler) == expected.adjustments;
}

/// Callers have read on, or not: what of the next step is theirs is known. What
/// there is no memory to compare is none of theirs.
void Engine::settleAhead() {
  if (!ahead)
    return;
  bool isWanted = false;
  for (size_t i = 0; i < ahead->plan.pieces.size(); ++i) {
    Piece &piece = ahead->plan.pieces[i];
    const Result<bool> isTheirs = catchExceptions([&]() -> Result<bool> {
      return piece.sequence && isAsExpected(piece, ahead->expected[i]);
    });
    if (piece.sequence && !(isTheirs.ok() && *isTheirs)) {
      Sequence &sequence = *std::exchange(piece.sequence, nullptr);
      sequence.pages.truncate(sequence.position());
    }
    isWanted |= piece.sequence != nullptr;
  }
  if (!isWanted)
    ahead.reset();
}

/// What is ahead of `sequence` is nobody's.
void Engine::forgetAhead(const Sequence &sequence) {
  if (!ahead)
    return;
  for (Piece &piece : ahead->plan.pieces)
    if (piece.sequence == &sequence)
      piece.sequence = nullptr;
}

/// Gives back the pages that were reserved.
void Engine::dropAhead(Ahead &dropped) {
  for (const Piece &piece : dropped.plan.pieces)
    piece.sequence->pages.truncate(piece.sequence->position());
}
