//===- SessionFlags.cpp - Options of commands that run a model ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SessionFlags.h"

#include "Interrupt.h"
#include "Ranks.h"
#include "TerminalObserver.h"

#include "runtime/program/ExecutableCache.h"

#include <string>
#include <vector>

using namespace kf;

void SessionFlags::addTo(OptionParser &parser, bool withEmbedded,
                         bool withThreads) {
  addModelArgument(
      parser, model, named,
      std::string("a GGUF file, or a folder with config.json, "
                  "model.safetensors (or its index) and a "
                  "tokenizer") +
          (withEmbedded ? "; without it, the embedded model, kf-stories" : ""));
  if (!withEmbedded)
    parser.addCheck([this] {
      return model.empty() ? Status::error("MODEL is missing") : Status();
    });
  dummy.addTo(parser, model);
  if (withThreads)
    device.addTo(parser);
  else
    device.addDeviceTo(parser);
  parser.integer({"context", 'c', "N"}, contextGiven, 0, int64_t(1) << 24,
                 "positions of the context; 0: all that the model has. By "
                 "default what the command needs and at least 4096, as far as "
                 "the model goes");
  parser.addCheck([this] {
    context = contextGiven.value_or(0);
    wholeContext = contextGiven == 0;
    return Status();
  });
  float8.addTo(parser);
  parser.bytes({"cache-memory", 0, "SIZE"}, cacheMemory,
               "the most that the KV cache takes: bytes, or 500M, 2G; by "
               "default what all sequences need for whole contexts. It is "
               "taken when it is used");
  parser.bytes({"packed-cache", 0, "SIZE"}, packedCache,
               "keep packed weights in files of SIZE in all at most, bytes, or "
               "500M, 20G, for the next start, which maps them in place of "
               "packing; for --device cpu. They lie beside the compiled "
               "programs ('kf-run cache list'); of others, those go that were "
               "not used for the longest time");
  parser.addCheck([this] {
    if (!packedCache)
      return Status();
    Result<std::string> folder = ExecutableCache::defaultFolder();
    if (folder.ok())
      packedFolder = folder.take();
    return folder.status();
  });
  profile.addTo(parser);
}

void SessionFlags::addDraftsTo(OptionParser &parser) {
  parser.integer({"ngram", 0, "N"}, ngram, 1, kMostNgram,
                 "speculative decoding by prompt lookup: drafts what followed "
                 "the last N tokens, or fewer, down to two, where the text had "
                 "them before. The same text in fewer steps where it repeats "
                 "itself. Not with penalties, grammars, or probabilities");
  parser.text(
      {"draft-model", 0, "MODEL"}, draftModel,
      "speculative decoding by a smaller model with the same tokenizer, "
      "which drafts tokens on the same device: the same text in fewer "
      "steps. As --ngram, in place of which it is given");
  parser.text({"draft-weight-type", 0, "TYPE"}, draftWeightType,
              "the type of its weights where they are random");
  parser.integer({"draft-tokens", 0, "N"}, draftTokens, 1, kMostDraftTokens,
                 "draft at most N tokens at a time; " +
                     std::to_string(kDefaultDraftTokens) + " by default");
  parser.addCheck([this] {
    if (ngram && draftModel)
      return Status::error("--ngram and --draft-model both draft tokens; give "
                           "one of them");
    if (draftTokens && !ngram && !draftModel)
      return Status::error("--draft-tokens is for --ngram and --draft-model: "
                           "one of them says what drafts");
    if (draftWeightType && !(draftModel && dummy.used()))
      return Status::error("--draft-weight-type is for the random weights of "
                           "--draft-model with --dummy-weights");
    return Status();
  });
}

SessionOptions SessionFlags::options(bool withTokenizer) const {
  SessionOptions options;
  options.model = modelChoice();
  options.adapter = lora.adapter;
  options.withTokenizer = withTokenizer;
  options.device = device;
  options.ranks = ranks;
  options.parallelism = parallelism;
  options.processes = ranks > 1 ? ledProcesses() : nullptr;
  options.context = context;
  options.wholeContext = wholeContext;
  const auto most =
      static_cast<size_t>(draftTokens.value_or(kDefaultDraftTokens));
  if (ngram)
    options.ngrams = {.longest = static_cast<size_t>(*ngram), .most = most};
  if (draftModel) {
    DraftChoice &draft = options.draft.emplace();
    draft.model = {.path = *draftModel, .dummy = dummy};
    if (draftWeightType)
      draft.model.dummy.weightType = *draftWeightType;
    draft.mostTokens = most;
  }
  options.cacheMemory = cacheMemory;
  if (packedCache)
    options.packed = {.folder = packedFolder, .limit = packedCache};
  options.profile = profile.make();
  options.cancelled = &interruptFlag();
  options.observer = &terminal();
  return options;
}

Status kf::showProfile(const SessionFlags &flags, Session &session) {
  if (!session.profile())
    return Status();
  std::string tables;
  const Result<std::vector<Session::RankProfile>> others =
      session.profilesOfOthers();
  if (others.ok())
    for (const Session::RankProfile &other : *others)
      tables += "\n" + other.rank + "\n" + other.table;
  else // a rank that is lost is the command's own error
    printWarning(others.message() + "; the profile is of rank 0 alone");
  return showProfile(flags.profile, *session.profile(), session.device(),
                     tables);
}
