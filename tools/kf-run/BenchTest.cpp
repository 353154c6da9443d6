//===- BenchTest.cpp - One test of kf-run bench ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BenchTest.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/SamplingMath.h"
#include "runtime/model/LayerCaches.h"

#include <algorithm>

using namespace kf;

/// Tokens that are generated before the first run.
static constexpr int64_t kWarmUpTokens = 4;

std::string BenchTest::name() const {
  std::string name = prompt ? "pp" + std::to_string(prompt) : "";
  if (generated)
    name += (prompt ? "+tg" : "tg") + std::to_string(generated);
  return depth ? name + " @ d" + std::to_string(depth) : name;
}

BenchRunner::BenchRunner(Engine &engine, const BenchTest &test)
    : engine(engine), test(test) {}

std::vector<int32_t> BenchRunner::randomIds(int64_t count) {
  const uint64_t vocabulary =
      static_cast<uint64_t>(engine.model().config().vocabSize);
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t &id : ids)
    id = static_cast<int32_t>(randomBits(/*seed=*/0, drawn++) % vocabulary);
  return ids;
}

Status BenchRunner::generate(Reader &reader, int64_t ids, int64_t tokens) {
  GenerationOptions options;
  options.maxTokens = tokens;
  options.onToken = [this](int32_t) {
    if (!first)
      first = watch.seconds();
  };
  reader.generation =
      std::make_unique<Generation>(*reader.sequence, reader.sampler,
                                   /*tokenizer=*/nullptr, std::move(options));
  return reader.generation->start(randomIds(ids));
}

Status BenchRunner::finish() {
  while (!engine.isIdle())
    engine.step();
  for (Reader &reader : readers)
    if (const auto generation = std::move(reader.generation)) {
      KF_ASSIGN_OR_RETURN(const GenerationResult result, generation->take());
      if (result.reason == StopReason::Cancelled)
        return Status::cancelled();
    }
  return Status();
}

Status BenchRunner::begin() {
  // A state is that of the last token alone, and pages of windows that are no
  // longer seen are used for what follows: these are read up to the depth
  // again.
  const ModelConfig &config = engine.model().config();
  const bool readsAgain =
      config.hasStates() || cacheWindowsOf(config).tables > 0;
  for (Reader &reader : readers) {
    KF_RETURN_IF_ERROR(reader.sequence->rewind(
        readsAgain ? 0 : std::min(test.depth, reader.sequence->position())));
    if (test.depth > reader.sequence->position())
      KF_RETURN_IF_ERROR(generate(reader, test.depth, 0));
  }
  return finish();
}

Status BenchRunner::runOnce(int64_t generated) {
  // What a prompt ends with chooses the first token that is read alone, and the
  // last one that is chosen is not read.
  for (Reader &reader : readers)
    KF_RETURN_IF_ERROR(generate(reader, std::max<int64_t>(test.prompt, 1),
                                test.prompt ? generated + 1 : generated));
  return finish();
}

Result<BenchRunner::Times> BenchRunner::timeOnce(int64_t generated) {
  const double before = engine.timings().total();
  watch = Stopwatch();
  first.reset();
  KF_RETURN_IF_ERROR(runOnce(generated));
  const double seconds = watch.seconds();
  const double readying = engine.timings().total() - before;
  return Times{std::max(seconds - readying, 0.0),
               std::max(first.value_or(seconds) - readying, 0.0)};
}

Status BenchRunner::prepare(double warmUp) {
  // Sequences take adapters in turns, where the model has any.
  const int64_t adapters = engine.model().config().adapters.count;
  for (int64_t i = 0; i < test.sequences; ++i) {
    KF_ASSIGN_OR_RETURN(
        std::unique_ptr<Sequence> sequence,
        engine.createSequence(adapters > 0 ? 1 + i % adapters : 0));
    KF_ASSIGN_OR_RETURN(Sampler sampler, Sampler::create({}));
    readers.push_back({std::move(sequence), std::move(sampler), nullptr});
  }
  KF_RETURN_IF_ERROR(begin());
  KF_ASSIGN_OR_RETURN(Times times,
                      timeOnce(std::min(test.generated, kWarmUpTokens)));
  // What is made ready in it is no load.
  for (double spent = times.all; spent < warmUp; spent += times.all + 1e-6) {
    KF_ASSIGN_OR_RETURN(times, run());
  }
  return Status();
}

Result<BenchRunner::Times> BenchRunner::run() {
  KF_RETURN_IF_ERROR(begin());
  return timeOnce(test.generated);
}
