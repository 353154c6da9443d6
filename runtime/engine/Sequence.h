//===- Sequence.h - A text that a model reads and continues -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_SEQUENCE_H
#define KF_RUNTIME_ENGINE_SEQUENCE_H

#include "runtime/core/Status.h"
#include "runtime/engine/LogProbs.h"
#include "runtime/engine/PagePool.h"
#include "runtime/engine/Sampler.h"
#include "runtime/engine/Scheduler.h"
#include "runtime/engine/TokenConstraint.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kf {

class DraftText;
class Engine;

/// Called with the number of an id among those that are read, and the logits
/// [vocabulary] that follow it, which are valid during the call. An error ends
/// the reading.
using LogitsCallback =
    std::function<Status(size_t index, std::span<const float> logits)>;
/// The same with the id's embedding [hidden size], finite numbers: the row that
/// the last layer makes of it and of those before it, after the final norm.
using EmbeddingCallback =
    std::function<Status(size_t index, std::span<const float> row)>;

/// Tokens that a sequence is to read, and what is wanted to know of what
/// follows them. The engine calls its functions from within Engine::step() and
/// Sequence::cancel(). They throw nothing, and may use the engine, but for
/// step() and its destructor, and all sequences: make and destroy them, read,
/// cancel. `done` may do so with its own sequence, too, and destroy it;
/// the others leave their own one as it is; `onLogits` and `onEmbedding` end
/// the reading by an error.
struct Reading {
  /// At least one; ids of the vocabulary.
  std::vector<int32_t> ids;

  /// Chooses the token that follows the last id; null where none is wanted.
  /// It has seen all tokens up to there. Not owned; must live until `done`.
  const Sampler *sampler = nullptr;
  /// Which tokens the sampler chooses among; null: all. It has accepted those
  /// of its text up to there. As the sampler, not owned.
  TokenConstraint *constraint = nullptr;
  /// How many of `ids`, the last ones, are drafts of what is chosen behind the
  /// others; not all of them. The sampler chooses behind each, and those are
  /// read that it would have chosen, up to the first other one: `done` is
  /// called with the token behind these, and position() says how many there
  /// are. Where a step has no room for drafts, none is read. For samplers that
  /// do not depend on tokens, without a constraint and `onLogProbs`.
  size_t drafted = 0;
  /// The caller means to read the token that is chosen next, alone, by the same
  /// sampler, which has accepted it then: from `done` of this reading. The
  /// engine may begin with that before the token is known to the host.
  bool goesOn = false;
  /// How many tokens the engine's draft model may draft behind the last id, as
  /// if they were `drafted`, where that is the only one that is left to read.
  size_t mostDrafts = 0;
  /// The next reading may have drafts: no step begins before it.
  bool draftsNext = false;

  /// Beside a token: how likely the model finds it, and the `topLogProbs` most
  /// likely ones; called before `done`. Logits come to the host for it.
  std::function<void(const ChosenLogProbs &logProbs)> onLogProbs;
  size_t topLogProbs = 0;

  /// Instead of a sampler: called for each id from number `firstLogits` on, in
  /// order.
  LogitsCallback onLogits;
  size_t firstLogits = 0;

  /// Instead of both: called for each id from number `firstEmbedding` on, in
  /// order. Rows that are not finite are an error, and never come.
  EmbeddingCallback onEmbedding;
  size_t firstEmbedding = 0;

  /// Called once: with the token that was chosen, if one was wanted, or with
  /// the error that ended the reading. The sequence has nothing to read then
  /// and may be given more, or be destroyed.
  using Outcome = Result<std::optional<int32_t>>;
  std::function<void(const Outcome &outcome)> done;
};

/// One sequence of tokens, and the pages of the engine's cache that hold their
/// keys and values; made by an Engine, which must outlive it. One thread.
class Sequence : private ScheduledReading {
public:
  /// Gives the pages back. What it reads ends without a call of `done`.
  ~Sequence();
  Sequence(const Sequence &) = delete;
  Sequence &operator=(const Sequence &) = delete;

  /// Reads on, during the next steps of the engine. A sequence without tokens
  /// takes over what the engine's cache has of the beginning of `ids`. Where
  /// there are too few pages it waits for them, and may lose those that it has
  /// to a sequence that came earlier (Scheduler.h): then it reads its tokens
  /// again, and position() goes back meanwhile. Where reading fails the
  /// sequence is what it was before; only where a page of it could not be
  /// copied, position() is the first of that page, and where it has lost its
  /// pages, what it has by then. Of a model whose layers keep states, a
  /// sequence without one of its last token reads its tokens again as well,
  /// from 0 on, and nothing is taken over: after rewind(), as a fork, where a
  /// reading has failed or was cancelled, and where one that began needed its
  /// slot. So does one of a model whose layers with windows have pages of their
  /// own, with what the cache has of them, where it went back by more than a
  /// page and the windows' pages have been used for something else, by itself
  /// too. Errors at once: ids that are none, more than the context or the whole
  /// cache has room for, a sequence that reads, Status::cancelled() after
  /// cancel() within `done`.
  Status read(Reading reading);
  bool isReading() const { return reading.has_value(); }
  /// Whether what is read next has its tokens read again before it (read()).
  bool readsAgain() const { return pages.lacksState(); }
  /// Ends what it reads with Status::cancelled(), which `done` is called with
  /// before this returns; the sequence is what it is after another error of
  /// read(), which may be shorter than before. Where the reading has ended
  /// already, in the step that calls this, `done` is called with what came of
  /// it, or is what calls this; then it cannot read on: until it returns,
  /// read() is Status::cancelled(). So a text that goes on from `done` ends
  /// wherever it is cancelled from. Nothing happens where nothing is read and
  /// no `done` is being called.
  void cancel();

  Engine &engine() const { return owner; }
  /// What Engine::createSequence() was given.
  int32_t adapter() const { return pages.kind(); }
  /// EngineOptions::contextLength.
  int64_t contextLength() const;
  /// How many tokens were read, and which.
  int64_t position() const { return pages.length(); }
  std::span<const int32_t> tokens() const { return pages.ids(); }
  /// Drafts of what was read last, whether they came true or not; the engine's
  /// included.
  size_t draftedTokens() const { return drafted; }
  /// Whether the engine's draft model drafts nothing behind the second token
  /// that it is to read next.
  bool restsFromDrafts() const;
  /// How many of them were found in the cache when the first were read.
  int64_t reusedTokens() const { return reused; }

  /// Forgets the tokens from `position` on, so that others can follow those
  /// before it; what is read next may begin with all of these (read()). Errors:
  /// a position that was not reached, a sequence that reads.
  Status rewind(int64_t position);
  /// A sequence of the same tokens, which share their pages until one of the
  /// two writes to them. It has no states, and reads its tokens again (read()).
  /// Error: a sequence that reads.
  Result<std::unique_ptr<Sequence>> fork() const;

private:
  friend class Engine;
  Sequence(Engine &owner, PagedSequence pages);
  void addDrafts(std::span<const int32_t> drafts);
  size_t firstBeforeDrafts() const;

  Engine &owner;
  /// Whose `ids` are the scheduler's.
  std::optional<Reading> reading;
  int64_t before = 0; ///< position when the reading began
  /// What a draft model has of it; null: none has drafted.
  std::unique_ptr<DraftText> draftText;
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_SEQUENCE_H
