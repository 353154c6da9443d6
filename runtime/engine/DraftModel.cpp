//===- DraftModel.cpp - Drafts by a smaller model -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/DraftModel.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/engine/Engine.h"

#include <algorithm>
#include <utility>

using namespace kf;

/// Tokens that a text reads before it drafts where drafting takes its usual
/// time: the last one of the drafts before, and the one behind it.
static constexpr size_t kFewBehind = 2;
/// Those that it reads in the step that drafts. More of them are read before, a
/// step at a time, so that nobody waits for them.
static constexpr size_t kMostBehind = 64;

DraftText::DraftText(DraftModel &model) : model(model) {}

DraftText::~DraftText() { setDrafting(false); }

void DraftText::setDrafting(bool drafts) {
  model.drafting += int64_t(drafts) - int64_t(isDrafting);
  isDrafting = drafts;
}

bool DraftText::isKnown(int32_t id) const {
  return id < model.engine.model().config().vocabSize;
}

void DraftText::begin(std::span<const int32_t> tokens, int32_t last,
                      const Sampler &given, size_t most, size_t texts) {
  drafted.clear();
  ended = Status();
  length = tokens.size() + 1;
  // The last draft is not read.
  const int64_t room =
      model.engine.textLimit() - static_cast<int64_t>(length) + 1;
  if (room <= 0)
    return pace.stop(length);
  if (sequence && sequence->isReading())
    return; // it catches up
  wanted = pace.worth(model.times,
                      std::min({most, model.most, static_cast<size_t>(room)}),
                      texts, length);
  if (wanted == 0)
    return;
  ended = catchExceptions([&] {
    sampler = given;
    return tryBegin(tokens, last);
  });
}

/// Reads what the model has not read of the text.
Status DraftText::tryBegin(std::span<const int32_t> tokens, int32_t last) {
  if (!sequence) {
    KF_ASSIGN_OR_RETURN(sequence, model.engine.createSequence());
  }
  auto known = static_cast<size_t>(
      std::ranges::mismatch(sequence->tokens(), tokens).in2 - tokens.begin());
  KF_RETURN_IF_ERROR(sequence->rewind(static_cast<int64_t>(known)));
  if (sequence->readsAgain()) {
    known = 0;
    KF_RETURN_IF_ERROR(sequence->rewind(0));
  }
  const std::span<const int32_t> behind = tokens.subspan(known);
  if (!isKnown(last) ||
      !std::ranges::all_of(behind, [&](int32_t id) { return isKnown(id); })) {
    pace.stop(length);
    return Status();
  }
  if (behind.size() > kMostBehind)
    return catchUp(behind);
  std::vector<int32_t> ids(behind.begin(), behind.end());
  ids.push_back(last);
  model.isMeasured &= ids.size() <= kFewBehind;
  KF_RETURN_IF_ERROR(read(std::move(ids)));
  setDrafting(true);
  return Status();
}

Status DraftText::catchUp(std::span<const int32_t> ids) {
  Reading reading;
  reading.ids.assign(ids.begin(), ids.end());
  reading.done = [this](const Reading::Outcome &outcome) {
    ended = catchExceptions([&] { return outcome.status(); });
  };
  model.isMeasured = false;
  return sequence->read(std::move(reading));
}

/// Has a token chosen behind `ids`.
Status DraftText::read(std::vector<int32_t> ids) {
  Reading reading;
  reading.ids = std::move(ids);
  reading.sampler = &*sampler;
  reading.goesOn = drafted.size() + 1 < wanted;
  reading.done = [this](const Reading::Outcome &outcome) {
    ended = catchExceptions([&] {
      KF_RETURN_IF_ERROR(outcome.status());
      return follow(**outcome);
    });
    if (!sequence->isReading())
      setDrafting(false);
  };
  return sequence->read(std::move(reading));
}

Status DraftText::follow(int32_t id) {
  if (id >= model.vocabulary)
    return Status(); // a token of the smaller model's alone
  drafted.push_back(id);
  if (drafted.size() == wanted)
    return Status();
  sampler->accept(id);
  return read({id});
}

Result<std::span<const int32_t>> DraftText::take() {
  if (ended.ok())
    return std::span<const int32_t>(drafted);
  Status status = std::exchange(ended, Status());
  const StatusCode code = status.code();
  // A model that has run a step fits the device.
  const bool isTooFewPages =
      code == StatusCode::OutOfMemory && model.engine.counts().steps > 0;
  if (code != StatusCode::Cancelled && code != StatusCode::Internal &&
      !isTooFewPages)
    return status;
  setDrafting(false);
  sequence.reset(); // others may need its pages
  pace.takeRest(length);
  return std::span<const int32_t>();
}

void DraftModel::run() {
  const double readied = engine.timings().total();
  const int64_t texts = drafting, before = engine.counts().steps;
  const Stopwatch watch;
  do
    engine.step();
  while (drafting > 0 && !engine.isIdle());
  const double seconds = watch.seconds();
  const int64_t steps = engine.counts().steps - before;
  if (measures && isMeasured && texts > 0 && steps > 0 &&
      engine.timings().total() == readied)
    times.drafting.add(texts, seconds / static_cast<double>(steps));
  isMeasured = true;
}
