//===- ModelSession.cpp - A model opened to be run ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelSession.h"

#include "Interrupt.h"
#include "Progress.h"
#include "Report.h"

#include "runtime/core/Stopwatch.h"
#include "runtime/engine/ModelFit.h"
#include "runtime/model/ModelWork.h"

#include <algorithm>

using namespace kf;

/// Positions that a session has room for unless more or fewer are asked for.
static constexpr int64_t kDefaultContext = 4096;

void ModelFlags::addTo(OptionParser &parser, bool withThreads) {
  addModelArgument(parser, model, named,
                   "a GGUF file, or a folder with config.json, "
                   "model.safetensors (or its index) and a tokenizer; "
                   "without it, the embedded model, kf-stories");
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
  parser.choice({"cache-type", 0, "TYPE"}, cacheType,
                {"f32", "f16", "bf16", "q8_0"},
                "elements of the KV cache; f16 by default, and f32 on the "
                "reference. bf16 and f16 take half of f32's memory, q8_0 about "
                "a quarter; they round keys and values");
  parser.choice({"activation-type", 0, "TYPE"}, activationType,
                {"f32", "f16", "bf16"},
                "elements of what kernels hand on to one another; f32 by "
                "default. The others take half of its memory and round");
  float8.addTo(parser);
  parser.bytes({"cache-memory", 0, "SIZE"}, cacheMemory,
               "the most that the KV cache takes: bytes, or 500M, 2G; by "
               "default what all sequences need for whole contexts. It is "
               "taken when it is used");
  profile.addTo(parser);
  parser.flag({"no-cache"}, noCache,
              "neither read nor write the cache of compiled programs");
  tuning.addTo(parser);
  parser.text({"target-cpu", 0, "CPU"}, targetCpu,
              "LLVM's name of the CPU or GPU to compile for; native by "
              "default");
}

Result<CompilerOptions> kf::compilerOptionsFor(const ModelFlags &flags,
                                               const Device &device) {
  CompilerOptions compiler;
  compiler.target = targetFor(device, flags.targetCpu);
  compiler.cacheType = flags.cacheType.empty() ? defaultCacheType(device.name())
                                               : flags.cacheType;
  compiler.activationType = flags.activationType;
  compiler.targetCpu = flags.targetCpu;
  compiler.workers = device.workers();
  compiler.device = device.description();
  compiler.cancelled = &interruptFlag();
  KF_RETURN_IF_ERROR(checkRunsOnHost(compiler));
  KF_RETURN_IF_ERROR(loadTuning(flags.tuning, compiler));
  return compiler;
}

Result<std::unique_ptr<ModelSession>>
ModelSession::open(const ModelFlags &options, bool withTokenizer) {
  Stopwatch watch;
  const Progress progress("opening the model");
  std::unique_ptr<ModelSession> result(new ModelSession());
  result->options = options;
  KF_ASSIGN_OR_RETURN(result->opened,
                      openModel(options.model, withTokenizer, options.dummy));
  if (options.wholeContext)
    result->options.context = result->opened.config.maxPositions;
  KF_RETURN_IF_ERROR(options.float8.apply(result->opened));
  KF_ASSIGN_OR_RETURN(result->target, openDevice(options.device));
  // Weights are packed on the CPU, whatever computes with them.
  if (result->target->name() != "reference" && options.device.threads != 1) {
    KF_ASSIGN_OR_RETURN(result->pool,
                        ThreadPool::create(int(options.device.threads)));
  }
  KF_ASSIGN_OR_RETURN(const CompilerOptions compiler,
                      compilerOptionsFor(options, *result->target));
  result->options.cacheType = compiler.cacheType;
  KF_ASSIGN_OR_RETURN(
      result->steps,
      StepCompiler::create(result->opened, compiler, !options.noCache));
  result->seconds = watch.seconds();
  return result;
}

/// Bytes of a page of the KV cache.
Result<int64_t> ModelSession::pageBytes() const {
  const ModelConfig &config = opened.config;
  CacheSpec spec;
  KF_ASSIGN_OR_RETURN(spec.type, parseDataType(options.cacheType));
  spec.layers = config.layers;
  spec.kvHeads = config.kvHeads;
  spec.headDim = config.headDim;
  spec.page = kCachePage;
  return spec.bytes(1);
}

/// Pages that a cache of `bytes` bytes has.
Result<int64_t> ModelSession::pagesFor(uint64_t bytes) const {
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
Status ModelSession::checkMemory(int64_t pages) const {
  if (target->name() != "cuda")
    return Status();
  KF_ASSIGN_OR_RETURN(const DataType cacheType,
                      parseDataType(options.cacheType));
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

void ModelSession::makeModel() {
  model = std::make_unique<Model>(
      opened.config, *target, *opened.weights,
      [this](const StepShape &shape) { return steps->compile(shape); },
      ModelOptions{opened.name, pool.get(), &interruptFlag()});
  model->weights().onProgress([this](uint64_t done, uint64_t all) {
    if (done == 0)
      packing.emplace("packing weights");
    packing->update(static_cast<double>(done) / static_cast<double>(all));
    if (done == all)
      packing.reset();
  });
}

Status ModelSession::start(int64_t tokens, int64_t parallel,
                           bool reusesPrefixes) {
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
  }
  settings.cancelled = &interruptFlag();
  if (!profile)
    profile = options.profile.make();
  settings.profile = profile.get();
  KF_ASSIGN_OR_RETURN(running, Engine::create(*model, settings));
  return Status();
}

Status ModelSession::showProfile() {
  return profile ? kf::showProfile(options.profile, *profile, *target)
                 : Status();
}

Status ModelSession::checkFits(std::span<const int32_t> prompt) const {
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
