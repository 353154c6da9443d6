//===- Engine.cpp - Sequences and what they read --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a step is made of and how it runs: EngineStep.cpp; which programs:
// EnginePrograms.cpp; one that begins before it is asked for: EngineAhead.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Engine.h"

#include "runtime/core/Exceptions.h"
#include "runtime/model/LayerCaches.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

using namespace kf;

/// Steps whose results are kept: the one that is told of, and one ahead.
static constexpr size_t kLeastSteps = 2;

/// Of the bodies that steps may run.
static int64_t rowsOfBodies(const Model &model, const EngineOptions &options) {
  const StepShape *largest = model.largestShape(StepPart::Body);
  return largest ? largest->rows
                 : programRows(*options.rowsPerStep, options.parallel,
                               model.config(), model.device())
                       .back();
}

Engine::Engine(Model &model, const EngineOptions &options,
               std::unique_ptr<PagePool> pool)
    : decoder(model), options(options), pool(std::move(pool)),
      cache(model.device(), options.pages,
            positionsOf(model.config(), options.pages, options.contextLength,
                        options.parallel)),
      positions(positionsWithin(model.config(), options.pages)),
      executor(model, cache, rowsOfBodies(model, options), kMostChosenPerStep,
               std::max(model.stageCount(), kLeastSteps)),
      scheduler(*this->pool, options.contextLength,
                options.reusesPrefixes && !model.config().hasStates()),
      pace(options.longestStep, *options.rowsPerStep),
      mostOpen(options.profile ? 1 : model.stageCount()) {
  executor.setProfile(options.profile);
  open.reserve(mostOpen);
}

Engine::~Engine() {
  assert(sequences == 0 && "sequences must not outlive their engine");
}

/// An error unless 1 <= value <= most.
static Status checkRange(const char *what, int64_t value, int64_t most) {
  if (value >= 1 && value <= most)
    return Status();
  return Status::error(std::string(what) + " " + std::to_string(value) +
                       " is not possible; 1 to " + std::to_string(most) +
                       " are");
}

/// An error where what is wanted of a model with states, or of one that drafts,
/// is not possible: a state is that of the last token alone, and drafts are
/// taken back, of those who made them, too.
static Status checkStates(const Model &model, const EngineOptions &options) {
  const Engine *drafting =
      options.draftModel ? &options.draftModel->owner() : nullptr;
  const bool keeps = model.config().hasStates() ||
                     (drafting && drafting->model().config().hasStates());
  if (keeps && (options.ngrams || drafting))
    return Status::error("a model whose layers keep states cannot take drafts "
                         "of tokens back; leave --ngram and --draft-model out",
                         StatusCode::Unsupported);
  return Status();
}

Result<std::unique_ptr<Engine>>
Engine::create(Model &model, const EngineOptions &wanted) try {
  constexpr int64_t most = int64_t(1) << 24;
  EngineOptions options = wanted;
  const int64_t positions = model.config().maxPositions;
  if (options.contextLength == 0)
    options.contextLength = positions;
  if (options.contextLength < 1 || options.contextLength > positions)
    return Status::error("a context of " +
                         std::to_string(options.contextLength) +
                         " positions is not possible; the model was made for 1 "
                         "to " +
                         std::to_string(positions));
  KF_RETURN_IF_ERROR(
      checkRange("a number of parallel sequences of", options.parallel, most));
  if (options.ngrams) {
    KF_RETURN_IF_ERROR(checkRange("n-grams of",
                                  static_cast<int64_t>(options.ngrams->longest),
                                  kMostNgram));
    KF_RETURN_IF_ERROR(checkRange("a number of drafted tokens of",
                                  static_cast<int64_t>(options.ngrams->most),
                                  kMostDraftTokens));
  }
  if (options.draftModel) {
    KF_RETURN_IF_ERROR(
        checkRange("a number of drafted tokens of",
                   static_cast<int64_t>(options.draftModel->mostTokens()),
                   kMostDraftTokens));
    if (options.ngrams)
      return Status::error("tokens are drafted by n-grams or by a model, not "
                           "by both");
  }
  if (!options.runsAhead)
    options.runsAhead = model.device().runsAlone();
  const int64_t mostRows = mostStepRows(model.config());
  if (!options.rowsPerStep)
    options.rowsPerStep = promptRowsOf(model.config(), model.device());
  KF_RETURN_IF_ERROR(
      checkRange("a number of rows of", *options.rowsPerStep, mostRows));
  options.rowsPerStep =
      std::min(*options.rowsPerStep, options.parallel * options.contextLength);
  if (const StepShape *largest = model.largestShape(StepPart::Body))
    options.rowsPerStep = std::min(*options.rowsPerStep, largest->rows);
  // Written so that NaN fails.
  if (options.longestStep && !(*options.longestStep > 0))
    return Status::error("steps of at most " +
                         std::to_string(*options.longestStep) +
                         " seconds are not possible; it is more than 0");
  if (options.pages == 0)
    options.pages = pagesOfSequences(model.config(), options.contextLength,
                                     options.parallel, *options.rowsPerStep);
  KF_RETURN_IF_ERROR(checkStates(model, options));
  if (model.hasStages())
    options.runsAhead = false; // ids that a step chose are on one rank
  int64_t slots = 0;
  if (model.config().hasStates()) {
    options.runsAhead = false;
    slots = cachedStates(model.config(), options.pages);
  }
  KF_ASSIGN_OR_RETURN(std::unique_ptr<PagePool> pool,
                      PagePool::create(options.pages, slots,
                                       model.config().adapters.count + 1,
                                       cacheWindowsOf(model.config()),
                                       pagePositionsOf(model.config())));
  return std::unique_ptr<Engine>(new Engine(model, options, std::move(pool)));
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<Sequence>> Engine::createSequence(int64_t adapter) try {
  if (const int64_t count = decoder.config().adapters.count;
      adapter < 0 || adapter > count)
    return Status::error("there is no adapter " + std::to_string(adapter) +
                         "; the model was opened with " +
                         std::to_string(count));
  return std::unique_ptr<Sequence>(
      new Sequence(*this, PagedSequence(*pool, static_cast<int32_t>(adapter))));
} catch (...) {
  return statusOfException();
}

//===----------------------------------------------------------------------===//
// Readings
//===----------------------------------------------------------------------===//

void Engine::add(Sequence &sequence) {
  // Readings end without a need for memory.
  ended.reserve(ended.size() + scheduler.queue().size() + 1);
  scheduler.add(sequence);
}

bool Engine::isQueued(const Sequence &sequence) const {
  const ScheduledReading *wanted = &sequence;
  return std::ranges::find(scheduler.queue(), wanted) !=
         scheduler.queue().end();
}

/// What `sequence` reads is no part of any step from now on.
void Engine::remove(Sequence &sequence) {
  scheduler.remove(sequence);
  plan.remove(sequence);
  for (Open &each : open)
    each.plan.remove(sequence);
}

/// Of a sequence that is being destroyed.
void Engine::forget(Sequence &sequence) {
  remove(sequence);
  for (Ended &entry : ended)
    if (entry.sequence == &sequence)
      entry.sequence = nullptr;
  for (Telling *each = telling; each; each = each->outer)
    if (each->sequence == &sequence)
      each->sequence = nullptr;
  forgetAhead(sequence);
}

/// Ends what `sequence` reads; tell() lets it know. An error takes back what
/// was read of it. What it had before that and is reading again may be to come
/// in steps that are under way, its own or others', and is not kept: revoke()
/// would not find it where they fail.
void Engine::end(Sequence &sequence, Reading::Outcome outcome) {
  if (!outcome.ok()) {
    forgetAhead(sequence);
    if (sequence.readAgain > 0 && !open.empty())
      sequence.before = 0;
    sequence.pages.truncate(std::min(sequence.before, sequence.pages.length()));
    sequence.reused = std::min(sequence.reused, sequence.before);
  }
  remove(sequence);
  ended.push_back({&sequence, std::move(outcome)});
}

/// Readings of `sequence` that have ended: their `done`, which is to be called
/// or being called, does not begin another one.
void Engine::cancelFollowing(const Sequence &sequence) {
  for (Ended &entry : ended)
    entry.isCancelled |= entry.sequence == &sequence;
  for (Telling *each = telling; each; each = each->outer)
    each->isCancelled |= each->sequence == &sequence;
}

bool Engine::isFollowingCancelled(const Sequence &sequence) const {
  for (const Telling *each = telling; each; each = each->outer)
    if (each->sequence == &sequence && each->isCancelled)
      return true;
  return false;
}

/// Ends what `sequence` reads with `status`, or for want of memory for that.
void Engine::fail(Sequence &sequence, const Status &status) {
  end(sequence, catchExceptions([&] { return status; }));
}

void Engine::failAll(const Status &status) {
  while (!scheduler.queue().empty())
    fail(static_cast<Sequence &>(*scheduler.queue().front()), status);
}

/// Calls `done` of what has ended. What it calls may end more, begin more, and
/// destroy sequences.
void Engine::tell() {
  while (!ended.empty()) {
    const Ended first = std::move(ended.front());
    ended.erase(ended.begin());
    if (!first.sequence)
      continue;
    const Reading reading = std::move(*first.sequence->reading);
    first.sequence->reading.reset();
    if (!reading.done)
      continue;
    Telling now = {first.sequence, first.isCancelled, telling};
    telling = &now;
    reading.done(first.outcome);
    telling = now.outer;
  }
}

bool Engine::step() {
  if (isCancelled())
    failAll(Status::cancelled());
  if (!isIdle())
    if (Status status = catchExceptions([&] { return runStep(); });
        !status.ok())
      failAll(status);
  tell();
  settleAhead();
  chooseAhead();
  // Other ranks are not left in steps that nobody waits for.
  while (scheduler.queue().empty() && !open.empty())
    (void)finishStep(); // an error is the next one's, too
  return !isIdle();
}

Reading::Outcome kf::readAlone(Sequence &sequence, Reading reading) try {
  std::optional<Reading::Outcome> end;
  reading.done = [&](const Reading::Outcome &outcome) { end = outcome; };
  KF_RETURN_IF_ERROR(sequence.read(std::move(reading)));
  while (!end)
    sequence.engine().step();
  return *end;
} catch (...) {
  return statusOfException();
}

Status kf::readLogits(Sequence &sequence, std::span<const int32_t> ids,
                      LogitsCallback onLogits) try {
  Reading reading;
  reading.ids.assign(ids.begin(), ids.end());
  reading.onLogits = std::move(onLogits);
  return readAlone(sequence, std::move(reading)).status();
} catch (...) {
  return statusOfException();
}

//===----------------------------------------------------------------------===//
// Accounting
//===----------------------------------------------------------------------===//

EngineCounts Engine::counts() const {
  EngineCounts counts = counters;
  counts.preemptions = scheduler.preemptions();
  return counts;
}

EngineMemory Engine::memory() const {
  EngineMemory memory;
  memory.weights = decoder.weights().bytes();
  memory.cache = cache.bytes();
  memory.arenas = executor.arenaBytes();
  memory.io = executor.ioBytes();
  if (const Engine *drafts = draftEngine()) {
    const EngineMemory theirs = drafts->memory();
    memory.weights += theirs.weights;
    memory.cache += theirs.cache;
    memory.arenas += theirs.arenas;
    memory.io += theirs.io;
  }
  return memory;
}

EngineTimings Engine::timings() const {
  EngineTimings timings = {decoder.compileSeconds(),
                           decoder.loadSeconds() + executor.bindSeconds(),
                           decoder.weights().seconds()};
  if (const Engine *drafts = draftEngine()) {
    const EngineTimings theirs = drafts->timings();
    timings.compile += theirs.compile;
    timings.load += theirs.load;
    timings.pack += theirs.pack;
  }
  return timings;
}
