//===- SessionDraft.cpp - The model that drafts for a session's -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/SessionDraft.h"

#include "runtime/model/LayerCaches.h"
#include "runtime/model/ModelWork.h"
#include "runtime/model/RopeFactors.h"
#include "runtime/model/Step.h"
#include "runtime/session/KeptWeights.h"
#include "runtime/session/PackingProgress.h"

#include <algorithm>
#include <string>
#include <utility>

using namespace kf;

static std::string shown(const Tokenizer &tokenizer, int32_t id) {
  const std::optional<std::string> piece = tokenizer.pieceOf(id);
  return piece ? "'" + *piece + "'" : "no token";
}

Status kf::checkSameVocabulary(const ModelFiles &model,
                               const ModelFiles &draft) {
  const int64_t size = model.config.vocabSize, drafted = draft.config.vocabSize;
  if (!model.tokenizer || !draft.tokenizer)
    return size == drafted
               ? Status()
               : Status::error("'" + draft.name + "' cannot draft for '" +
                               model.name + "': their vocabularies have " +
                               std::to_string(drafted) + " and " +
                               std::to_string(size) + " tokens");
  const int64_t both = std::min(size, drafted);
  for (int32_t id = 0; id < both; ++id)
    if (draft.tokenizer->pieceOf(id) != model.tokenizer->pieceOf(id))
      return Status::error(
          "'" + draft.name + "' cannot draft for '" + model.name +
          "', which has another tokenizer: token " + std::to_string(id) +
          " is " + shown(*draft.tokenizer, id) + " of the one and " +
          shown(*model.tokenizer, id) + " of the other");
  return Status();
}

Result<std::unique_ptr<SessionDraft>>
SessionDraft::open(const SessionOptions &options, const SessionSources &sources,
                   const ModelFiles &model, Device &device) {
  if (options.ranks > 1)
    return Status::error("--draft-model is for one rank: leave it or " +
                             optionOf(options.parallelism) + " out",
                         StatusCode::Unsupported);
  std::unique_ptr<SessionDraft> draft(
      new SessionDraft(device, options.observer));
  draft->most = options.draft->mostTokens;
  draft->drafted = model.config;
  KF_ASSIGN_OR_RETURN(draft->files,
                      openModel(options.draft->model, options.withTokenizer,
                                sources.embedded, options.observer));
  KF_RETURN_IF_ERROR(checkSameVocabulary(model, draft->files));
  for (const ModelFiles *each :
       std::initializer_list<const ModelFiles *>{&model, &draft->files})
    if (each->config.hasStates())
      return Status::error("the layers of '" + each->name +
                               "' keep states, and drafts of tokens cannot be "
                               "taken back from these; leave --draft-model out",
                           StatusCode::Unsupported);
  const int64_t context = options.context ? options.context : kDefaultContext;
  draft->mostContext = settleContext(draft->files.config, context);
  KF_ASSIGN_OR_RETURN(draft->steps,
                      sources.steps(draft->files, device, options));
  return draft;
}

void SessionDraft::setSize(int64_t context, int64_t sequences) {
  this->context = context;
  this->sequences = sequences;
}

/// No more than all sequences have room with.
int64_t SessionDraft::ownPages(int64_t pages) const {
  const int64_t each = std::min(context, mostContext);
  const int64_t whole = pagesOfSequences(files.config, each, sequences,
                                         promptRowsOf(files.config, device));
  return std::min(whole, pagesBeside(files.config, drafted, pages, each));
}

Result<int64_t> SessionDraft::cacheBytes(int64_t pages) const {
  return LayerCaches(files.config, steps.cacheType).bytes(ownPages(pages));
}

Result<ModelNeeds> SessionDraft::needs() const {
  const Result<ModelWork> work =
      ModelWork::of(files.config, *files.weights, steps.cacheType);
  if (!work.ok())
    return nameModel(files, work.status());
  const bool hasWeights = model && model->weights().bytes() > 0;
  return ModelNeeds{.weights = hasWeights ? 0 : work->tensorBytes(),
                    .parameters = work->parameters()};
}

Status SessionDraft::start(const EngineOptions &settings, ThreadPool *pool,
                           const PackedCache *packed) {
  if (!model) {
    ModelOptions options = {.name = files.name,
                            .pool = pool,
                            .cancelled = settings.cancelled,
                            .shapes = steps.shapes};
    KF_RETURN_IF_ERROR(keepPacked(packed, files, device, observer, options));
    model = std::make_unique<Model>(files.config, device, *files.weights,
                                    steps.provide, std::move(options));
    showPacking(model->weights(), observer);
  }
  EngineOptions own;
  own.contextLength = std::min(settings.contextLength, mostContext);
  own.parallel = settings.parallel;
  own.pages = ownPages(settings.pages);
  own.reusesPrefixes = settings.reusesPrefixes;
  // Each text is to be drafted soon, so that none leaves others a share.
  own.longestStep = settings.longestStep;
  own.cancelled = settings.cancelled;
  KF_ASSIGN_OR_RETURN(engine, Engine::create(*model, own));
  drafting.emplace(*engine, most, drafted.vocabSize);
  return Status();
}

void SessionDraft::stop() {
  drafting.reset();
  engine.reset();
}
