//===- Session.cpp - A model and its programs, to be run ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/Session.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Lines.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/core/UsableThreads.h"
#include "runtime/engine/ModelFit.h"
#include "runtime/engine/ProgramFiles.h"
#include "runtime/engine/RankFollower.h"
#include "runtime/model/LayerCaches.h"
#include "runtime/model/ModelWork.h"
#include "runtime/model/RopeFactors.h"
#include "runtime/session/KeptWeights.h"
#include "runtime/session/LocalRanks.h"
#include "runtime/session/PackingProgress.h"
#include "runtime/session/SessionDraft.h"

#include <algorithm>
#include <utility>

using namespace kf;

/// Sequences at once, for which pages are counted at most.
static constexpr int64_t kMostParallel = int64_t(1) << 24;
/// Of a GPU's memory that is free, the share that weights and a cache may take
/// whose size nobody has said: programs need some, too.
static constexpr double kShareOfMemory = 0.9;

/// That of keys and values: states, which may come first, are of f32.
static DataType cacheTypeOf(std::span<const CacheSpec> caches) {
  const auto keys = std::ranges::find_if_not(caches, &CacheSpec::isOfStates);
  return keys == caches.end() ? DataType::F32 : keys->type;
}

OpenSteps kf::stepsFromFiles(std::vector<std::string> paths) {
  return [paths = std::move(paths)](
             const ModelFiles &model, const Device &device,
             const SessionOptions &) -> Result<SessionSteps> {
    KF_ASSIGN_OR_RETURN(ProgramFiles read,
                        ProgramFiles::open(paths, model, device.name()));
    const auto files = std::make_shared<const ProgramFiles>(std::move(read));
    return SessionSteps{
        .provide =
            [files](const StepShape &shape) { return files->get(shape); },
        .shapes = files->shapes(),
        .cacheType = cacheTypeOf(files->caches()),
        .origin = [] { return std::string("from files"); }};
  };
}

Session::Session(SessionOptions options) : options(std::move(options)) {}

Session::~Session() = default;

Result<std::unique_ptr<Session>>
Session::open(SessionOptions options, const SessionSources &sources) try {
  Stopwatch watch;
  const ObservedWork work(options.observer, "opening the model");
  std::unique_ptr<Session> session(new Session(std::move(options)));
  KF_RETURN_IF_ERROR(session->openAll(sources));
  session->seconds = watch.seconds();
  return session;
} catch (...) {
  return statusOfException();
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

/// Weights are packed on the CPU, whatever computes with them, by this rank's
/// share of its threads where `sharers` ranks may use them and `choice` gives
/// none. Null: by the caller alone.
static Result<std::unique_ptr<ThreadPool>>
createPackingPool(const Device &device, const DeviceChoice &choice,
                  int64_t sharers) {
  const int64_t threads = choice.threads != 0
                              ? choice.threads
                              : std::clamp<int64_t>(usableThreads() / sharers,
                                                    1, ThreadPool::maxThreads);
  if (device.name() == "reference" || threads == 1)
    return std::unique_ptr<ThreadPool>();
  return ThreadPool::create(static_cast<int>(threads));
}

/// Rank `rank`'s part of a model, which has to outlive it; without a tokenizer.
static Result<ModelFiles> partOf(const ModelFiles &whole, int64_t rank,
                                 int64_t ranks, Parallelism parallelism) {
  // Owned by nobody: what shares a model out may keep it, and need not.
  const std::shared_ptr<const WeightSource> weights(std::shared_ptr<void>(),
                                                    whole.weights.get());
  Result<ModelShard> shard =
      partOfRank(whole.config, weights, rank, ranks, parallelism);
  if (!shard.ok())
    return nameModel(whole, shard.status());
  ModelFiles part;
  part.name = whole.name;
  part.config = std::move(shard->config);
  part.configText = whole.configText;
  part.weights = std::move(shard->weights);
  part.pooling = whole.pooling;
  return part;
}

/// What all ranks but the first do, `sharers` of which may use the CPUs of this
/// one, itself and the first included.
static Status runRank(const RankSetup &setup, int64_t sharers,
                      CancelFlag cancelled, const OpenDevice &open,
                      const OpenEmbedded &embedded, Group &group,
                      RankChannel &leader) {
  KF_ASSIGN_OR_RETURN(ModelFiles whole,
                      openModel(setup.model, /*withTokenizer=*/false, embedded,
                                /*observer=*/nullptr));
  settleContext(whole.config, setup.context);
  KF_ASSIGN_OR_RETURN(
      const ModelFiles part,
      partOf(whole, group.rank(), group.size(), setup.parallelism));
  DeviceChoice choice = setup.device;
  choice.rank = group.rank();
  choice.ranks = group.size();
  KF_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                      open(choice, /*observer=*/nullptr));
  KF_RETURN_IF_ERROR(device->join(group));
  KF_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadPool> pool,
                      createPackingPool(*device, setup.device, sharers));
  RankFollower follower(part.config, *device, *part.weights,
                        {part.name, pool.get(), cancelled});
  KF_RETURN_IF_ERROR(
      leader.send(encode(RankAnswer{Status(), modelKeyOf(part)})));
  return follower.follow(leader);
}

Status kf::followSessions(RankProcesses &processes, const OpenDevice &device,
                          const OpenEmbedded &embedded) {
  return processes.follow([&](const RankSetup &setup, Group &group,
                              RankChannel &leader) {
    // Of stages, a text alone keeps one at work.
    const int64_t sharers =
        setup.parallelism == Parallelism::Pipeline ? 1 : processes.sharers();
    RankSetup own = setup;
    own.device = withThreads(setup.device, sharers);
    return runRank(own, sharers, /*cancelled=*/nullptr, device, embedded, group,
                   leader);
  });
}

/// How many ranks may use the CPUs of this one at a time.
int64_t Session::sharers() const {
  return options.processes
             ? std::min(options.processes->sharers(), ranksAtOnce())
             : ranksAtOnce();
}

/// Takes this rank's part of the model and of the threads; what the others are
/// to take.
Result<RankSetup> Session::becomeFirstRank() {
  RankSetup setup = {.model = options.model,
                     .context =
                         options.context ? options.context : kDefaultContext,
                     .parallelism = options.parallelism};
  KF_ASSIGN_OR_RETURN(setup.device,
                      deviceOfRank(options.device, ranksAtOnce()));
  setup.device.ranks = options.ranks;
  KF_ASSIGN_OR_RETURN(
      shared, partOf(opened, /*rank=*/0, options.ranks, options.parallelism));
  if (options.parallelism == Parallelism::Pipeline)
    for (int64_t rank = 1; rank < options.ranks; ++rank) {
      KF_ASSIGN_OR_RETURN(
          stages.emplace_back(),
          partOf(opened, rank, options.ranks, options.parallelism));
    }
  options.device = withThreads(setup.device, sharers());
  return setup;
}

/// Begins with the other ranks, on devices of the kind that this one has.
Status Session::startRanks(RankSetup setup, const SessionSources &sources) {
  if (!options.processes)
    setup.device = options.device;
  if (setup.device.device == "auto") {
    setup.device.device = target->name();
    if (target->name() != "cpu") // whose threads these are
      setup.device.threads = 0;
  }
  if (options.processes) {
    KF_ASSIGN_OR_RETURN(others, options.processes->lead(setup));
  } else {
    KF_ASSIGN_OR_RETURN(
        others, LocalRanks::start(
                    options.ranks,
                    [setup, all = sharers(), cancelled = options.cancelled,
                     open = sources.device, embedded = sources.embedded](
                        Group &group, RankChannel &leader) {
                      return runRank(setup, all, cancelled, open, embedded,
                                     group, leader);
                    }));
  }
  return target->join(others->group());
}

Status Session::openAll(const SessionSources &sources) {
  KF_ASSIGN_OR_RETURN(opened, openModel(options.model, options.withTokenizer,
                                        sources.embedded, options.observer));
  KF_ASSIGN_OR_RETURN(adapter, findAdapter(opened, options.adapter));
  if (options.ranks > 1 && !opened.adapters.empty())
    return Status::error("adapters are for one rank; leave " +
                             optionOf(options.parallelism) + " or --lora out",
                         StatusCode::Unsupported);
  if (options.wholeContext)
    options.context = opened.config.maxPositions;
  mostContext = settleContext(opened.config, options.context ? options.context
                                                             : kDefaultContext);
  if (options.packed) {
    if (options.ranks > 1)
      return Status::error("packed weights are kept for one rank; leave " +
                               optionOf(options.parallelism) +
                               " or --packed-cache out",
                           StatusCode::Unsupported);
    packed.emplace(options.packed->folder, options.packed->limit,
                   [observer = options.observer](const std::string &line) {
                     if (observer)
                       observer->onWarning(line);
                   });
  }
  std::optional<RankSetup> setup;
  if (options.ranks > 1) {
    KF_ASSIGN_OR_RETURN(setup, becomeFirstRank());
  }
  KF_ASSIGN_OR_RETURN(target, sources.device(options.device, options.observer));
  if (setup)
    KF_RETURN_IF_ERROR(startRanks(std::move(*setup), sources));
  KF_ASSIGN_OR_RETURN(pool,
                      createPackingPool(*target, options.device, sharers()));
  KF_ASSIGN_OR_RETURN(steps, sources.steps(part(), *target, options));
  for (const ModelFiles &stage : stages) {
    KF_ASSIGN_OR_RETURN(SessionSteps own,
                        sources.steps(stage, *target, options));
    stageSteps.push_back(std::move(own.provide));
  }
  if (options.draft) {
    KF_ASSIGN_OR_RETURN(draft,
                        SessionDraft::open(options, sources, opened, *target));
  }
  return others ? others->leader().awaitReady(keysOfOthers()) : Status();
}

/// Of what each of the other ranks has to have.
std::vector<std::string> Session::keysOfOthers() const {
  if (stages.empty())
    return std::vector<std::string>(static_cast<size_t>(options.ranks - 1),
                                    modelKeyOf(part()));
  std::vector<std::string> keys;
  for (const ModelFiles &stage : stages)
    keys.push_back(modelKeyOf(stage));
  return keys;
}

Result<std::vector<Session::RankProfile>> Session::profilesOfOthers() {
  std::vector<RankProfile> profiles;
  if (!others || !options.profile || options.profile->programs().empty())
    return profiles;
  RankLeader &leader = others->leader();
  KF_ASSIGN_OR_RETURN(std::vector<std::string> tables,
                      leader.ask(ShowProfile()));
  for (size_t i = 0; i < tables.size(); ++i)
    profiles.push_back({leader.nameOfRank(i), std::move(tables[i])});
  return profiles;
}

//===----------------------------------------------------------------------===//
// The cache's memory
//===----------------------------------------------------------------------===//

/// Bytes of `pages` pages of this rank's caches, those that the draft model has
/// beside them included; UINT64_MAX where no memory is so large. With states,
/// what a page takes is no share of it.
uint64_t Session::cacheBytes(int64_t pages) const {
  const Result<int64_t> own =
      LayerCaches(part().config, steps.cacheType).bytes(pages);
  const Result<int64_t> drafted =
      draft ? draft->cacheBytes(pages) : Result<int64_t>(0);
  if (!own.ok() || !drafted.ok())
    return UINT64_MAX;
  return static_cast<uint64_t>(*own) + static_cast<uint64_t>(*drafted);
}

/// The same of the ranks' mean: stages have caches of several sizes.
uint64_t Session::meanCacheBytes(int64_t pages) const {
  uint64_t all = cacheBytes(pages);
  for (const ModelFiles &other : stages) {
    const Result<int64_t> bytes =
        LayerCaches(other.config, steps.cacheType).bytes(pages);
    if (!bytes.ok() || all > UINT64_MAX - static_cast<uint64_t>(*bytes))
      return UINT64_MAX;
    all += static_cast<uint64_t>(*bytes);
  }
  return all / (stages.size() + 1);
}

/// Pages that a cache has, `most` at most, where those of all ranks have
/// `bytes` bytes.
Result<int64_t> Session::pagesFor(uint64_t bytes, int64_t most) const {
  const uint64_t ofRank = bytes / static_cast<uint64_t>(options.ranks);
  const int64_t pages = pagesWithin(
      ofRank, most, [this](int64_t count) { return meanCacheBytes(count); });
  // One of each group of layers.
  const int64_t least = cacheWindowsOf(part().config).groups();
  if (pages >= least)
    return pages;
  return Status::error(
      "--cache-memory of " + bytesText(bytes) + " has no room for " +
      std::to_string(pagePositionsOf(part().config)) + " positions of " +
      (part().config.hasStates() ? "the KV cache and states beside it"
                                 : "the KV cache") +
      ", which take " +
      bytesText(meanCacheBytes(least) * static_cast<uint64_t>(options.ranks)));
}

/// What a rank takes at least that has `part`, of weights and `pages` pages of
/// cache, for `sequences` sequences of `context` positions.
static Result<ModelNeeds> needsOf(const ModelFiles &part, DataType cacheType,
                                  int64_t pages, int64_t context,
                                  int64_t sequences) {
  KF_ASSIGN_OR_RETURN(const ModelWork work,
                      ModelWork::of(part.config, *part.weights, cacheType));
  return ModelNeeds{
      .weights = work.tensorBytes(),
      .parameters = work.parameters(),
      .cache =
          [caches = LayerCaches(part.config, cacheType)](int64_t count) {
            const Result<int64_t> bytes = caches.bytes(count);
            return bytes.ok() ? static_cast<uint64_t>(*bytes) : UINT64_MAX;
          },
      .positions = cachePositionsOf(part.config, context, sequences),
      .pages = pages};
}

/// An error where a GPU has no room for the weights and `pages` of the cache,
/// before any of them is made. Weights of programs that were run are there
/// already. Stages differ, so that each is looked at, as if its rank's GPU had
/// the memory of this one. What Vulkan calls a heap's size is no limit: what
/// does not fit goes to another one.
Status Session::checkMemory(int64_t pages, int64_t context, int64_t sequences,
                            double share) const {
  if (target->name() != "cuda")
    return Status();
  Result<ModelNeeds> own =
      needsOf(part(), steps.cacheType, pages, context, sequences);
  if (!own.ok())
    return nameModel(opened, own.status());
  KF_ASSIGN_OR_RETURN(DeviceMemory memory, target->memory());
  memory.free = static_cast<uint64_t>(share * static_cast<double>(memory.free));
  DeviceMemory before = memory; // that of this rank's weights
  ModelNeeds needs = std::move(*own);
  if (model && model->weights().bytes() > 0)
    before.free += std::exchange(needs.weights, 0);
  needs.cache = [this](int64_t count) { return cacheBytes(count); };
  if (draft) {
    KF_ASSIGN_OR_RETURN(const ModelNeeds drafted, draft->needs());
    needs.weights += drafted.weights;
    needs.parameters += drafted.parameters;
  }
  KF_RETURN_IF_ERROR(nameModel(opened, kf::checkFits(needs, memory)));
  for (size_t i = 0; i < stages.size(); ++i) {
    const Result<ModelNeeds> others =
        needsOf(stages[i], steps.cacheType, pages, context, sequences);
    const Status status =
        others.ok() ? kf::checkFits(*others, before) : others.status();
    KF_RETURN_IF_ERROR(
        nameModel(opened, status.in("rank " + std::to_string(i + 1))));
  }
  return Status();
}

int64_t Session::pagesOf(int64_t context, int64_t sequences) const {
  return pagesOfSequences(part().config, context, sequences,
                          promptRowsOf(part().config, *target));
}

int64_t Session::goodParallel(int64_t texts, int64_t context) {
  const int64_t most = std::clamp<int64_t>(texts, 1, target->textsAtOnce());
  // In a cache of a given size texts wait for pages.
  if (options.cacheMemory)
    return most;
  const int64_t fitting = mostThatFits(most, [&](int64_t count) {
    if (draft)
      draft->setSize(context, count);
    return checkMemory(pagesOf(context, count), context, count, kShareOfMemory)
        .ok();
  });
  return std::max<int64_t>(fitting, 1);
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Status Session::makeModel() {
  ModelOptions settings = {.name = opened.name,
                           .pool = pool.get(),
                           .cancelled = options.cancelled,
                           .shapes = steps.shapes,
                           .ranks = others ? &others->leader() : nullptr,
                           .stages = stageSteps};
  KF_RETURN_IF_ERROR(keepPacked(packed ? &*packed : nullptr, opened, *target,
                                options.observer, settings));
  model = std::make_unique<Model>(part().config, *target, *part().weights,
                                  steps.provide, std::move(settings));
  showPacking(model->weights(), options.observer);
  // Programs that are there may not fit the device: that is said before
  // anything runs.
  for (const StepShape &shape : steps.shapes)
    KF_RETURN_IF_ERROR(model->program(shape).status());
  return Status();
}

Status Session::start(const StartOptions &needs) try {
  running.reset(); // its cache makes room for the next one's
  if (draft)
    draft->stop();
  EngineOptions settings;
  settings.contextLength = options.context;
  if (!options.context)
    settings.contextLength =
        std::min(mostContext, std::max(kDefaultContext, needs.tokens));
  settings.reusesPrefixes = needs.reusesPrefixes;
  settings.longestStep = needs.longestStep;
  settings.sharesTime = needs.longestStep.has_value();
  settings.ngrams = options.ngrams;
  // Numbers that no engine takes are for its create() to refuse.
  const int64_t context = std::clamp<int64_t>(settings.contextLength, 1,
                                              opened.config.maxPositions);
  settings.parallel =
      needs.parallel ? *needs.parallel : goodParallel(needs.texts, context);
  const int64_t parallel =
      std::clamp<int64_t>(settings.parallel, 1, kMostParallel);
  settings.pages = pagesOf(context, parallel);
  if (draft)
    draft->setSize(context, parallel);
  if (options.cacheMemory) {
    KF_ASSIGN_OR_RETURN(settings.pages,
                        pagesFor(options.cacheMemory, settings.pages));
  }
  KF_RETURN_IF_ERROR(checkMemory(settings.pages, context, parallel));
  if (!model)
    if (Status made = catchExceptions([&] { return makeModel(); });
        !made.ok()) {
      model.reset();
      return made;
    }
  settings.cancelled = options.cancelled;
  settings.profile = options.profile.get();
  if (draft) {
    KF_RETURN_IF_ERROR(
        draft->start(settings, pool.get(), packed ? &*packed : nullptr));
    settings.draftModel = &draft->drafts();
  }
  KF_ASSIGN_OR_RETURN(running, Engine::create(*model, settings));
  return Status();
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<Sequence>> Session::createSequence() {
  return running->createSequence(adapter);
}

Status Session::checkFits(std::span<const int32_t> prompt) const try {
  const int64_t context = running->contextLength();
  if (prompt.size() <= static_cast<size_t>(context))
    return Status();
  return Status::error("the prompt has " + std::to_string(prompt.size()) +
                       " tokens, but the context has room for " +
                       std::to_string(context) +
                       (context < opened.config.maxPositions
                            ? "; raise --context or shorten the prompt"
                            : "; shorten the prompt"));
} catch (...) {
  return statusOfException();
}

Result<std::vector<int32_t>> Session::encodePrompt(std::string_view text) const
    try {
  const ObservedWork work(options.observer, "reading the prompt's tokens");
  return kf::encodePrompt(opened, text, options.cancelled);
} catch (...) {
  return statusOfException();
}
