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
#include <cmath>

using namespace kf;

namespace {

/// Rows of the middle program: few enough for a short prompt to compile and run
/// quickly, and as many as mostly generate at once.
constexpr int64_t kFewRows = 16;
/// Rows of another one, for as many as generate where there are many.
constexpr int64_t kSomeRows = 64;
/// Rows of the one for prompts where the largest has more: tiles for so many
/// would be too few of a shorter prompt.
constexpr int64_t kPromptRows = 512;
/// Elements of the logits of a step: 128 MiB.
constexpr int64_t kMostLogits = int64_t(1) << 25;

} // namespace

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

/// A step gives ids or logits; where sequences want both, steps take turns.
StepOutput Engine::nextOutput() const {
  auto isWanted = [&](StepOutput output) {
    return std::ranges::any_of(scheduler.queue(),
                               [&](const ScheduledReading *reading) {
                                 return reading->output == output;
                               });
  };
  const StepOutput other =
      plan.output == StepOutput::Ids ? StepOutput::Logits : StepOutput::Ids;
  return isWanted(other) ? other : plan.output;
}

/// The most wanted rows of a step that gives `output`.
int64_t Engine::wantedLimit(StepOutput output) const {
  const int64_t most =
      output == StepOutput::Ids
          ? std::min(kMostChosenPerStep, options.parallel)
          : std::max<int64_t>(kMostLogits / decoder.config().vocabSize, 1);
  const StepShape *largest = decoder.largestShape(output);
  return std::min({most, rowsPerStep(), largest ? largest->wanted : most});
}

/// The most adjustments of logits of a step that chooses tokens.
int64_t Engine::adjustmentLimit() const {
  return mostAdjustments(decoder.config().vocabSize,
                         wantedLimit(StepOutput::Ids));
}

/// Those of tokens that there are: one row's are never more than a step has
/// room for.
std::vector<LogitAdjustment>
Engine::adjustmentsOf(const Sampler &sampler) const {
  std::vector<LogitAdjustment> adjustments = sampler.adjustments();
  std::erase_if(adjustments, [&](const LogitAdjustment &adjustment) {
    return adjustment.id < 0 || adjustment.id >= decoder.config().vocabSize;
  });
  return adjustments;
}

/// What steps take for a mask.
Result<std::span<const uint32_t>>
Engine::allowedBy(TokenConstraint &constraint) const {
  KF_ASSIGN_OR_RETURN(const std::span<const uint32_t> allowed,
                      constraint.allowed());
  if (static_cast<int64_t>(allowed.size()) !=
      maskWords(decoder.config().vocabSize))
    return Status::error("a constraint of another vocabulary than the model's",
                         StatusCode::Internal);
  return allowed;
}

/// Adds as much of what `sequence` reads as `rows` rows hold.
Status Engine::tryAddPiece(Sequence &sequence, int64_t rows) {
  const Reading &reading = *sequence.reading;
  StepPlan &batch = plan.batch;
  const size_t rest = sequence.rest();
  const size_t freeWanted =
      static_cast<size_t>(wantedLimit(plan.output) - batch.wanted());
  Piece piece = {&sequence, std::min(rest, static_cast<size_t>(rows)), 0};
  std::vector<LogitAdjustment> adjustments;
  std::span<const uint32_t> allowed;
  if (reading.onLogits) {
    const size_t before = sequence.firstWanted > sequence.next
                              ? sequence.firstWanted - sequence.next
                              : 0; // ids that are read for their keys alone
    piece.count = std::min(piece.count, before + freeWanted);
    piece.wanted = piece.count - std::min(before, piece.count);
  } else if (reading.sampler && piece.count == rest) {
    adjustments = adjustmentsOf(*reading.sampler);
    piece.wanted = 1;
    if (freeWanted == 0 ||
        batch.adjustments() + static_cast<int64_t>(adjustments.size()) >
            adjustmentLimit()) {
      --piece.count; // the last one waits for a step with room
      piece.wanted = 0;
    } else if (reading.constraint) {
      KF_ASSIGN_OR_RETURN(allowed, allowedBy(*reading.constraint));
    }
  }
  if (piece.count == 0)
    return Status();

  const int64_t position = sequence.position();
  plan.pieces.push_back(piece); // first: whoever needs copies is in the plan
  if (Status status = sequence.pages.reserve(static_cast<int64_t>(piece.count),
                                             plan.batch.copies);
      !status.ok()) {
    plan.pieces.pop_back();
    return status;
  }
  batch.pages.push_back(sequence.pages.pages());
  for (size_t i = 0; i < piece.count; ++i) {
    batch.addRow(sequence.ids[sequence.next + i],
                 position + static_cast<int64_t>(i));
    if (reading.onLogits && i + piece.wanted >= piece.count)
      batch.want();
  }
  if (!reading.onLogits && piece.wanted)
    batch.want(reading.sampler->settings(), reading.sampler->penalties(),
               adjustments, allowed);
  return Status();
}

/// Those of a step that those which generate leave, if it is to be quick; some
/// where it is slow because of those already.
int64_t Engine::rowsOfPrompts() const {
  const int64_t generating = std::ranges::count_if(
      scheduler.queue(), [](const ScheduledReading *reading) {
        return reading->begun() && reading->isGenerating();
      });
  return std::max<int64_t>({pace.rows() - generating, generating / 4, 1});
}

/// Where a sequence cannot be given what it needs, its reading ends.
void Engine::makePlan() {
  plan.output = nextOutput();
  plan.pieces.clear();
  plan.batch.clear();
  const Scheduler::Limits limits = {rowsPerStep(), rowsOfPrompts(),
                                    wantedLimit(plan.output)};
  scheduler.plan(
      plan.output, limits, [&](ScheduledReading &reading, int64_t rows) {
        const StepPlan &batch = plan.batch;
        const int64_t before = batch.rows();
        const int64_t wanted = batch.wanted();
        Sequence &sequence = static_cast<Sequence &>(reading);
        if (Status status = tryAddPiece(sequence, rows); !status.ok())
          end(sequence, std::move(status));
        return Scheduler::Share{batch.rows() - before, batch.wanted() - wanted};
      });
}

std::vector<int64_t> kf::programRows(int64_t rowsPerStep) {
  std::vector<int64_t> sizes;
  for (int64_t size : {int64_t(1), kFewRows, kSomeRows, kPromptRows})
    if (size < rowsPerStep)
      sizes.push_back(size);
  sizes.push_back(rowsPerStep);
  return sizes;
}

static bool isForPrompts(int64_t size, int64_t rowsPerStep) {
  return size != kSomeRows || size == rowsPerStep;
}

/// The smallest program for a step. Sequences that generate take many steps
/// alike, and programs for more rows leave threads without work. A prompt takes
/// few: one that is there already is better than one that would have to be
/// compiled. Where there are few programs, the smallest of them.
StepShape Engine::shapeOf(int64_t rows, size_t sequences,
                          StepOutput output) const {
  const int64_t most = rowsPerStep();
  auto shapeFor = [&](int64_t size) {
    size = std::min(size, most);
    return StepShape{size, std::min(size, wantedLimit(output)), output};
  };
  for (const StepShape &shape : decoder.shapes())
    if (shape.output == output && shape.tokens >= rows &&
        shape.wanted >= std::min(rows, wantedLimit(output)))
      return shape;
  if (rows == 1)
    return shapeFor(1);
  const bool isPrompt = sequences == 1;
  std::vector<StepShape> shapes;
  for (int64_t size : programRows(most))
    if (rows <= size && (!isPrompt || isForPrompts(size, most)))
      shapes.push_back(shapeFor(size));
  if (isPrompt)
    for (const StepShape &shape : shapes)
      if (decoder.hasProgram(shape))
        return shape;
  return shapes.front();
}

int64_t Engine::programRowsOf(int64_t rows, size_t sequences) const {
  return shapeOf(rows, sequences, StepOutput::Ids).tokens;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Errors are those that no sequence can go on with.
Status Engine::runStep() {
  settleAhead(); // sequences may have been cancelled or destroyed
  if (!ahead) {
    const Status planned = catchExceptions([&] {
      makePlan();
      return Status();
    });
    if (!planned.ok()) {
      (void)copyPages(); // for those that have their pages
      forgetInputs();
      return planned;
    }
    if (plan.pieces.empty())
      return Status(); // all have ended, or wait for steps of the other output
  }
  counters.mostPages = std::max(counters.mostPages, pool->used());
  const Status status = catchExceptions([&] { return runPlan(); });
  if (status.ok())
    return status;
  forgetInputs();
  if (status.isCancelled())
    return status;
  for (const Piece &piece : plan.pieces)
    if (piece.sequence)
      fail(*piece.sequence, status);
  return Status();
}

/// Of all programs: a step that has begun may be another one's.
void Engine::forgetInputs() {
  for (const auto &[shape, runner] : runners)
    runner->forgetInputs();
}

/// The plan, or the one that has begun already.
Status Engine::runPlan() {
  Begun begun;
  std::optional<Stopwatch> watch;
  if (ahead) {
    plan = std::move(ahead->plan);
    begun = ahead->begun;
    ahead.reset();
    ++counters.ahead;
  } else {
    KF_RETURN_IF_ERROR(copyPages());
    const StepShape shape =
        shapeOf(plan.batch.rows(), plan.pieces.size(), plan.output);
    KF_ASSIGN_OR_RETURN(begun.runner, runner(shape));
    // A program for one wanted row computes it, whether it is wanted or not.
    if (shape.wanted == 1 && plan.batch.wanted() == 0)
      plan.batch.want(SampleSettings(), SamplePenalties(), {});
    if (plan.output == StepOutput::Logits)
      return runLogits(*begun.runner);
    watch.emplace();
    KF_ASSIGN_OR_RETURN(begun.number,
                        begun.runner->start(plan.batch, options.cancelled));
  }
  // The step is in the stream.
  commit();
  beginAhead(begun);
  const Result<std::span<const int32_t>> chosen =
      begun.runner->finish(begun.number, options.cancelled);
  if (!chosen.ok()) {
    for (const Piece &piece : plan.pieces)
      if (piece.sequence)
        piece.sequence->pages.revoke(piece.sequence->position() -
                                     static_cast<int64_t>(piece.count));
    return chosen.status();
  }
  if (watch) // else the host has done other things meanwhile
    pace.add(plan.batch.rows(), watch->seconds());
  count();
  giveChosen(*chosen);
  return Status();
}

Status Engine::runLogits(StepRunner &runner) {
  const Stopwatch watch;
  KF_RETURN_IF_ERROR(runner.run(plan.batch, options.cancelled));
  pace.add(plan.batch.rows(), watch.seconds());
  count();
  commit();
  return giveLogits(runner);
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
  const Status status = catchExceptions([&] { return tryCopyPages(); });
  if (status.ok())
    return status;
  for (const Piece &piece : plan.pieces) {
    Sequence &sequence = *piece.sequence;
    const int64_t index = sequence.position() / kCachePage;
    const int32_t page = sequence.pages.pages()[static_cast<size_t>(index)];
    if (std::ranges::find(plan.batch.copies, page, &PageCopy::to) ==
        plan.batch.copies.end())
      continue;
    sequence.pages.forget();
    sequence.before = std::min(sequence.before, index * kCachePage);
  }
  return status;
}

Status Engine::tryCopyPages() {
  KF_ASSIGN_OR_RETURN(Stream * work, workStream());
  const Status status = cache.copyPages(*work, plan.batch.copies);
  const Status done = work->synchronize();
  return status.ok() ? done : status;
}

Result<Stream *> Engine::workStream() {
  if (!stream) {
    KF_ASSIGN_OR_RETURN(stream, decoder.device().createStream());
  }
  return stream.get();
}

Result<StepRunner *> Engine::runner(const StepShape &shape) {
  if (auto found = runners.find(shape); found != runners.end())
    return found->second.get();
  if (isCancelled())
    return Status::cancelled();
  KF_ASSIGN_OR_RETURN(LoadedProgram * program, decoder.program(shape));
  Stopwatch watch;
  const double packed = decoder.weights().seconds();
  KF_ASSIGN_OR_RETURN(Stream * work, workStream());
  Result<std::unique_ptr<StepRunner>> made = StepRunner::create(
      *program, shape, decoder.device(), decoder.weights(), cache, *work);
  binding += watch.seconds() - (decoder.weights().seconds() - packed);
  if (!made.ok())
    return made.status();
  (*made)->setProfile(options.profile);
  return runners.emplace(shape, made.take()).first->second.get();
}

/// The step is in the stream, or was run.
void Engine::commit() {
  for (const Piece &piece : plan.pieces) {
    if (!piece.sequence)
      continue;
    Sequence &sequence = *piece.sequence;
    sequence.commit(piece.count);
    scheduler.served(sequence);
  }
}

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

void Engine::giveChosen(std::span<const int32_t> chosen) {
  expectChosen(chosen);
  size_t row = 0;
  for (const Piece &piece : plan.pieces) {
    const int32_t id = piece.wanted ? chosen[row++] : -1;
    if (!piece.sequence)
      continue;
    Sequence &sequence = *piece.sequence;
    if (piece.wanted) {
      if (id < 0) // whatever gave them must not go on to others
        sequence.pages.forget();
      counters.chosen += id >= 0;
      end(sequence, outcomeOf(id, *sequence.reading, decoder));
    } else if (sequence.isWhole()) {
      end(sequence, std::optional<int32_t>());
    }
  }
}

/// Hands out logits, row by row. What is called may end readings and destroy
/// sequences.
Status Engine::giveLogits(StepRunner &runner) {
  size_t row = 0;
  for (const Piece &piece : plan.pieces) {
    Status status;
    for (size_t i = 0; i < piece.wanted; ++i, ++row) {
      if (!piece.sequence || !status.ok())
        continue;
      const Sequence &sequence = *piece.sequence;
      KF_ASSIGN_OR_RETURN(std::span<const float> logits, runner.logits(row));
      status = sequence.reading->onLogits(
          sequence.next - piece.wanted + i - sequence.readAgain, logits);
    }
    if (!piece.sequence)
      continue;
    Sequence &sequence = *piece.sequence;
    if (!status.ok())
      end(sequence, std::move(status));
    else if (sequence.isWhole())
      end(sequence, std::optional<int32_t>());
  }
  return Status();
}
