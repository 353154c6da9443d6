//===- Session.h - A model and its programs, to be run ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Opens a model, for whoever runs one: commands, a server, another language.
// No compiler and no device is linked: both come as functions.
//
//   SessionOptions options;
//   options.model.path = "model.gguf";
//   std::unique_ptr<Session> session =
//       Session::open(options, {.device = openDevice,
//                               .steps = stepsFromFiles({"1.kf", "64.kf"})})
//           .take();
//   session->start({.parallel = 8});
//   session->engine().createSequence();
//
// kf/Driver/CompiledSession.h has the function that compiles steps. Errors name
// options as kf-run spells them, as all of the runtime's do.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_SESSION_H
#define KF_RUNTIME_SESSION_SESSION_H

#include "runtime/core/Cancellation.h"
#include "runtime/core/Observer.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/devices/OpenDevice.h"
#include "runtime/engine/Engine.h"
#include "runtime/measure/Profile.h"
#include "runtime/model/Stages.h"
#include "runtime/session/OpenModel.h"
#include "runtime/session/RankProcesses.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

class SessionDraft;

/// Positions that a session has room for unless more or fewer are asked for.
inline constexpr int64_t kDefaultContext = 4096;

/// A model that drafts for another one, of the same vocabulary.
struct DraftChoice {
  ModelChoice model = {};
  size_t mostTokens = kDefaultDraftTokens; ///< that are drafted at a time
};

/// Where packed weights are kept for the next start (PackedCache).
struct PackedChoice {
  std::string folder;
  uint64_t limit = 0; ///< bytes of all that is in it
};

/// What to open, and how.
struct SessionOptions {
  ModelChoice model = {};
  bool withTokenizer = true; ///< and its chat template
  DeviceChoice device = {};
  /// Ranks that run the model together, each with a device of its own, which
  /// gets a like part of the threads, or, of stages, of which a text alone
  /// keeps one at work, all of them. 1: the model is not shared out.
  int64_t ranks = 1;
  Parallelism parallelism = Parallelism::Tensor; ///< what each of several has
  /// The processes that the others are, as many as `ranks`, which this leads;
  /// null: they are threads of this process. Not owned.
  RankProcesses *processes = nullptr;
  /// Positions that a sequence has room for; 0: what start() is told that it
  /// takes, and 4096 if that is more; more than the model's most in no case,
  /// nor, without it, than LongRoPE's original context of 4096 or more.
  int64_t context = 0;
  bool wholeContext = false; ///< as many positions as the model has
  /// The adapter of Session::createSequence(); empty: none.
  std::string adapter = {};
  /// Bytes of the KV cache at most, of all ranks together; 0: what all
  /// sequences need.
  uint64_t cacheMemory = 0;
  /// EngineOptions'.
  std::optional<NgramOptions> ngrams = std::nullopt;
  /// What drafts on the same device, in place of n-grams; not with several
  /// ranks.
  std::optional<DraftChoice> draft = std::nullopt;
  /// Where the times of all steps' kernels go, but for those of a model that
  /// drafts; null: they are not measured.
  std::shared_ptr<Profile> profile = nullptr;
  /// Where packed weights are kept; nothing: they are packed at each start. For
  /// one rank.
  std::optional<PackedChoice> packed = std::nullopt;
  /// Ends whatever goes on, compiling, packing and steps, when it is set; may
  /// be null. Not owned, as the observer, which may be null, too.
  CancelFlag cancelled = nullptr;
  Observer *observer = nullptr;
};

/// Where a session's steps come from.
struct SessionSteps {
  /// What it calls must live as long as it does.
  StepProvider provide;
  std::vector<StepShape> shapes = {}; ///< the only ones; none: any
  DataType cacheType;                 ///< of their KV caches
  /// Where they came from so far, in a word or two: "compiled", "cached".
  std::function<std::string()> origin;
};

/// Makes that for a model and the device that it runs on, which outlive it.
using OpenSteps = std::function<Result<SessionSteps>(
    const ModelFiles &model, const Device &device,
    const SessionOptions &options)>;

/// Steps that were compiled ahead: those of the files `paths` (ProgramFiles).
OpenSteps stepsFromFiles(std::vector<std::string> paths);

/// What a session is made with.
struct SessionSources {
  OpenDevice device;
  OpenSteps steps;
  OpenEmbedded embedded = nullptr; ///< null: the program carries no model
};

/// What the sequences of an engine take.
struct StartOptions {
  int64_t tokens = 0; ///< the most of one; 0: not known
  /// Sequences that read at once; nothing: Device::textsAtOnce(), but no more
  /// than `texts`, nor than whole contexts have room in a GPU's memory.
  std::optional<int64_t> parallel = 1;
  int64_t texts = INT64_MAX; ///< that there are at most
  /// Whether sequences take over what the cache has of their first tokens.
  bool reusesPrefixes = true;
  std::optional<double> longestStep = std::nullopt; ///< EngineOptions'
};

/// A model, the device that it runs on, and the engine that runs it. One
/// thread, its engine and sequences included. Throws nothing: want of memory is
/// an error, but for what LLVM and MLIR need (kf/Driver/Compiler.h).
class Session {
public:
  /// Opens the model and the device, and the other ranks'. Nothing is compiled
  /// or packed yet. Errors of another rank name it; those of partOfRank().
  static Result<std::unique_ptr<Session>> open(SessionOptions options,
                                               const SessionSources &sources);

  ~Session();

  /// Makes the engine. Another call makes another engine of the same programs
  /// and weights; sequences of the one before must be gone. Errors: a cache or
  /// weights that the device has no room for, steps that it cannot load.
  Status start(const StartOptions &needs);

  /// After start(): one of the engine's, with SessionOptions::adapter.
  Result<std::unique_ptr<Sequence>> createSequence();
  /// After start(): an error if the context has no room for a prompt.
  Status checkFits(std::span<const int32_t> prompt) const;
  /// The tokens that generation continues (ModelFiles.h). Of a session with a
  /// tokenizer.
  Result<std::vector<int32_t>> encodePrompt(std::string_view text) const;

  /// The whole model, also where there are several ranks.
  const ModelFiles &files() const { return opened; }
  /// Of a session with one.
  const Tokenizer &tokenizer() const { return *opened.tokenizer; }
  /// Of several, that of rank 0.
  Device &device() { return *target; }
  int64_t ranks() const { return options.ranks; }
  /// Of these, how many share the threads: stages have all of them each.
  int64_t ranksAtOnce() const {
    return options.parallelism == Parallelism::Pipeline ? 1 : options.ranks;
  }
  /// After start().
  Engine &engine() { return *running; }
  const Engine &engine() const { return *running; }
  /// SessionOptions::profile.
  const Profile *profile() const { return options.profile.get(); }
  /// The tables of the other ranks' runs (Profile::table()), by rank from 1 on;
  /// none where there is no profile, no other rank, or nothing has run. While
  /// no sequence is being read.
  struct RankProfile {
    std::string rank, table; ///< what errors call the rank
  };
  Result<std::vector<RankProfile>> profilesOfOthers();
  /// SessionSteps::origin.
  std::string origin() const { return steps.origin(); }

  /// Seconds that opening took.
  double openSeconds() const { return seconds; }

private:
  explicit Session(SessionOptions options);

  Status openAll(const SessionSources &sources);
  int64_t sharers() const;
  Result<RankSetup> becomeFirstRank();
  Status startRanks(RankSetup setup, const SessionSources &sources);
  /// What this rank has of the model.
  const ModelFiles &part() const { return shared ? *shared : opened; }
  std::vector<std::string> keysOfOthers() const;
  Status makeModel();
  uint64_t cacheBytes(int64_t pages) const;
  uint64_t meanCacheBytes(int64_t pages) const;
  Result<int64_t> pagesFor(uint64_t bytes, int64_t most) const;
  Status checkMemory(int64_t pages, int64_t context, int64_t sequences,
                     double share = 1) const;
  int64_t pagesOf(int64_t context, int64_t sequences) const;
  int64_t goodParallel(int64_t texts, int64_t context);

  SessionOptions options;
  std::unique_ptr<OtherRanks> others; ///< null: there is one rank
  std::unique_ptr<Device> target;
  std::unique_ptr<ThreadPool> pool; ///< packs weights; null for none
  ModelFiles opened;
  std::optional<ModelFiles> shared; ///< rank 0's part of several
  std::vector<ModelFiles> stages;   ///< of ranks 1, 2, ...; or none
  int64_t adapter = 0;              ///< number of SessionOptions::adapter
  int64_t mostContext = 0; ///< positions that its configuration is right for
  SessionSteps steps;
  std::vector<StepProvider> stageSteps; ///< of `stages`
  std::optional<PackedCache> packed;
  std::unique_ptr<Model> model;
  std::unique_ptr<SessionDraft> draft; ///< null: none
  std::unique_ptr<Engine> running;
  double seconds = 0;
};

/// What a process does that is another rank than rank 0, with what rank 0's
/// sessions are made with: follows them all. Errors: RankProcesses::follow()'s.
Status followSessions(RankProcesses &processes, const OpenDevice &device,
                      const OpenEmbedded &embedded);

} // namespace kf

#endif // KF_RUNTIME_SESSION_SESSION_H
