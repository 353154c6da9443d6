//===- Session.cpp - A model and its programs, to be run ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session.h"

#include "Interrupt.h"
#include "Report.h"
#include "TerminalObserver.h"

#include "runtime/core/Stopwatch.h"
#include "runtime/engine/ModelFit.h"
#include "runtime/engine/ProgramFiles.h"
#include "runtime/model/ModelWork.h"

#include <algorithm>

using namespace kf;

/// Positions that a session has room for unless more or fewer are asked for.
static constexpr int64_t kDefaultContext = 4096;

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
  profile.addTo(parser);
}

Status Session::openFiles(const SessionFlags &flags, bool withTokenizer) {
  options = flags;
  KF_ASSIGN_OR_RETURN(opened,
                      openModel(options.model, withTokenizer, options.dummy));
  if (options.wholeContext)
    options.context = opened.config.maxPositions;
  KF_RETURN_IF_ERROR(options.float8.apply(opened));
  KF_ASSIGN_OR_RETURN(target, openDevice(options.device, &terminal()));
  // Weights are packed on the CPU, whatever computes with them.
  if (target->name() != "reference" && options.device.threads != 1) {
    KF_ASSIGN_OR_RETURN(pool, ThreadPool::create(int(options.device.threads)));
  }
  return Status();
}

Result<std::unique_ptr<Session>>
Session::open(const SessionFlags &flags, bool withTokenizer,
              std::span<const std::string> paths) {
  Stopwatch watch;
  const Progress progress("opening the model");
  std::unique_ptr<Session> session(new Session());
  KF_RETURN_IF_ERROR(session->openFiles(flags, withTokenizer));
  KF_ASSIGN_OR_RETURN(
      ProgramFiles read,
      ProgramFiles::open(paths, session->opened, session->target->name()));
  const auto files = std::make_shared<const ProgramFiles>(std::move(read));
  session->programs = {
      [files](const StepShape &shape) { return files->get(shape); },
      files->shapes(), std::string(nameOf(files->cache().type)),
      [] { return std::string("from files"); }};
  session->seconds = watch.seconds();
  return session;
}

/// Bytes of a page of the KV cache.
Result<int64_t> Session::pageBytes() const {
  const ModelConfig &config = opened.config;
  CacheSpec spec;
  KF_ASSIGN_OR_RETURN(spec.type, parseDataType(programs.cacheType));
  spec.layers = config.layers;
  spec.kvHeads = config.kvHeads;
  spec.headDim = config.headDim;
  spec.page = kCachePage;
  return spec.bytes(1);
}

/// Pages that a cache of `bytes` bytes has.
Result<int64_t> Session::pagesFor(uint64_t bytes) const {
  KF_ASSIGN_OR_RETURN(const int64_t page, pageBytes());
  if (bytes < static_cast<uint64_t>(page))
    return Status::error("--cache-memory of " + bytesText(bytes) +
                         " has no room for a page of the KV cache, of " +
                         bytesText(static_cast<uint64_t>(page)));
  return static_cast<int64_t>(bytes / static_cast<uint64_t>(page));
}

/// An error where a GPU has no room for the weights and `pages` of the cache,
/// before any of them is made. What Vulkan calls a heap's size is no limit:
/// what does not fit goes to another one.
Status Session::checkMemory(int64_t pages) const {
  if (target->name() != "cuda")
    return Status();
  KF_ASSIGN_OR_RETURN(const DataType cacheType,
                      parseDataType(programs.cacheType));
  const Result<ModelWork> work =
      ModelWork::of(opened.config, *opened.weights, cacheType);
  if (!work.ok())
    return nameModel(opened, work.status());
  KF_ASSIGN_OR_RETURN(const int64_t page, pageBytes());
  KF_ASSIGN_OR_RETURN(const DeviceMemory memory, target->memory());
  const ModelNeeds needs = {.weights = work->tensorBytes(),
                            .parameters = work->parameters(),
                            .page = static_cast<uint64_t>(page),
                            .pages = pages,
                            .pagePositions = kCachePage};
  return nameModel(opened, kf::checkFits(needs, memory));
}

void Session::makeModel() {
  model = std::make_unique<Model>(
      opened.config, *target, *opened.weights, programs.provide,
      ModelOptions{opened.name, pool.get(), &interruptFlag(), programs.shapes});
  model->weights().onProgress([this](uint64_t done, uint64_t all) {
    if (done == 0)
      packing.emplace("packing weights");
    packing->update(static_cast<double>(done) / static_cast<double>(all));
    if (done == all)
      packing.reset();
  });
}

/// Programs that are there may not fit the device: that is said before anything
/// runs.
Status Session::loadPrograms() {
  for (const StepShape &shape : programs.shapes)
    KF_RETURN_IF_ERROR(model->program(shape).status());
  return Status();
}

Status Session::start(int64_t tokens, int64_t parallel, bool reusesPrefixes) {
  running.reset(); // its cache makes room for the next one's
  EngineOptions settings;
  settings.contextLength = options.context;
  if (!options.context)
    settings.contextLength =
        std::min(opened.config.maxPositions, std::max(kDefaultContext, tokens));
  settings.parallel = parallel;
  settings.reusesPrefixes = reusesPrefixes;
  if (options.cacheMemory) {
    KF_ASSIGN_OR_RETURN(const int64_t pages, pagesFor(options.cacheMemory));
    settings.pages =
        std::min(pages, parallel * cachePagesOf(settings.contextLength));
  }
  if (!model) {
    KF_RETURN_IF_ERROR(checkMemory(
        settings.pages ? settings.pages
                       : parallel * cachePagesOf(settings.contextLength)));
    makeModel();
    KF_RETURN_IF_ERROR(loadPrograms());
  }
  settings.cancelled = &interruptFlag();
  if (!profile)
    profile = options.profile.make();
  settings.profile = profile.get();
  KF_ASSIGN_OR_RETURN(running, Engine::create(*model, settings));
  return Status();
}

Status Session::showProfile() {
  return profile ? kf::showProfile(options.profile, *profile, *target)
                 : Status();
}

Status Session::checkFits(std::span<const int32_t> prompt) const {
  const int64_t context = running->contextLength();
  if (prompt.size() <= static_cast<size_t>(context))
    return Status();
  return Status::error("the prompt has " + std::to_string(prompt.size()) +
                       " tokens, but the context has room for " +
                       std::to_string(context) +
                       (context < opened.config.maxPositions
                            ? "; raise --context or shorten the prompt"
                            : "; shorten the prompt"));
}

Result<std::vector<int32_t>> kf::promptIds(const ModelFiles &model,
                                           std::string_view text) {
  Progress progress("reading the prompt's tokens");
  return encodePrompt(model, text, &interruptFlag());
}
