//===- EngineStep.cpp - What a step is made of, and how it runs -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Exceptions.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/engine/Engine.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>
#include <utility>

using namespace kf;

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

/// Has tokens drafted behind what sequences that generate read next.
void Engine::draft() {
  if (!options.draftModel)
    return;
  std::vector<Sequence *> sequences;
  for (ScheduledReading *reading : scheduler.queue()) {
    auto *sequence = static_cast<Sequence *>(reading);
    if (reading->begun() && reading->rest() == 1 &&
        sequence->reading->mostDrafts > 0)
      sequences.push_back(sequence);
  }
  if (sequences.empty())
    return;
  const auto room = static_cast<size_t>(chosenPerStep()) / sequences.size();
  for (Sequence *sequence : sequences) {
    if (!sequence->draftText)
      sequence->draftText = std::make_unique<DraftText>(*options.draftModel);
    Reading &reading = *sequence->reading;
    const size_t most = std::exchange(reading.mostDrafts, 0);
    sequence->draftText->begin(
        sequence->tokens(), sequence->ids.back(), *reading.sampler,
        std::min(most, std::max<size_t>(room, 1) - 1), sequences.size());
  }
  options.draftModel->run();
  for (Sequence *sequence : sequences) {
    const Result<std::span<const int32_t>> drafts = sequence->draftText->take();
    if (drafts.ok())
      sequence->addDrafts(*drafts);
    else
      end(*sequence, drafts.status());
  }
}

/// The most adjustments of logits of a step that chooses tokens.
int64_t Engine::adjustmentLimit() const {
  return mostAdjustments(decoder.config().vocabSize, chosenPerStep());
}

/// Adjustments are those of tokens that there are: one row's are never more
/// than a step has room for.
Engine::Choice Engine::choiceOf(const Reading &reading) const {
  const Sampler &sampler = *reading.sampler;
  Choice choice = {sampler.settings(), sampler.penalties(),
                   sampler.adjustments(), reading.onLogProbs != nullptr};
  std::erase_if(choice.adjustments, [&](const LogitAdjustment &adjustment) {
    return adjustment.id < 0 || adjustment.id >= decoder.config().vocabSize;
  });
  return choice;
}

/// What steps take for a mask; empty without a constraint.
Result<std::span<const uint32_t>>
Engine::allowedBy(TokenConstraint *constraint) const {
  if (!constraint)
    return std::span<const uint32_t>();
  KF_ASSIGN_OR_RETURN(const std::span<const uint32_t> allowed,
                      constraint->allowed());
  if (static_cast<int64_t>(allowed.size()) !=
      maskWords(decoder.config().vocabSize))
    return Status::error("a constraint of another vocabulary than the model's",
                         StatusCode::Internal);
  return allowed;
}

/// Drops the drafts of `sequence` that a step with `rows` rows for it, and the
/// batch's other choices, has no room for.
void Engine::keepDrafts(Sequence &sequence, int64_t rows,
                        const Choice &choice) {
  const StepPlan &batch = plan.batch;
  int64_t room =
      std::min(rows - static_cast<int64_t>(sequence.rest() - sequence.drafted),
               chosenPerStep() - batch.wanted() - 1);
  if (const int64_t each = choice.adjustmentCount(); each > 0)
    room = std::min(room, (adjustmentLimit() - batch.adjustments()) / each - 1);
  sequence.keepDrafts(static_cast<size_t>(std::max<int64_t>(room, 0)));
}

/// Adds as much of what `sequence` reads as `rows` rows hold.
Status Engine::tryAddPiece(Sequence &sequence, int64_t rows) {
  const Reading &reading = *sequence.reading;
  StepPlan &batch = plan.batch;
  Choice choice;
  if (reading.sampler && sequence.drafted > 0) {
    choice = choiceOf(reading);
    keepDrafts(sequence, rows, choice);
  }
  const size_t rest = sequence.rest();
  Piece piece = {&sequence, std::min(rest, static_cast<size_t>(rows))};
  std::span<const uint32_t> allowed;
  if (reading.onLogits || reading.onEmbedding) {
    const size_t end = sequence.next + piece.count;
    (reading.onLogits ? piece.logits : piece.embedded) =
        std::min(piece.count, end - std::min(end, sequence.firstWanted));
  } else if (reading.sampler && piece.count == rest) {
    choice = choiceOf(reading);
    piece.isChosen = true;
    if (batch.wanted() == chosenPerStep() ||
        batch.adjustments() + choice.adjustmentCount() > adjustmentLimit()) {
      --piece.count; // the last one waits for a step with room
      piece.isChosen = false;
    } else {
      KF_ASSIGN_OR_RETURN(allowed, allowedBy(reading.constraint));
    }
    piece.isFetched = piece.isChosen && choice.isFetched;
    piece.drafted = piece.isChosen ? sequence.drafted : 0;
  }
  if (piece.count == 0)
    return Status();
  piece.isLast = piece.count == rest;
  // Where there is no program for them, the step of the others does not fail.
  if (piece.embedded > 0)
    KF_RETURN_IF_ERROR(
        prepareEmbedding(batch.embeddedRows.size() + piece.embedded));

  const int64_t position = sequence.position();
  plan.pieces.push_back(piece); // first: whoever needs copies is in the plan
  if (Status status = sequence.pages.reserve(static_cast<int64_t>(piece.count),
                                             batch.copies);
      !status.ok()) {
    plan.pieces.pop_back();
    return status;
  }
  batch.addSequence(sequence.pages);
  if (pool->slots() > 0) {
    assert(sequence.pages.slot() >= 0 && "who begins has been given a slot");
    batch.useSlot(sequence.pages.slot());
  }
  for (size_t i = 0; i < piece.count; ++i) {
    batch.addRow(sequence.ids[sequence.next + i],
                 position + static_cast<int64_t>(i), sequence.adapter());
    if (i + piece.logits >= piece.count)
      batch.wantLogits();
    if (i + piece.embedded >= piece.count)
      batch.wantEmbedding();
    if (i + piece.choices() >= piece.count)
      batch.want();
  }
  for (size_t i = 0; i < piece.choices(); ++i) {
    choice.addTo(batch, allowed);
    ++choice.settings.counter; // as if what is drafted were chosen
  }
  return Status();
}

/// Whether the host gets rows of what the next step reads of some sequence.
bool Engine::isForHost() const {
  return std::ranges::any_of(
      scheduler.queue(), [&](const ScheduledReading *each) {
        const Reading &reading = *static_cast<const Sequence *>(each)->reading;
        return (reading.onLogits || reading.onEmbedding) && each->begun() &&
               !each->isWhole() &&
               each->next + static_cast<size_t>(rowsPerStep()) >
                   each->firstWanted;
      });
}

/// How many that generate a step has: where several are under way, its share of
/// all, so that they are alike; all of them where none begins behind it.
int64_t Engine::textsOfStep() const {
  if (mostOpen == 1 || isForHost())
    return INT64_MAX;
  // Behind what is wholly read, a token is being chosen.
  const auto all = std::ranges::count_if(
      scheduler.queue(), [](const ScheduledReading *reading) {
        return reading->begun() &&
               (reading->isGenerating() || reading->isWhole());
      });
  const auto steps = static_cast<int64_t>(mostOpen);
  return std::max<int64_t>((all + steps - 1) / steps, 1);
}

/// Those of a step that those which generate leave, if it is to be quick; some
/// where it is slow because of those already. None of these wait longer than
/// their share.
int64_t Engine::rowsOfPrompts() const {
  const int64_t texts = textsOfStep();
  int64_t generating = 0, prompts = 0;
  int64_t rows = 0; // of those that generate
  for (const ScheduledReading *reading : scheduler.queue()) {
    if (!reading->begun() || reading->isWhole())
      continue;
    if (!reading->isGenerating()) {
      ++prompts;
    } else if (generating < texts) {
      ++generating;
      rows += static_cast<int64_t>(reading->rest());
    }
  }
  const int64_t most =
      std::max<int64_t>({pace.rows() - generating, generating / 4, 1});
  if (!options.sharesTime || generating == 0 ||
      (prompts == 0 && scheduler.waiting() == 0))
    return most;
  const auto sequences = static_cast<size_t>(generating) + 1;
  return promptPace.rows(
      std::min(rows, chosenPerStep()), most, [&](int64_t count) {
        return bodyRows(std::min(count, rowsPerStep()), sequences);
      });
}

/// Where a sequence cannot be given what it needs, its reading ends.
void Engine::makePlan() {
  plan.pieces.clear();
  plan.batch.clear();
  plan.ofPrompts = plan.ofTexts = 0;
  const Scheduler::Limits limits = {.rows = rowsPerStep(),
                                    .prompts = rowsOfPrompts(),
                                    .chosen = chosenPerStep(),
                                    .texts = textsOfStep(),
                                    .isBeside = !open.empty()};
  scheduler.plan(limits, [&](ScheduledReading &reading, int64_t rows) {
    const StepPlan &batch = plan.batch;
    const int64_t before = batch.rows(), chosen = batch.wanted();
    int64_t &kind = reading.isGenerating() ? plan.ofTexts : plan.ofPrompts;
    Sequence &sequence = static_cast<Sequence &>(reading);
    if (Status status = tryAddPiece(sequence, rows); !status.ok())
      end(sequence, std::move(status));
    kind += batch.rows() - before;
    return Scheduler::Share{batch.rows() - before, batch.wanted() - chosen};
  });
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Errors are those that no sequence can go on with.
Status Engine::runStep() {
  settleAhead(); // sequences may have been cancelled or destroyed
  if (ahead)
    takeAhead();
  else
    KF_RETURN_IF_ERROR(beginSteps());
  return open.empty() ? Status() // all have ended
                      : finishStep();
}

/// The step that has begun already is the next one.
void Engine::takeAhead() {
  plan = std::move(ahead->plan);
  Open begun;
  begun.step = ahead->step;
  begun.wasAhead = true;
  ahead.reset();
  ++counters.ahead;
  counters.mostPages = std::max(counters.mostPages, pool->used());
  commit();
  begun.plan = std::move(plan);
  open.push_back(std::move(begun));
}

/// Whether another step may begin: there is something to read in it. What the
/// host still wants of the hidden rows of the last one that began is computed
/// of them where the next step's would come.
bool Engine::mayBegin() const {
  if (open.size() == mostOpen)
    return false;
  if (open.empty())
    return true;
  // One that began and could not choose has had the place of its results, too.
  if (executor.begun() - open.front().step >= mostOpen)
    return false;
  const StepPlan &last = open.back().plan.batch;
  return last.logitRows.empty() && last.embeddedRows.empty() &&
         std::ranges::any_of(
             scheduler.queue(),
             [](const ScheduledReading *each) { return !each->isWhole(); });
}

/// Has as many steps under way as there may be, of what there is to read.
Status Engine::beginSteps() {
  while (mayBegin()) {
    // What there is no memory to draft is not.
    (void)catchExceptions([&] {
      draft();
      return Status();
    });
    const Status planned = catchExceptions([&] {
      makePlan();
      return Status();
    });
    if (!planned.ok()) {
      (void)copyPages(); // for those that have their pages
      executor.forgetInputs();
      return planned;
    }
    if (plan.pieces.empty())
      return Status(); // all have ended, or wait for steps that are under way
    counters.mostPages = std::max(counters.mostPages, pool->used());
    const Status begun = catchExceptions([&] { return beginPlan(); });
    if (!begun.ok())
      return failPlan(begun);
  }
  return Status();
}

/// What the plan's step has failed with ends its readings.
Status Engine::failPlan(const Status &status) {
  executor.forgetInputs(); // a step that has begun may have had others
  if (status.isCancelled())
    return status;
  for (const Piece &piece : plan.pieces)
    if (piece.sequence)
      fail(*piece.sequence, status);
  return Status();
}

/// Steps that are under way are waited for: nobody knows since when they are
/// through.
void Engine::spoilMeasures() {
  for (Open &each : open)
    each.isMeasured = false;
}

/// Makes a program ready.
Status Engine::makeReady(const StepShape &shape) {
  if (executor.isReady(shape))
    return Status();
  spoilMeasures();
  return executor.prepare(shape);
}

/// Makes the programs of the plan ready.
Status Engine::preparePrograms() {
  const StepPlan &batch = plan.batch;
  plan.body = bodyRows(batch.rows(), plan.pieces.size());
  KF_RETURN_IF_ERROR(makeReady({StepPart::Body, plan.body}));
  if (batch.wanted() > 0) {
    plan.head = headRows(batch.wanted());
    KF_RETURN_IF_ERROR(makeReady({StepPart::Choose, plan.head}));
  }
  if (!batch.logitRows.empty()) {
    plan.logitsHead = rowsForHost(StepPart::Head,
                                  static_cast<int64_t>(batch.logitRows.size()));
    KF_RETURN_IF_ERROR(makeReady({StepPart::Head, plan.logitsHead}));
  }
  return Status();
}

/// Makes the program ready that makes embeddings of `rows` rows.
Status Engine::prepareEmbedding(size_t rows) {
  plan.embed = rowsForHost(StepPart::Embed, static_cast<int64_t>(rows));
  return makeReady({StepPart::Embed, plan.embed});
}

/// Puts the plan's step into the stream, behind those that are under way.
Status Engine::beginPlan() {
  KF_RETURN_IF_ERROR(copyPages());
  KF_RETURN_IF_ERROR(preparePrograms());
  Open begun;
  // Those whose measures are spoilt are over.
  begun.sharing =
      static_cast<size_t>(1 + std::ranges::count_if(open, &Open::isMeasured));
  KF_ASSIGN_OR_RETURN(
      begun.step,
      executor.submit(plan.batch, plan.body, plan.head, options.cancelled));
  if (plan.batch.wanted() > 0)
    KF_RETURN_IF_ERROR(
        executor.choose(begun.step, plan.batch, options.cancelled));
  commit();
  begun.plan = std::move(plan);
  open.push_back(std::move(begun));
  return Status();
}

/// Waits for the first step that is under way, and tells of it. Errors: as
/// runStep().
Status Engine::finishStep() {
  Open begun = std::move(open.front());
  open.erase(open.begin());
  plan = std::move(begun.plan);
  const Status status = catchExceptions([&] { return finishPlan(begun); });
  return status.ok() ? status : failPlan(status);
}

/// The plan's step has begun as `begun` says.
Status Engine::finishPlan(const Open &begun) {
  beginAhead(begun.step);
  const Result<std::span<const int32_t>> chosen =
      executor.wait(begun.step, options.cancelled);
  if (!chosen.ok()) {
    revoke(chosen.status());
    return chosen.status();
  }
  // One that was ahead, or behind others, had the device from the end of the
  // step before.
  double seconds = begun.wasAhead ? sinceStep.seconds() : begun.watch.seconds();
  if (begun.sharing > 1)
    seconds = std::min(seconds, sinceStep.seconds());
  sinceStep = Stopwatch();
  count();
  giveLogProbs(begun.step, *chosen);
  giveChosen(*chosen);
  KF_RETURN_IF_ERROR(giveRows(StepPart::Head, seconds));
  KF_RETURN_IF_ERROR(giveRows(StepPart::Embed, seconds));
  measure(begun, seconds);
  return Status();
}

/// The plan's step took `seconds` of those in which as many others were under
/// way as shared them: as long as that, where a step goes through all stages.
void Engine::measure(const Open &begun, double seconds) {
  if (!begun.isMeasured)
    return;
  seconds *= static_cast<double>(begun.sharing);
  if (options.sharesTime)
    promptPace.add(plan.body, plan.batch.rows(), seconds, plan.isMixed());
  if (begun.wasAhead)
    return; // the host has done other things meanwhile
  pace.add(plan.batch.rows(), seconds);
  if (options.draftModel && plan.batch.wanted() == plan.batch.rows())
    options.draftModel->addStep(plan.batch.rows(), seconds);
}

/// The plan's step has failed with `status`, and so have those that are under
/// way behind it: what they were to compute is taken back.
void Engine::revoke(const Status &status) {
  auto revokeAll = [](const Plan &failed) {
    for (const Piece &piece : failed.pieces)
      if (piece.sequence)
        piece.sequence->pages.revoke(piece.sequence->position() -
                                     static_cast<int64_t>(piece.count));
  };
  for (; !open.empty(); open.pop_back())
    revokeAll(open.back().plan);
  revokeAll(plan);
  if (mostOpen == 1)
    return;
  // Of what was read since they began, others may have begun with some, and
  // pages of sequences that are gone have some.
  pool->forgetAll();
  for (ScheduledReading *each : scheduler.queue())
    if (each->readAgain > 0)
      static_cast<Sequence *>(each)->before = 0;
  failAll(status);
}

/// The step was run.
void Engine::count() {
  ++counters.steps;
  for (const Piece &piece : plan.pieces)
    if (piece.sequence)
      counters.rows += static_cast<int64_t>(piece.count);
}

/// Copies are made whether a step follows or not. Where they fail, sequences
/// are without what was to be copied: they go back to before it, and nobody
/// else finds it.
Status Engine::copyPages() {
  if (plan.batch.copies.empty())
    return Status();
  spoilMeasures();
  const Status status = executor.copyPages(plan.batch.copies);
  if (status.ok())
    return status;
  for (const Piece &piece : plan.pieces) {
    Sequence &sequence = *piece.sequence;
    const int64_t size = sequence.pages.pagePositions();
    const int64_t index = sequence.position() / size;
    const int32_t page = sequence.pages.pages()[static_cast<size_t>(index)];
    if (std::ranges::find(plan.batch.copies, page, &PageCopy::to) ==
        plan.batch.copies.end())
      continue;
    sequence.pages.forget();
    sequence.before = std::min(sequence.before, index * size);
  }
  return status;
}

/// The step is in the stream.
void Engine::commit() {
  for (const Piece &piece : plan.pieces) {
    if (!piece.sequence)
      continue;
    Sequence &sequence = *piece.sequence;
    sequence.commit(piece.count);
    scheduler.served(sequence);
  }
}

namespace {

/// The rows of a step that the host gets of a head or of what makes embeddings,
/// computed and read when they are asked for, from the first on.
class HostRows {
public:
  HostRows(StepExecutor &executor, const StepShape &shape,
           std::span<const int32_t> rows, int64_t tokens, CancelFlag cancelled)
      : executor(executor), shape(shape), rows(rows), tokens(tokens),
        cancelled(cancelled) {}

  /// Of row number `row` of them, valid until the next call.
  Result<std::span<const float>> at(size_t row) {
    const size_t most = static_cast<size_t>(shape.rows);
    if (row >= computedEnd) {
      const Stopwatch watch;
      const size_t first = row - row % most;
      computedEnd = std::min(first + most, rows.size());
      KF_RETURN_IF_ERROR(executor.compute(
          shape, rows.subspan(first, computedEnd - first), tokens, cancelled));
      computing += watch.seconds();
      readEnd = first;
    }
    if (row >= readEnd) {
      // Many narrow rows at once: each time may be a copy to wait for.
      readBegin = row;
      readEnd = std::min(readBegin + rowsAtOnce, computedEnd);
      KF_ASSIGN_OR_RETURN(values, executor.computed(shape, readBegin % most,
                                                    readEnd - readBegin));
      width = values.size() / (readEnd - readBegin);
      rowsAtOnce = std::max<size_t>(kReadAtOnce / width, 1);
    }
    return values.subspan((row - readBegin) * width, width);
  }

  /// What computing them took.
  double seconds() const { return computing; }

private:
  static constexpr size_t kReadAtOnce = size_t(1) << 18; ///< elements: 1 MiB

  StepExecutor &executor;
  const StepShape shape;
  const std::span<const int32_t> rows;
  const int64_t tokens;
  const CancelFlag cancelled;
  size_t computedEnd = 0;            ///< of those that the program holds
  size_t readBegin = 0, readEnd = 0; ///< those that `values` has
  size_t rowsAtOnce = 1, width = 0;
  std::span<const float> values;
  double computing = 0;
};

bool areFinite(std::span<const float> values) {
  return std::ranges::all_of(values,
                             [](float value) { return std::isfinite(value); });
}

} // namespace

/// What a reading comes to that ends with the choice `id`.
static Reading::Outcome outcomeOf(int32_t id, const Reading &reading,
                                  const Model &model) {
  if (id >= 0)
    return std::optional(id);
  if (reading.constraint)
    return Status::error("no token can be chosen: logits are not finite, or "
                         "those of all tokens that the text's grammar allows "
                         "are -inf, by biases perhaps");
  const bool excludes = std::ranges::any_of(
      reading.sampler->adjustments(),
      [](const LogitAdjustment &entry) { return std::isinf(entry.bias); });
  if (excludes)
    return Status::error("no token can be chosen: logits are not finite, or "
                         "biases of -inf exclude all tokens");
  return model.badLogits();
}

/// Hands out what the model says of the tokens. What is called may end other
/// readings and destroy sequences.
void Engine::giveLogProbs(uint64_t step, std::span<const int32_t> chosen) {
  size_t row = 0, fetched = 0;
  for (const Piece &piece : plan.pieces) {
    const int32_t id = piece.isChosen ? chosen[row] : -1;
    row += piece.choices();
    if (!piece.isFetched)
      continue;
    const size_t index = fetched++;
    if (!piece.sequence || id < 0)
      continue;
    Status status = catchExceptions([&] {
      const Reading &reading = *piece.sequence->reading;
      if (reading.onLogProbs)
        reading.onLogProbs(logProbsOf(executor.fetchedLogits(step, index), id,
                                      reading.topLogProbs));
      return Status();
    });
    if (!status.ok() && piece.sequence) // want of memory, of this one alone
      end(*piece.sequence, std::move(status));
  }
}

void Engine::giveChosen(std::span<const int32_t> chosen) {
  expectChosen(chosen);
  size_t row = 0;
  for (const Piece &piece : plan.pieces) {
    const std::span<const int32_t> ids = chosen.subspan(row, piece.choices());
    row += ids.size();
    if (!piece.sequence || piece.logits > 0 || piece.embedded > 0)
      continue;
    if (piece.isChosen)
      giveChoices(*piece.sequence, ids);
    else if (piece.isLast)
      end(*piece.sequence, std::optional<int32_t>());
  }
}

/// Hands out what was chosen behind the last id that `sequence` was to read, or
/// behind the last draft that is what was chosen before it. Keys and values of
/// later drafts are nobody's.
void Engine::giveChoices(Sequence &sequence, std::span<const int32_t> ids) {
  const std::span<const int32_t> drafts =
      std::span<const int32_t>(sequence.ids).last(ids.size() - 1);
  const auto accepted = static_cast<size_t>(
      std::ranges::mismatch(drafts, ids).in1 - drafts.begin());
  const int32_t id = ids[accepted];
  if (accepted < drafts.size()) // else a step ahead may have pages behind it
    sequence.pages.truncate(sequence.position() -
                            static_cast<int64_t>(drafts.size() - accepted));
  if (id < 0) // whatever gave them must not go on to others
    sequence.pages.forget();
  if (sequence.draftText && !drafts.empty())
    sequence.draftText->learn(drafts.size(), accepted);
  counters.drafted += static_cast<int64_t>(drafts.size());
  counters.accepted += static_cast<int64_t>(accepted);
  counters.chosen += static_cast<int64_t>(accepted) + (id >= 0);
  end(sequence, outcomeOf(id, *sequence.reading, decoder));
}

/// Computes and hands out the rows that are wanted of `part`, a head or what
/// makes embeddings, as many at once as its program has room for; adds what
/// computing took to `seconds`. What is called may end readings and destroy
/// sequences.
Status Engine::giveRows(StepPart part, double &seconds) {
  const bool isHead = part == StepPart::Head;
  const std::span<const int32_t> rows =
      isHead ? plan.batch.logitRows : plan.batch.embeddedRows;
  const StepShape shape = {part, isHead ? plan.logitsHead : plan.embed};
  HostRows given(executor, shape, rows, plan.batch.rows(), options.cancelled);
  size_t row = 0; // of `rows`
  for (const Piece &piece : plan.pieces) {
    const size_t count = isHead ? piece.logits : piece.embedded;
    Status status;
    for (size_t i = 0; i < count; ++i, ++row) {
      if (!piece.sequence || !status.ok())
        continue; // nobody wants them any more
      Sequence &sequence = *piece.sequence;
      KF_ASSIGN_OR_RETURN(const std::span<const float> values, given.at(row));
      const size_t index = sequence.next - count + i - sequence.readAgain;
      if (isHead) {
        status = sequence.reading->onLogits(index, values);
      } else if (areFinite(values)) {
        status = sequence.reading->onEmbedding(index, values);
      } else {
        sequence.pages.forget(); // as where a token is chosen
        status = decoder.badLogits("what the last layer makes of token " +
                                   std::to_string(index) + " is not finite");
      }
    }
    if (!piece.sequence || count == 0)
      continue;
    Sequence &sequence = *piece.sequence;
    if (!status.ok())
      end(sequence, std::move(status));
    else if (piece.isLast)
      end(sequence, std::optional<int32_t>());
  }
  seconds += given.seconds();
  return Status();
}
