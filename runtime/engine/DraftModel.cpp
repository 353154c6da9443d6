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
/// time: the last ones of the drafts before, and the one behind them.
static constexpr size_t kFewBehind = 2;

DraftText::DraftText(DraftModel &model) : model(model) {}

DraftText::~DraftText() = default;

void DraftText::begin(std::span<const int32_t> tokens, int32_t last,
                      const Sampler &given, size_t most, size_t texts) {
  if (ended.code() == StatusCode::OutOfMemory) {
    sequence.reset(); // others need its pages
    pace.takeRest(tokens.size() + 1);
  }
  drafted.clear();
  ended = Status();
  // The last draft is not read.
  const auto length = static_cast<int64_t>(tokens.size()) + 1;
  const int64_t room = model.engine.textLimit() - length + 1;
  wanted =
      pace.worth(model.times,
                 std::min({most, model.most,
                           static_cast<size_t>(std::max<int64_t>(room, 0))}),
                 texts, static_cast<size_t>(length));
  if (wanted == 0 || last >= model.engine.model().config().vocabSize)
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
  const auto known = static_cast<size_t>(
      std::ranges::mismatch(sequence->tokens(), tokens).in2 - tokens.begin());
  KF_RETURN_IF_ERROR(sequence->rewind(static_cast<int64_t>(known)));
  std::vector<int32_t> ids(tokens.begin() + static_cast<ptrdiff_t>(known),
                           tokens.end());
  ids.push_back(last);
  model.longest = std::max(model.longest, wanted);
  model.behind = std::max(model.behind, ids.size());
  return read(std::move(ids));
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

Result<std::span<const int32_t>> DraftText::drafts() const {
  if (ended.ok())
    return std::span<const int32_t>(drafted);
  if (ended.isCancelled() || ended.code() == StatusCode::OutOfMemory)
    return std::span<const int32_t>();
  return ended;
}

void DraftModel::run() {
  const double readied = engine.timings().total();
  const Stopwatch watch;
  while (engine.step()) {
  }
  const double seconds = watch.seconds();
  if (measures && longest > 0 && behind <= kFewBehind &&
      engine.timings().total() == readied)
    times.addDrafts(longest, seconds);
  longest = behind = 0;
}
