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
// What a token is chosen by may depend on those before it: penalties and
// grammars do. Then the next step's layers and logits are computed ahead, for
// all, and tokens are chosen of them when the host has learned of the ones
// before.
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
  // What the host still wants of this step's hidden rows is computed of them
  // where the next step's would come.
  if (!*options.runsAhead || options.profile || isCancelled() ||
      !plan.batch.logitRows.empty() || !plan.batch.embeddedRows.empty())
    return false;
  // Of drafts, the host says which are read, and there may be some behind what
  // is chosen here.
  auto isWhole = [](const Piece &piece) {
    return !piece.sequence ||
           (piece.sequence->isWhole() && piece.drafted == 0 &&
            !piece.sequence->reading->draftsNext);
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

/// Puts the rows of readings that go on into `next`, and into `source` which
/// rows of the plan's step choose their ids. All or none: who is not in it
/// would wait for it.
Status Engine::planAhead(Ahead &next, StepExecutor::Source &source) {
  StepPlan &batch = next.plan.batch;
  uint32_t row = 0;
  for (const Piece &piece : plan.pieces) {
    const uint32_t read = row;
    row += piece.isChosen;
    if (!piece.sequence || !piece.isChosen || !piece.sequence->reading->goesOn)
      continue;
    Sequence &sequence = *piece.sequence;
    const Sampler &sampler = *sequence.reading->sampler;
    const int64_t position = sequence.position();
    // Pages that others have are not copied here, where nobody asks yet.
    if (position >= options.contextLength ||
        (position % sequence.pages.pagePositions() != 0 &&
         sequence.pages.pagesFor(1) > 0))
      return Status::cancelled();
    next.choosesLater |=
        sampler.dependsOnTokens() || sequence.reading->constraint;
    Expected expected;
    expected.row = read;
    if (!next.choosesLater) {
      expected.choice = choiceOf(*sequence.reading);
      ++expected.choice.settings.counter;
    }
    // First, so that whoever has pages is in the plan.
    next.plan.pieces.push_back({&sequence, 1, 0, /*isChosen=*/true});
    source.rows.push_back(read);
    KF_RETURN_IF_ERROR(sequence.pages.reserve(1, next.plan.batch.copies));
    batch.addSequence(sequence.pages);
    batch.addRow(/*id=*/0, position, sequence.adapter());
    batch.want();
    next.expected.push_back(std::move(expected));
  }
  if (!next.choosesLater)
    for (size_t i = 0; i < next.expected.size(); ++i) {
      next.plan.pieces[i].isFetched = next.expected[i].choice.isFetched;
      next.expected[i].choice.addTo(batch);
    }
  assert(next.plan.batch.copies.empty() && "a page of its own is not copied");
  return Status();
}

/// Returns whether it has begun.
Result<bool> Engine::tryBeginAhead(uint64_t before, Ahead &next) {
  StepExecutor::Source source = {before};
  KF_RETURN_IF_ERROR(planAhead(next, source));
  const StepPlan &batch = next.plan.batch;
  if (next.plan.pieces.empty() || batch.adjustments() > adjustmentLimit())
    return false;
  next.plan.body = bodyRows(batch.rows(), next.plan.pieces.size());
  next.plan.head = headRows(batch.wanted());
  // What has to be made ready first would keep the tokens waiting.
  if (!executor.isReady({StepPart::Body, next.plan.body}) ||
      !executor.isReady({StepPart::Choose, next.plan.head}))
    return false;
  KF_ASSIGN_OR_RETURN(next.step,
                      executor.submit(batch, next.plan.body, next.plan.head,
                                      options.cancelled, &source));
  if (!next.choosesLater)
    KF_RETURN_IF_ERROR(executor.choose(next.step, batch, options.cancelled));
  return true;
}

/// Begins with what follows the plan's step, which is in the stream as number
/// `before`. What keeps it from beginning is seen when it is asked for.
void Engine::beginAhead(uint64_t before) {
  if (!mayBeginAhead())
    return;
  Ahead next;
  const Result<bool> begun =
      catchExceptions([&] { return tryBeginAhead(before, next); });
  if (begun.ok() && *begun)
    ahead = std::move(next);
  else
    dropAhead(next);
}

/// Remembers what the plan's step has chosen, of which the next one goes on.
void Engine::expectChosen(std::span<const int32_t> chosen) {
  if (!ahead)
    return;
  for (Expected &expected : ahead->expected)
    expected.id = chosen[expected.row];
}

bool Engine::isAsExpected(const Piece &piece, const Expected &expected) const {
  const Sequence &sequence = *piece.sequence;
  if (!sequence.reading || sequence.next != 0)
    return false;
  const Reading &reading = *sequence.reading;
  if (sequence.ids.size() != 1 || sequence.ids.front() != expected.id ||
      reading.onLogits || reading.onEmbedding || !reading.sampler)
    return false;
  return ahead->choosesLater || (reading.constraint == expected.constraint &&
                                 choiceOf(reading) == expected.choice);
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

/// Says how the tokens of the step ahead are chosen, if that is not said yet.
/// Where it fails, the step is nobody's, and what is read is read in another.
void Engine::chooseAhead() {
  if (!ahead || !ahead->choosesLater)
    return;
  ahead->choosesLater = false;
  if (catchExceptions([&] { return tryChooseAhead(); }).ok())
    return;
  executor.forgetInputs();
  dropAhead(*ahead);
  ahead.reset();
}

Status Engine::tryChooseAhead() {
  StepPlan &batch = ahead->plan.batch;
  for (size_t i = 0; i < ahead->plan.pieces.size(); ++i) {
    Piece &piece = ahead->plan.pieces[i];
    Choice &choice = ahead->expected[i].choice;
    choice = Choice(); // of one that is nobody's
    std::span<const uint32_t> allowed;
    if (piece.sequence) {
      const Reading &reading = *piece.sequence->reading;
      choice = choiceOf(reading);
      const Result<std::span<const uint32_t>> mask =
          allowedBy(reading.constraint);
      if (mask.ok() &&
          batch.adjustments() + choice.adjustmentCount() <= adjustmentLimit()) {
        allowed = *mask;
        ahead->expected[i].constraint = reading.constraint;
      } else {
        // It is in a step with room, or in one that says what is wrong.
        Sequence &sequence = *std::exchange(piece.sequence, nullptr);
        sequence.pages.truncate(sequence.position());
        choice = Choice();
      }
    }
    piece.isFetched = choice.isFetched;
    choice.addTo(batch, allowed);
  }
  return executor.choose(ahead->step, batch, options.cancelled);
}

/// What is ahead of `sequence` is nobody's.
void Engine::forgetAhead(const Sequence &sequence) {
  if (!ahead)
    return;
  ahead->plan.remove(sequence);
}

/// Gives back the pages that were reserved.
void Engine::dropAhead(Ahead &dropped) {
  for (const Piece &piece : dropped.plan.pieces)
    if (piece.sequence)
      piece.sequence->pages.truncate(piece.sequence->position());
}
