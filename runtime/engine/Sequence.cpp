//===- Sequence.cpp - A text that a model reads and continues -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Sequence.h"

#include "runtime/core/Exceptions.h"
#include "runtime/engine/Engine.h"

#include <algorithm>
#include <utility>

using namespace kf;

Sequence::Sequence(Engine &owner, PagedSequence pages)
    : ScheduledReading(std::move(pages)), owner(owner) {
  ++owner.sequences;
}

Sequence::~Sequence() {
  owner.forget(*this);
  --owner.sequences;
}

static Status checkIds(std::span<const int32_t> ids, int64_t vocabulary) {
  if (ids.empty())
    return Status::error("there are no tokens to read; begin with the "
                         "begin-of-text token");
  for (int32_t id : ids)
    if (id < 0 || id >= vocabulary)
      return Status::error("token id " + std::to_string(id) +
                           " is outside the vocabulary of " +
                           std::to_string(vocabulary));
  return Status();
}

static Status readsAlready() {
  return Status::error("the sequence is reading; wait for the end, or cancel");
}

Status Sequence::read(Reading wanted) try {
  if (isReading())
    return readsAlready();
  if (owner.isFollowingCancelled(*this))
    return Status::cancelled();
  KF_RETURN_IF_ERROR(checkIds(wanted.ids, owner.model().config().vocabSize));
  if ((wanted.drafted > 0 || wanted.mostDrafts > 0) &&
      (wanted.drafted >= wanted.ids.size() || !wanted.sampler ||
       wanted.sampler->dependsOnTokens() || wanted.constraint ||
       wanted.onLogProbs))
    return Status::error("drafts follow a token, and are for samplers that do "
                         "not depend on tokens, alone",
                         StatusCode::Internal);
  const int64_t context = owner.contextLength();
  if (static_cast<uint64_t>(context - position()) < wanted.ids.size())
    return Status::error("context is full: " + std::to_string(position()) +
                         " of " + std::to_string(context) +
                         " positions are used, no room for " +
                         std::to_string(wanted.ids.size()) + " more");
  const int64_t length = position() + static_cast<int64_t>(wanted.ids.size());
  if (const int64_t room = owner.textLimit(); length > room)
    return Status::error(
        "the KV cache is too small: it has room for " + std::to_string(room) +
            " positions, and a sequence needs " + std::to_string(length) +
            "; give the cache more memory",
        StatusCode::OutOfMemory);
  owner.add(*this);
  reading = std::move(wanted);
  ids = std::move(reading->ids);
  next = readAgain = 0;
  drafted = reading->drafted;
  firstWanted = reading->onLogits      ? reading->firstLogits
                : reading->onEmbedding ? reading->firstEmbedding
                                       : firstBeforeDrafts();
  before = position();
  if (before == 0)
    reused = 0;
  if (pages.lacksState())
    if (Status status = catchExceptions([&] {
          giveUpPages();
          return Status();
        });
        !status.ok()) {
      reading.reset();
      owner.remove(*this);
      return status;
    }
  return Status();
} catch (...) {
  return statusOfException();
}

void Sequence::cancel() {
  if (owner.isQueued(*this))
    owner.end(*this, Status::cancelled());
  else
    owner.cancelFollowing(*this);
  if (isReading()) // its end is not told yet
    owner.tell();
}

/// What is read is one token, and then `drafts`.
void Sequence::addDrafts(std::span<const int32_t> drafts) {
  if (drafts.empty())
    return;
  ids.insert(ids.end(), drafts.begin(), drafts.end());
  drafted = drafts.size();
  firstWanted = firstBeforeDrafts();
}

/// Behind which the first token is chosen, where some are drafted.
size_t Sequence::firstBeforeDrafts() const {
  return drafted > 0 ? ids.size() - drafted - 1 : ids.size();
}

bool Sequence::restsFromDrafts() const {
  return draftText && draftText->isResting(static_cast<size_t>(position()) + 2);
}

int64_t Sequence::contextLength() const { return owner.contextLength(); }

Status Sequence::rewind(int64_t position) {
  if (isReading())
    return readsAlready();
  if (position < 0 || position > pages.length())
    return Status::error("cannot go back to position " +
                         std::to_string(position) + "; " +
                         std::to_string(pages.length()) + " tokens were read");
  owner.forgetAhead(*this);
  pages.truncate(position);
  reused = std::min(reused, position);
  return Status();
}

Result<std::unique_ptr<Sequence>> Sequence::fork() const try {
  if (isReading())
    return readsAlready();
  KF_ASSIGN_OR_RETURN(PagedSequence shared, pages.fork());
  return std::unique_ptr<Sequence>(new Sequence(owner, std::move(shared)));
} catch (...) {
  return statusOfException();
}
