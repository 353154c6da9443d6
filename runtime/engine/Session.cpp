//===- Session.cpp - A model that is being run ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Session.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/model/TensorList.h"

#include <algorithm>
#include <numeric>

using namespace kf;

namespace {

/// Rows of the prefill programs: few enough for a short prompt to compile and
/// run quickly, enough for a long one to be bound by arithmetic.
constexpr int64_t kSmallPrefill = 16;
constexpr int64_t kLargePrefill = 512;
/// Elements of the logits that allLogits() has at once: 128 MiB.
constexpr int64_t kMostLogits = int64_t(1) << 25;

/// Checks that a program takes and returns what the step has to, so that
/// buffers of the session fit whatever the provider handed out.
Status checkStep(const Executable &executable, const StepShape &shape,
                 const ModelConfig &model) {
  const StepSignature wanted = stepSignature(shape, model);
  bool fits = executable.inputs == wanted.inputs &&
              executable.outputs == wanted.outputs &&
              executable.maxTokens == shape.tokens &&
              executable.namedSizes == wanted.sizes &&
              executable.caches.size() == 1;
  for (const CacheSpec &cache : executable.caches)
    fits &= cache.layers == model.layers && cache.kvHeads == model.kvHeads &&
            cache.headDim == model.headDim && cache.page == kCachePage;
  if (fits)
    return Status();
  return Status::error("the program '" + executable.programName +
                       "' that was compiled for '" + nameOf(shape) +
                       "' does not fit the model");
}

/// Puts a position back when it goes out of scope, unless told to keep it.
class PositionGuard {
public:
  explicit PositionGuard(int64_t &position)
      : position(position), before(position) {}
  PositionGuard(const PositionGuard &) = delete;
  PositionGuard &operator=(const PositionGuard &) = delete;
  ~PositionGuard() { position = before; }
  void keep() { before = position; }

private:
  int64_t &position;
  int64_t before;
};

} // namespace

//===----------------------------------------------------------------------===//
// Making ready
//===----------------------------------------------------------------------===//

Session::Session(ModelConfig config, Device &device, const WeightSource &source,
                 StepProvider provider, int64_t context,
                 const SessionOptions &options)
    : model(std::move(config)), device(device), provider(std::move(provider)),
      context(context), cancelled(options.cancelled), source(source),
      weights(device, &source, {options.pool, options.cancelled}),
      cache(device, cachePagesOf(context)) {}

Result<std::unique_ptr<Session>>
Session::create(ModelConfig config, Device &device, const WeightSource &source,
                StepProvider provider, const SessionOptions &options) try {
  int64_t context =
      options.contextLength ? options.contextLength : config.maxPositions;
  if (context < 1 || context > config.maxPositions)
    return Status::error("a context of " + std::to_string(context) +
                         " positions is not possible; the model was made for 1 "
                         "to " +
                         std::to_string(config.maxPositions));
  return std::unique_ptr<Session>(new Session(std::move(config), device, source,
                                              std::move(provider), context,
                                              options));
} catch (...) {
  return statusOfException();
}

Result<Session::Step> Session::program(int64_t tokens, int64_t wanted) {
  const StepShape shape = {tokens, wanted, StepOutput::Logits};
  std::unique_ptr<ProgramRunner> &slot = programs[shape];
  if (slot)
    return Step{shape, slot.get()};
  if (isCancelled())
    return Status::cancelled();
  Stopwatch compiling;
  Result<Executable> executable = provider(shape);
  compileSeconds += compiling.seconds();
  if (!executable.ok())
    return executable.status();
  KF_RETURN_IF_ERROR(checkStep(*executable, shape, model));
  Stopwatch readying;
  Result<std::unique_ptr<ProgramRunner>> runner =
      ProgramRunner::create(executable.take(), device, weights, cache);
  readySeconds += readying.seconds();
  if (!runner.ok())
    return runner.status();
  KF_RETURN_IF_ERROR(writeSequence(**runner));
  slot = runner.take();
  return Step{shape, slot.get()};
}

/// Tells a step, once, that all rows belong to one sequence whose pages come in
/// order; sequences are zeros, as all buffers are at first.
Status Session::writeSequence(ProgramRunner &runner) const {
  std::vector<int32_t> table(static_cast<size_t>(cache.pages()));
  std::iota(table.begin(), table.end(), 0);
  return runner.write(kStepPageTable, table.data(),
                      table.size() * sizeof(int32_t));
}

/// Tokens of the step for the next chunk of a prompt. A program that is there
/// already is better than one that would have to be compiled.
int64_t Session::prefillSizeFor(int64_t remaining) const {
  const int64_t small = std::min(kSmallPrefill, context);
  const int64_t large = std::min(kLargePrefill, context);
  auto isReady = [&](int64_t rows) {
    auto it = programs.find({rows, 1, StepOutput::Logits});
    return it != programs.end() && it->second;
  };
  if (remaining > small)
    return large;
  return isReady(large) && !isReady(small) ? large : small;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Status Session::checkIds(std::span<const int32_t> ids) const {
  if (ids.empty())
    return Status::error("there are no tokens to read; begin with the "
                         "begin-of-text token");
  const int64_t room = context - nextPosition;
  if (static_cast<uint64_t>(room) < ids.size())
    return Status::error("context is full: " + std::to_string(nextPosition) +
                         " of " + std::to_string(context) +
                         " positions are used, no room for " +
                         std::to_string(ids.size()) + " more");
  for (int32_t id : ids)
    if (id < 0 || id >= model.vocabSize)
      return Status::error("token id " + std::to_string(id) +
                           " is outside the vocabulary of " +
                           std::to_string(model.vocabSize));
  return Status();
}

/// Reads ids that were checked; returns the logits of the last `wanted` of
/// them.
Result<std::span<const float>> Session::runStep(const Step &step,
                                                std::span<const int32_t> ids,
                                                size_t wanted) {
  ProgramRunner &runner = *step.runner;
  auto writeNumbers = [&](StepInput input, size_t count, int64_t first) {
    rows.resize(count);
    std::iota(rows.begin(), rows.end(), static_cast<int32_t>(first));
    return runner.write(input, rows.data(), count * sizeof(int32_t));
  };
  StepCounts counts;
  counts.tokens = static_cast<int64_t>(ids.size());
  counts.wanted = static_cast<int64_t>(wanted);
  KF_RETURN_IF_ERROR(runner.write(kStepIds, ids.data(), ids.size_bytes()));
  KF_RETURN_IF_ERROR(writeNumbers(kStepPositions, ids.size(), nextPosition));
  KF_RETURN_IF_ERROR(
      writeNumbers(kStepWanted, wanted, counts.tokens - counts.wanted));
  StepSizes sizes(counts.tokens);
  sizes.scalars = stepScalars(step.shape, counts);
  KF_RETURN_IF_ERROR(runner.execute(sizes, cancelled));
  nextPosition += counts.tokens;
  const size_t elements = wanted * static_cast<size_t>(model.vocabSize);
  KF_ASSIGN_OR_RETURN(const void *logits,
                      runner.read(0, 0, elements * sizeof(float)));
  return std::span(static_cast<const float *>(logits), elements);
}

/// Reads one id that was checked.
Result<std::span<const float>> Session::runDecode(int32_t id) {
  if (!decoder.runner) {
    KF_ASSIGN_OR_RETURN(decoder, program(1, 1));
  }
  return runStep(decoder, {&id, 1}, 1);
}

Status Session::rewind(int64_t position) {
  if (position < 0 || position > nextPosition)
    return Status::error("cannot go back to position " +
                         std::to_string(position) + "; " +
                         std::to_string(nextPosition) + " tokens were read");
  // What lies in the cache from there on is written over before it is read.
  nextPosition = position;
  return Status();
}

Result<std::span<const float>> Session::decode(int32_t id) try {
  KF_RETURN_IF_ERROR(checkIds({&id, 1}));
  return runDecode(id);
} catch (...) {
  return statusOfException();
}

Result<std::span<const float>>
Session::prefill(std::span<const int32_t> ids) try {
  KF_RETURN_IF_ERROR(checkIds(ids));
  PositionGuard guard(nextPosition);
  Result<std::span<const float>> logits = Status::error("no token");
  while (!ids.empty()) {
    // A last chunk of one token is left to the step of one.
    if (ids.size() == 1) {
      logits = runDecode(ids.front());
      ids = {};
    } else {
      const int64_t most = prefillSizeFor(static_cast<int64_t>(ids.size()));
      const size_t chunk = std::min(ids.size(), static_cast<size_t>(most));
      KF_ASSIGN_OR_RETURN(Step step, program(most, 1));
      logits = runStep(step, ids.first(chunk), 1);
      ids = ids.subspan(chunk);
    }
    if (!logits.ok())
      return logits;
  }
  guard.keep();
  return logits;
} catch (...) {
  return statusOfException();
}

/// Tokens of the steps that give the logits of all their rows.
int64_t Session::allLogitsSizeFor(int64_t remaining) const {
  int64_t most = std::min(kLargePrefill, context);
  if (remaining <= kSmallPrefill)
    most = std::min(kSmallPrefill, context);
  return std::clamp<int64_t>(kMostLogits / model.vocabSize, 1, most);
}

Status Session::allLogits(std::span<const int32_t> ids,
                          const LogitsCallback &callback) try {
  KF_RETURN_IF_ERROR(checkIds(ids));
  PositionGuard guard(nextPosition);
  const size_t vocab = static_cast<size_t>(model.vocabSize);
  while (!ids.empty()) {
    const int64_t first = nextPosition;
    const int64_t most =
        ids.size() == 1 ? 1
                        : allLogitsSizeFor(static_cast<int64_t>(ids.size()));
    const size_t chunk = std::min(ids.size(), static_cast<size_t>(most));
    KF_ASSIGN_OR_RETURN(Step step, program(most, most));
    KF_ASSIGN_OR_RETURN(std::span<const float> logits,
                        runStep(step, ids.first(chunk), chunk));
    for (size_t row = 0; row < chunk; ++row)
      KF_RETURN_IF_ERROR(callback(first + static_cast<int64_t>(row),
                                  logits.subspan(row * vocab, vocab)));
    ids = ids.subspan(chunk);
  }
  guard.keep();
  return Status();
} catch (...) {
  return statusOfException();
}

std::optional<std::string> Session::findNonFiniteWeight() const {
  Result<std::vector<ListedTensor>> tensors = findTensors(model, source);
  if (!tensors.ok())
    return std::nullopt;
  std::vector<std::string> names;
  for (ListedTensor &tensor : *tensors)
    names.push_back(std::move(tensor.name));
  return weights.findNonFinite(names);
}

//===----------------------------------------------------------------------===//
// Accounting
//===----------------------------------------------------------------------===//

SessionMemory Session::memory() const {
  SessionMemory memory;
  memory.weights = weights.bytes();
  memory.cache = cache.bytes();
  for (const auto &[key, runner] : programs) {
    if (!runner)
      continue;
    memory.arenas += runner->arenaBytes();
    memory.io += runner->ioBytes();
  }
  return memory;
}

SessionTimings Session::timings() const {
  return {compileSeconds, readySeconds - weights.seconds(), weights.seconds()};
}
