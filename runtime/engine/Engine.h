//===- Engine.h - Many sequences in one step --------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   std::unique_ptr<Engine> engine = Engine::create(model, options).take();
//   std::unique_ptr<Sequence> sequence = engine->createSequence();
//   sequence->read({.ids = prompt, .sampler = &sampler, .done = next});
//   while (engine->step()) {
//   }
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_ENGINE_H
#define KF_RUNTIME_ENGINE_ENGINE_H

#include "runtime/core/Stopwatch.h"
#include "runtime/engine/DraftModel.h"
#include "runtime/engine/KVCache.h"
#include "runtime/engine/Model.h"
#include "runtime/engine/NgramDrafter.h"
#include "runtime/engine/PagePool.h"
#include "runtime/engine/PromptPace.h"
#include "runtime/engine/Scheduler.h"
#include "runtime/engine/Sequence.h"
#include "runtime/engine/StepExecutor.h"
#include "runtime/engine/StepPace.h"
#include "runtime/engine/StepPlan.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kf {

struct EngineOptions {
  /// Positions that a sequence has room for; 0 for as many as the model was
  /// made for, which is also the most.
  int64_t contextLength = 0;
  /// Sequences that read at once. There may be more; steps take turns then.
  int64_t parallel = 1;
  /// Pages of the cache, pagePositionsOf() positions each, of all layers or of
  /// a group of them (LayerCaches.h); 0 for as many as `parallel` sequences of
  /// whole contexts and the longest step need, which with states are at least
  /// those of a slot for each (pagesOfSequences()).
  int64_t pages = 0;
  /// The most rows of a step, at least 1: what is read of a prompt beside
  /// sequences that generate, and so how long those wait; none: as
  /// promptRowsOf() has it.
  std::optional<int64_t> rowsPerStep = std::nullopt;
  /// Seconds that a step should take at most, for the sake of those that
  /// generate beside a prompt and of whoever cancels one: prompts are read in
  /// chunks of as many rows as are quick enough by what the last steps took.
  /// None: nobody waits, and chunks are as large as steps.
  std::optional<double> longestStep = std::nullopt;
  /// Whether prompts are read in chunks that leave those that generate beside
  /// them their share of the time (PromptPace): people wait for each token.
  bool sharesTime = false;
  /// Whether sequences take over what the cache has of their first tokens; they
  /// never do where the model's layers keep states.
  bool reusesPrefixes = true;
  /// How texts draft tokens that they have had before, which are read together
  /// and kept as far as they are those that would have been chosen: few steps
  /// for a text that repeats itself. Not those with penalties, a constraint, or
  /// probabilities that are wanted. A step chooses behind as many drafts of
  /// each sequence; none: nothing is drafted.
  std::optional<NgramOptions> ngrams = std::nullopt;
  /// The same by a model that drafts them, in place of `ngrams`; null: none.
  /// Not owned; its engine has room for as many sequences.
  DraftModel *draftModel = nullptr;
  /// Whether a step begins while the host learns what the one before has
  /// chosen; none: where the device works by itself. Never where the model's
  /// layers keep states.
  std::optional<bool> runsAhead = std::nullopt;
  /// Ends what is read when it is set: a step between two dispatches, where
  /// the device can. Not owned.
  CancelFlag cancelled = nullptr;
  /// Where the times of all steps' kernels go; null: they are not measured. Not
  /// owned.
  Profile *profile = nullptr;
};

/// The most tokens that a step chooses: with more rows, products are bound by
/// arithmetic, so that a second step takes no longer.
inline constexpr int64_t kMostChosenPerStep = 256;

/// Rows of a prompt that a step of `model` has on `device`: its promptRows(),
/// but no more than 512 where it could not have as many rows of the model's
/// widest in one tensor of f32, and mostStepRows(model) at most.
int64_t promptRowsOf(const ModelConfig &model, const Device &device);
/// Rows of the programs for steps of `model` of at most `mostRows` rows, with
/// `parallel` sequences at most, which increase from 1 to the first size with
/// room for them: 1, 16, 64, 512, 2048 ..., and 128 and 256 where there are
/// more than half as many sequences. Where `device` takes rows in tiles, 32 is
/// one as well, and so are 128 and 256 of a single sequence; where it has tiles
/// between (Device::hasTilesBetween()), 24, 48, 80, 96 and 192 are where there
/// are more than 16, 32, 64, 80 and 128 sequences. The last one is
/// mostStepRows(model) at most, and so are the rows.
std::vector<int64_t> programRows(int64_t mostRows, int64_t parallel,
                                 const ModelConfig &model,
                                 const Device &device);
/// Whether the program for `rows` rows is for several sequences that generate,
/// and, where there may be several, not for a prompt alone.
bool isForGenerating(int64_t rows);

/// What happened so far.
struct EngineCounts {
  int64_t steps = 0;
  int64_t rows = 0;        ///< ids that were read in them
  int64_t chosen = 0;      ///< tokens that samplers chose
  int64_t mostPages = 0;   ///< that sequences had at once
  int64_t ahead = 0;       ///< steps that began before their ids were known
  int64_t drafted = 0;     ///< tokens that were drafted and chosen behind
  int64_t accepted = 0;    ///< of them, those that were chosen
  int64_t preemptions = 0; ///< of sequences whose pages others needed
};

/// Bytes that an engine and its model hold on their device, and those that
/// draft for it: of several ranks, what the first one does.
struct EngineMemory {
  uint64_t weights = 0; ///< those that lie in the mapped file included
  uint64_t cache = 0;   ///< keys and values
  uint64_t arenas = 0;  ///< intermediate tensors of the programs
  uint64_t io = 0;      ///< inputs and outputs of the programs

  uint64_t total() const { return weights + cache + arenas + io; }
};

/// Seconds spent in making programs ready, so far, those of a model that drafts
/// included.
struct EngineTimings {
  double compile = 0; ///< in the StepProvider
  double load = 0;    ///< in loading and binding
  double pack = 0;    ///< in packing weights

  double total() const { return compile + load + pack; }
};

/// Reads many sequences of one model, a step at a time. A step takes one row of
/// every sequence that generates, and fills up with rows of prompts, one after
/// the other; some may want tokens chosen, others logits or embeddings.
/// Programs come in few sizes (programRows): bodies by the rows of a step,
/// heads and choices by the rows that something is wanted behind. What a
/// sequence gets does not depend on the others, but for rounding; where one
/// fails, by logits that are not finite for instance, the others go on. Where
/// the cache has too few pages, sequences wait (Scheduler.h).
///
/// A prompt that begins as one that is being read waits for what the two have
/// in common, and then shares its pages, unless the model's layers keep states.
///
/// Where each of several ranks has a stage of the model, as many steps are
/// under way as there are stages: while the last stage computes one, those
/// before it compute what the next ones read, which are of other sequences, or
/// of later rows of a prompt. A step has its share of those that generate then.
///
/// Refers to `model`, which must outlive it; its sequences must not. One
/// thread.
class Engine {
public:
  /// Allocates nothing on the device yet. Errors: options that are not in their
  /// ranges, a context length that the model cannot have for one.
  static Result<std::unique_ptr<Engine>>
  create(Model &model, const EngineOptions &options = {});
  ~Engine();
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  /// A sequence without tokens, all of whose rows have the adapter of this
  /// number; 0: none. It shares pages with those of the same alone. Error: the
  /// model was opened with fewer.
  Result<std::unique_ptr<Sequence>> createSequence(int64_t adapter = 0);
  /// Runs one step of what there is to read, and tells sequences what came of
  /// it; returns whether there is more to read. What fails ends readings. Steps
  /// behind it may be under way then; they are over where nobody reads.
  bool step();
  bool isIdle() const { return scheduler.queue().empty() && open.empty(); }

  /// Whether EngineOptions::cancelled is set.
  bool isCancelled() const { return kf::isCancelled(options.cancelled); }
  int64_t contextLength() const { return options.contextLength; }
  /// EngineOptions'.
  const std::optional<NgramOptions> &ngrams() const { return options.ngrams; }
  /// That of the model that drafts; null: there is none.
  Engine *draftEngine() const {
    return options.draftModel ? &options.draftModel->owner() : nullptr;
  }
  /// The same, or fewer where the cache has fewer positions.
  int64_t textLimit() const {
    return std::min(options.contextLength, positions);
  }
  /// EngineOptions::parallel.
  int64_t parallel() const { return options.parallel; }
  /// Sequences that read and have no pages yet, or not any more.
  int64_t waiting() const { return scheduler.waiting(); }
  /// The most rows of a step.
  int64_t rowsPerStep() const { return *options.rowsPerStep; }
  /// Whether steps begin before the tokens are known that they read.
  bool runsAhead() const { return *options.runsAhead; }
  /// The most tokens that a step chooses.
  int64_t chosenPerStep() const;
  /// Rows at most of the body of a step which reads `rows` rows of `sequences`
  /// sequences. It depends on which programs there are by now.
  int64_t bodyRows(int64_t rows, size_t sequences) const;
  /// The programs that steps which choose tokens run, from the smallest on.
  std::vector<StepShape> shapesToPrepare() const;
  /// Makes the program of `shape` ready, so that no step has to wait for it; of
  /// a choice, its head, too. Errors: as Model::program(), and the device's.
  Status prepare(const StepShape &shape);
  const Model &model() const { return decoder; }
  const PagePool &pages() const { return *pool; }

  EngineCounts counts() const;
  EngineMemory memory() const;
  EngineTimings timings() const;

private:
  friend class Sequence;

  /// Ids that a sequence reads in a step: the next `count` ones.
  struct Piece {
    Sequence *sequence; ///< null once what it read has ended
    size_t count;
    size_t logits = 0;      ///< rows, the last ones, whose logits are wanted
    bool isChosen = false;  ///< a token is chosen behind the last one
    size_t drafted = 0;     ///< and behind so many before it: the last ids
    bool isFetched = false; ///< and its logits come to the host, too
    size_t embedded = 0;    ///< as `logits`: those whose embeddings are wanted
    bool isLast = false;    ///< nothing is left to read behind it

    /// Tokens that are chosen.
    size_t choices() const { return isChosen ? 1 + drafted : 0; }
  };
  struct Plan {
    std::vector<Piece> pieces;
    StepPlan batch;
    /// Rows of its programs: of the body, of the head in front of a choice, of
    /// that whose logits the host gets, and of what makes embeddings.
    int64_t body = 1, head = 1, logitsHead = 1, embed = 1;
    /// Rows of prompts, and of readings that generate.
    int64_t ofPrompts = 0, ofTexts = 0;

    bool isMixed() const { return ofPrompts > 0 && ofTexts > 0; }
    /// What is read for `sequence` is nobody's.
    void remove(const Sequence &sequence) {
      for (Piece &piece : pieces)
        if (piece.sequence == &sequence)
          piece.sequence = nullptr;
    }
  };
  /// A step that is in the stream, and whose sequences are not told of it yet.
  struct Open {
    Plan plan;
    uint64_t step = 0;      ///< StepExecutor::submit()'s number
    Stopwatch watch;        ///< since it was submitted
    size_t sharing = 1;     ///< steps that were under way then, itself included
    bool wasAhead = false;  ///< it began before it was asked for
    bool isMeasured = true; ///< nothing of later ones waited for it
  };
  /// How a token is chosen.
  struct Choice {
    SampleSettings settings;
    SamplePenalties penalties;
    std::vector<LogitAdjustment> adjustments;
    bool isFetched = false; ///< logits come to the host, too

    int64_t adjustmentCount() const {
      return static_cast<int64_t>(adjustments.size());
    }
    /// Of the next row that `batch` wants, among `allowed` tokens; none: all.
    void addTo(StepPlan &batch, std::span<const uint32_t> allowed = {}) const {
      batch.choose(settings, penalties, adjustments, allowed);
      if (isFetched)
        batch.fetchLogits();
    }
    bool operator==(const Choice &) const = default;
  };
  /// What a reading has to be for a step that began before it.
  struct Expected {
    uint32_t row = 0; ///< wanted row of the step before that chooses its id
    int32_t id = -1;  ///< once it is known
    Choice choice;
    const TokenConstraint *constraint = nullptr; ///< of the choice
  };
  /// A step that nobody has asked for yet. The device has begun with it, or
  /// will when it is done with the one before.
  struct Ahead {
    Plan plan;
    uint64_t step = 0;              ///< StepExecutor::submit()'s number
    std::vector<Expected> expected; ///< for each piece
    /// How tokens are chosen depends on those that the step before chooses: it
    /// is said when the host knows them.
    bool choosesLater = false;
  };
  struct Ended {
    Sequence *sequence; ///< null once it is destroyed
    Reading::Outcome outcome;
    bool isCancelled = false; ///< by Sequence::cancel(), after it had ended
  };
  /// A `done` that is being called.
  struct Telling {
    Sequence *sequence; ///< null once it is destroyed
    bool isCancelled;   ///< what it was called for: it cannot read on
    Telling *outer;     ///< the one that led to this, or null
  };

  Engine(Model &model, const EngineOptions &options,
         std::unique_ptr<PagePool> pool);

  // Readings.
  void add(Sequence &sequence);
  bool isQueued(const Sequence &sequence) const;
  void remove(Sequence &sequence);
  void forget(Sequence &sequence);
  void end(Sequence &sequence, Reading::Outcome outcome);
  void cancelFollowing(const Sequence &sequence);
  bool isFollowingCancelled(const Sequence &sequence) const;
  void fail(Sequence &sequence, const Status &status);
  void failAll(const Status &status);
  void tell();

  // What a step is made of.
  void draft();
  bool isForHost() const;
  int64_t textsOfStep() const;
  int64_t rowsOfPrompts() const;
  void makePlan();
  Status tryAddPiece(Sequence &sequence, int64_t rows);
  void keepDrafts(Sequence &sequence, int64_t rows, const Choice &choice);
  Choice choiceOf(const Reading &reading) const;
  Result<std::span<const uint32_t>>
  allowedBy(TokenConstraint *constraint) const;
  int64_t adjustmentLimit() const;

  // Which programs it runs. Bodies come in sizes for parallel() sequences that
  // generate, with a row each: more rows, of drafts or prompts, take one of the
  // usual sizes. Heads and choices come in sizes for mostChoices() rows, which
  // drafts are among.
  int64_t mostChoices() const;
  int64_t headRows(int64_t chosen) const;
  int64_t rowsForHost(StepPart part, int64_t rows) const;
  void spoilMeasures();
  Status makeReady(const StepShape &shape);
  Status preparePrograms();
  Status prepareEmbedding(size_t rows);

  // Running it.
  Status runStep();
  bool mayBegin() const;
  Status beginSteps();
  Status beginPlan();
  void takeAhead();
  Status finishStep();
  Status finishPlan(const Open &begun);
  Status failPlan(const Status &status);
  void measure(const Open &begun, double seconds);
  void revoke(const Status &status);
  Status copyPages();
  void commit();
  void count();
  void giveLogProbs(uint64_t step, std::span<const int32_t> chosen);
  void giveChosen(std::span<const int32_t> chosen);
  void giveChoices(Sequence &sequence, std::span<const int32_t> ids);
  Status giveRows(StepPart part, double &seconds);

  // Steps that begin before they are asked for.
  void beginAhead(uint64_t before);
  bool mayBeginAhead();
  Result<bool> tryBeginAhead(uint64_t before, Ahead &next);
  Status planAhead(Ahead &next, StepExecutor::Source &source);
  void expectChosen(std::span<const int32_t> chosen);
  bool isAsExpected(const Piece &piece, const Expected &expected) const;
  void settleAhead();
  void chooseAhead();
  Status tryChooseAhead();
  void forgetAhead(const Sequence &sequence);
  void dropAhead(Ahead &dropped);

  Model &decoder;
  EngineOptions options;
  std::unique_ptr<PagePool> pool;
  KVCache cache;
  int64_t positions; ///< of a sequence that has all pages, at most
  StepExecutor executor;
  Scheduler scheduler; ///< of the sequences that read
  StepPace pace;
  PromptPace promptPace;
  Stopwatch sinceStep;        ///< from the last one's end
  std::vector<Ended> ended;   ///< whose `done` is to be called
  Telling *telling = nullptr; ///< the innermost; they are on the stack
  Plan plan;                  ///< of the step that begins, or is told of
  /// Steps that may be under way: as many as there are stages, but one where
  /// steps are measured, which are waited for.
  const size_t mostOpen;
  std::vector<Open> open;     ///< the first to end first; has room for them
  std::optional<Ahead> ahead; ///< the next one, if it was begun
  EngineCounts counters;
  int64_t sequences = 0; ///< that live
};

/// Runs the sequence's engine until `reading`, whose `done` is not called, is
/// over; returns what came of it.
Reading::Outcome readAlone(Sequence &sequence, Reading reading);
/// The same for the logits of all `ids`.
Status readLogits(Sequence &sequence, std::span<const int32_t> ids,
                  LogitsCallback onLogits);

} // namespace kf

#endif // KF_RUNTIME_ENGINE_ENGINE_H
