//===- Session.cpp - A model that is being run ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/Session.h"

#include "runtime/Exceptions.h"
#include "runtime/model/TensorList.h"
#include "runtime/session/Stopwatch.h"

#include <algorithm>
#include <numeric>

using namespace kf;

namespace {

/// Rows of the prefill programs: few enough for a short prompt to compile and
/// run quickly, enough for a long one to be bound by arithmetic.
constexpr int64_t kSmallPrefill = 16;
constexpr int64_t kLargePrefill = 512;
/// Rows that allLogits() brings to logits at a time.
constexpr int64_t kHeadRows = 16;

/// Checks that a program takes and returns what the step has to, so that
/// buffers of the session fit whatever the provider handed out.
Status checkStep(const Executable &executable, StepKind kind, int64_t maxTokens,
                 const ModelConfig &model) {
  const int64_t rows = maxTokens == 1 ? 1 : -1;
  const TensorSpec ids = {DataType::I32, {rows}};
  const TensorSpec table = {DataType::I32,
                            {1, cachePagesOf(model.maxPositions)}};
  const TensorSpec hidden = {DataType::F32, {rows, model.hiddenSize}};
  const TensorSpec logits = {DataType::F32, {rows, model.vocabSize}};
  const bool head = kind == StepKind::Head;
  const std::vector<TensorSpec> inputs =
      head ? std::vector{hidden} : std::vector{ids, ids, ids, table};
  const std::vector<TensorSpec> outputs = {kind == StepKind::Prefill ? hidden
                                                                     : logits};
  bool fits = executable.inputs == inputs && executable.outputs == outputs &&
              executable.maxTokens == maxTokens &&
              executable.caches.size() == (head ? 0 : 1);
  for (const CacheSpec &cache : executable.caches)
    fits &= cache.layers == model.layers && cache.kvHeads == model.kvHeads &&
            cache.headDim == model.headDim && cache.page == kCachePage;
  if (fits)
    return Status();
  return Status::error(
      "the program '" + executable.programName +
      "' that was compiled for step '" + std::string(nameOf(kind)) + "' of " +
      std::to_string(maxTokens) + " tokens does not fit the model");
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

Result<ProgramRunner *> Session::program(StepKind kind, int64_t maxTokens) {
  std::unique_ptr<ProgramRunner> &slot = programs[{kind, maxTokens}];
  if (slot)
    return slot.get();
  if (isCancelled())
    return Status::cancelled();
  Stopwatch compiling;
  Result<Executable> executable = provider(kind, maxTokens);
  compileSeconds += compiling.seconds();
  if (!executable.ok())
    return executable.status();
  KF_RETURN_IF_ERROR(checkStep(*executable, kind, maxTokens, model));
  Stopwatch readying;
  Result<std::unique_ptr<ProgramRunner>> runner =
      ProgramRunner::create(executable.take(), device, weights, cache);
  readySeconds += readying.seconds();
  if (!runner.ok())
    return runner.status();
  if (kind != StepKind::Head)
    KF_RETURN_IF_ERROR(writeSequence(**runner));
  slot = runner.take();
  return slot.get();
}

/// Tells a step, once, that all rows belong to one sequence whose pages come in
/// order; sequences are zeros, as all buffers are at first.
Status Session::writeSequence(ProgramRunner &runner) const {
  std::vector<int32_t> table(static_cast<size_t>(cache.pages()));
  std::iota(table.begin(), table.end(), 0);
  return runner.write(3, table.data(), table.size() * sizeof(int32_t));
}

/// Rows of the prefill program for the next chunk. A program that is there
/// already is better than one that would have to be compiled.
int64_t Session::prefillSizeFor(int64_t remaining) const {
  const int64_t small = std::min(kSmallPrefill, context);
  const int64_t large = std::min(kLargePrefill, context);
  auto isReady = [&](int64_t rows) {
    auto it = programs.find({StepKind::Prefill, rows});
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

/// Reads one id that was checked.
Result<std::span<const float>> Session::runDecode(int32_t id) {
  if (!decoder) {
    KF_ASSIGN_OR_RETURN(decoder, program(StepKind::Decode, 1));
  }
  const int32_t position = static_cast<int32_t>(nextPosition);
  KF_RETURN_IF_ERROR(decoder->write(0, &id, sizeof(id)));
  KF_RETURN_IF_ERROR(decoder->write(1, &position, sizeof(position)));
  KF_RETURN_IF_ERROR(decoder->execute(1, cancelled));
  const size_t count = static_cast<size_t>(model.vocabSize);
  KF_ASSIGN_OR_RETURN(const void *logits,
                      decoder->read(0, 0, count * sizeof(float)));
  ++nextPosition;
  return std::span(static_cast<const float *>(logits), count);
}

/// Reads ids that were checked; their hidden states are the runner's output.
Status Session::runPrefill(ProgramRunner &runner,
                           std::span<const int32_t> ids) {
  positions.resize(ids.size());
  std::iota(positions.begin(), positions.end(),
            static_cast<int32_t>(nextPosition));
  KF_RETURN_IF_ERROR(runner.write(0, ids.data(), ids.size_bytes()));
  KF_RETURN_IF_ERROR(
      runner.write(1, positions.data(), ids.size() * sizeof(int32_t)));
  KF_RETURN_IF_ERROR(
      runner.execute(static_cast<int64_t>(ids.size()), cancelled));
  nextPosition += static_cast<int64_t>(ids.size());
  return Status();
}

/// hidden [rows, hidden size] -> logits [rows, vocabulary].
Result<std::span<const float>> Session::runHead(ProgramRunner &head,
                                                std::span<const float> hidden) {
  const int64_t rows = static_cast<int64_t>(hidden.size()) / model.hiddenSize;
  const size_t count = static_cast<size_t>(rows * model.vocabSize);
  KF_RETURN_IF_ERROR(head.write(0, hidden.data(), hidden.size_bytes()));
  KF_RETURN_IF_ERROR(head.execute(rows, cancelled));
  KF_ASSIGN_OR_RETURN(const void *logits,
                      head.read(0, 0, count * sizeof(float)));
  return std::span(static_cast<const float *>(logits), count);
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
  ProgramRunner *runner = nullptr;
  size_t chunk = 0;
  // A last chunk of one token is left to the decode step.
  while (ids.size() > 1) {
    const int64_t rows = prefillSizeFor(static_cast<int64_t>(ids.size()));
    KF_ASSIGN_OR_RETURN(runner, program(StepKind::Prefill, rows));
    chunk = std::min(ids.size(), static_cast<size_t>(rows));
    KF_RETURN_IF_ERROR(runPrefill(*runner, ids.first(chunk)));
    ids = ids.subspan(chunk);
  }
  Result<std::span<const float>> logits = Status::error("no token");
  if (!ids.empty()) {
    logits = runDecode(ids.front());
  } else {
    KF_ASSIGN_OR_RETURN(ProgramRunner * head, program(StepKind::Head, 1));
    const size_t rowBytes = model.hiddenSize * sizeof(float);
    KF_ASSIGN_OR_RETURN(const void *last,
                        runner->read(0, (chunk - 1) * rowBytes, rowBytes));
    logits = runHead(*head, {static_cast<const float *>(last),
                             static_cast<size_t>(model.hiddenSize)});
  }
  if (logits.ok())
    guard.keep();
  return logits;
} catch (...) {
  return statusOfException();
}

Status Session::allLogits(std::span<const int32_t> ids,
                          const LogitsCallback &callback) try {
  KF_RETURN_IF_ERROR(checkIds(ids));
  PositionGuard guard(nextPosition);
  while (!ids.empty()) {
    const int64_t rows = prefillSizeFor(static_cast<int64_t>(ids.size()));
    const size_t chunk = std::min(ids.size(), static_cast<size_t>(rows));
    KF_RETURN_IF_ERROR(chunkLogits(ids.first(chunk), rows, callback));
    ids = ids.subspan(chunk);
  }
  guard.keep();
  return Status();
} catch (...) {
  return statusOfException();
}

/// Reads ids that the prefill program of `rows` rows takes at once.
Status Session::chunkLogits(std::span<const int32_t> chunk, int64_t rows,
                            const LogitsCallback &callback) {
  const int64_t first = nextPosition;
  if (chunk.size() == 1) {
    KF_ASSIGN_OR_RETURN(std::span<const float> logits,
                        runDecode(chunk.front()));
    return callback(first, logits);
  }
  const size_t hidden = static_cast<size_t>(model.hiddenSize);
  const size_t vocab = static_cast<size_t>(model.vocabSize);
  KF_ASSIGN_OR_RETURN(ProgramRunner * runner, program(StepKind::Prefill, rows));
  KF_ASSIGN_OR_RETURN(ProgramRunner * head, program(StepKind::Head, kHeadRows));
  KF_RETURN_IF_ERROR(runPrefill(*runner, chunk));
  for (size_t row = 0; row < chunk.size(); row += kHeadRows) {
    const size_t count = std::min<size_t>(kHeadRows, chunk.size() - row);
    const size_t bytes = count * hidden * sizeof(float);
    KF_ASSIGN_OR_RETURN(const void *states,
                        runner->read(0, row * hidden * sizeof(float), bytes));
    KF_ASSIGN_OR_RETURN(
        std::span<const float> logits,
        runHead(*head, {static_cast<const float *>(states), count * hidden}));
    for (size_t i = 0; i < count; ++i)
      KF_RETURN_IF_ERROR(callback(first + static_cast<int64_t>(row + i),
                                  logits.subspan(i * vocab, vocab)));
  }
  return Status();
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
