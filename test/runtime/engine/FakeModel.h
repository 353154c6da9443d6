//===- FakeModel.h - A device and a model without kernels -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A decoder whose logits have a closed form, so that a test can say what the
// engine has to return: after tokens t0 ... tp, logit v is
// v + sum over i of (i + 1) * ti, or, where it is told to vary, a number that
// is as good as random in 0 to 15, but depends on all of these. Its "kernels"
// keep the tokens in the cache, and choose as kf.sample does. One with states
// takes the sum from these, and fails where one is not that of the tokens
// before a row.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_ENGINE_FAKEMODEL_H
#define KF_TEST_RUNTIME_ENGINE_FAKEMODEL_H

#include "runtime/engine/Engine.h"
#include "runtime/model/LayerCaches.h"
#include "test/runtime/FakeDevice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

namespace kf::test {

inline constexpr int64_t kVocab = 11, kHidden = 3;

inline ModelConfig fakeConfig(int64_t maxPositions = 1200) {
  ModelConfig config;
  config.layers = config.heads = config.kvHeads = 1;
  config.headDim = 2;
  config.hiddenSize = kHidden;
  config.vocabSize = kVocab;
  config.maxPositions = maxPositions;
  return config;
}

/// Of a fake with states.
inline ModelConfig statefulConfig(int64_t maxPositions = 1200) {
  ModelConfig config = fakeConfig(maxPositions);
  config.layers = 2;
  config.layerConfigs.resize(2);
  config.layerConfigs[1].isLinear = true;
  config.linear = {
      .keyHeads = 1, .valueHeads = 1, .keyDim = 1, .valueDim = 1, .taps = 2};
  return config;
}

/// How many positions layers of a fake with windows see.
inline constexpr int64_t kFakeWindow = 100;

/// Of a fake with two layers with windows, each with pages of its own, and one
/// that sees all positions.
inline ModelConfig windowedConfig(int64_t maxPositions = 1200) {
  ModelConfig config = fakeConfig(maxPositions);
  config.layers = 3;
  config.layerConfigs.resize(3);
  config.layerConfigs[0].window = config.layerConfigs[1].window = kFakeWindow;
  return config;
}

/// The same of one whose layers all see as many positions.
inline ModelConfig allWindowedConfig(int64_t maxPositions = 1200) {
  ModelConfig config = fakeConfig(maxPositions);
  config.layerConfigs.resize(1);
  config.layerConfigs[0].window = kFakeWindow;
  return config;
}

/// What the fake model does; tests change it at any time.
struct FakeBehavior {
  std::function<void()> onRun;   ///< called by each body's run; may be empty
  bool varies = false;           ///< logits are as good as random
  uint64_t errs = 0;             ///< of 1024 texts, those with others' logits
  int32_t poison = -1;           ///< a token behind which logits are NaN
  Status failure;                ///< what runs end with
  bool forgets = false;          ///< rows see kFakeWindow positions alone
  int runs = 0;                  ///< of all bodies
  int64_t rows = 0;              ///< in them
  std::vector<int32_t> ids;      ///< of these rows
  std::vector<int32_t> adapters; ///< likewise, of models with any
};

/// What all logits behind `tokens` depend on: the hidden row begins with it.
inline std::array<float, 2> fakeHidden(std::span<const int32_t> tokens,
                                       const FakeBehavior &behavior = {}) {
  float sum = 0;
  for (size_t i = 0; i < tokens.size(); ++i)
    sum += tokens[i] == behavior.poison
               ? std::numeric_limits<float>::quiet_NaN()
               : static_cast<float>((i + 1) * tokens[i]);
  return {sum, static_cast<float>(tokens.size())};
}

inline float fakeLogitOf(float sum, float count, int64_t v,
                         const FakeBehavior &behavior) {
  if (!std::isnan(sum) &&
      randomBits(static_cast<uint64_t>(sum), static_cast<uint32_t>(count)) %
              1024 <
          behavior.errs)
    v = (v + 1) % kVocab;
  if (!behavior.varies || std::isnan(sum))
    return sum + static_cast<float>(v);
  const uint64_t bits =
      randomBits(static_cast<uint64_t>(sum),
                 static_cast<uint32_t>(v + static_cast<int64_t>(count)));
  return static_cast<float>(bits >> 40) / 0x1p20f;
}

/// What it makes of the last of `tokens` for embeddings.
inline std::array<float, kHidden> fakeEmbeddingOf(float sum, float count) {
  return {sum, -count, 0.5f};
}
inline std::array<float, kHidden>
fakeEmbedding(std::span<const int32_t> tokens) {
  const auto [sum, count] = fakeHidden(tokens);
  return fakeEmbeddingOf(sum, count);
}

/// What the fake model answers for entry `v` after `tokens`.
inline float fakeLogit(std::span<const int32_t> tokens, int64_t v,
                       const FakeBehavior &behavior = {}) {
  const auto [sum, count] = fakeHidden(tokens, behavior);
  return fakeLogitOf(sum, count, v, behavior);
}

/// Runs a part of a step.
class FakeInstance : public HostInstance {
public:
  FakeInstance(const Executable &program, const BindingTable &table,
               FakeBehavior &behavior)
      : HostInstance(program, table), table(table),
        part(stepShapeOf(program)->part), behavior(behavior) {}

  Status run(std::span<const int64_t> scalars, CancelFlag cancelled,
             DispatchTimes *) override {
    rows = scalars[KF_SCALAR_N_TOKENS];
    if (part == StepPart::Body) {
      ++behavior.runs;
      behavior.rows += rows;
      if (behavior.onRun)
        behavior.onRun();
    }
    // A step that fails may have written states.
    Status status;
    if (part == StepPart::Body && hasStates())
      status = runStates(scalars[KF_SCALAR_CACHE_PAGES]);
    KF_RETURN_IF_ERROR(behavior.failure);
    if (isCancelled(cancelled))
      return Status::cancelled();
    switch (part) {
    case StepPart::Body:
      return hasStates() ? status : runBody(scalars[KF_SCALAR_CACHE_PAGES]);
    case StepPart::Head:
      return runHead(scalars[KF_SCALAR_NAMED_SIZES]);
    case StepPart::Embed:
      return runEmbedding(scalars[KF_SCALAR_NAMED_SIZES]);
    case StepPart::Choose:
      for (int64_t i = 0; i < rows; ++i)
        of<int32_t>(table.outputs[0])[i] = choose(i);
    }
    return Status();
  }

private:
  template <typename T> static T *of(Buffer *buffer) {
    return reinterpret_cast<T *>(HostBuffer::of(*buffer).data());
  }
  static float *floats(Buffer *buffer) { return of<float>(buffer); }
  template <typename T> const T *at(StepInput input) {
    return of<T>(table.inputs[numberOf(input)]);
  }
  const int32_t *ints(StepInput input) { return at<int32_t>(input); }
  const float *reals(StepInput input) { return at<float>(input); }

  /// The page of row `row`'s sequence that has `position`, by the page table of
  /// all layers or by that of a window, from 1 on.
  int32_t pageOf(int64_t row, int64_t position, size_t window = 0) {
    const int64_t pages = program().inputs[kStepPageTable].shape[1];
    const auto *entries = of<int32_t>(table.inputs[kStepPageTable + window]);
    return entries[ints(kStepSequences)[row] * pages + position / kCachePage];
  }
  /// Where the cache keeps the token at `position` of row `row`'s sequence.
  float &token(int64_t row, int64_t position, size_t window = 0) {
    // Of the page's keys and values, two each, the first is used.
    return floats(
        table.caches[0])[(pageOf(row, position, window) * 4 * kCachePage) +
                         position % kCachePage];
  }

  /// Keeps the tokens, and gives what is known of those so far.
  Status runBody(int64_t poolPages) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t position = ints(kStepPositions)[row];
      for (size_t window = 0; window <= windows(); ++window) {
        const int32_t page = pageOf(row, position, window);
        if (page < 0 || page >= poolPages)
          return Status::error("a page that there is not");
        token(row, position, window) = static_cast<float>(ints(kStepIds)[row]);
      }
      behavior.ids.push_back(ints(kStepIds)[row]);
      if (hasAdapters())
        behavior.adapters.push_back(of<int32_t>(table.inputs.back())[row]);
    }
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<int32_t> tokens;
      const int64_t last = ints(kStepPositions)[row];
      if (behavior.forgets) {
        KF_RETURN_IF_ERROR(addUp(row, last));
        floats(table.outputs[0])[row * kHidden] = sumOf(row, last);
        floats(table.outputs[0])[row * kHidden + 1] =
            static_cast<float>(last + 1);
        continue;
      }
      for (int64_t i = 0; i <= last; ++i)
        tokens.push_back(static_cast<int32_t>(token(row, i)));
      for (size_t window = 1; window <= windows(); ++window)
        for (int64_t i = std::max<int64_t>(last + 1 - kFakeWindow, 0);
             i <= last; ++i)
          if (token(row, i, window) != token(row, i))
            return Status::error("a window sees what is not there");
      std::ranges::copy(fakeHidden(tokens, behavior),
                        floats(table.outputs[0]) + row * kHidden);
    }
    return Status();
  }
  /// Where the cache keeps what fakeHidden() begins with, of the tokens up to
  /// `position`.
  float &sumOf(int64_t row, int64_t position) {
    return (&token(row, position))[kCachePage];
  }
  /// Of one more token, of which the last ones alone may be looked at.
  Status addUp(int64_t row, int64_t last) {
    for (int64_t i = std::max<int64_t>(last + 1 - kFakeWindow, 0); i <= last;
         ++i) {
      const bool isFirst = i == last + 1 - kFakeWindow;
      const float sum =
          (i == 0 || isFirst ? 0 : sumOf(row, i - 1)) +
          static_cast<float>((i + 1) * static_cast<int64_t>(token(row, i)));
      if (i == last)
        sumOf(row, i) = sum;
      else if (!isFirst && sumOf(row, i) != sum)
        return Status::error("a window sees what is not there");
    }
    return Status();
  }
  bool hasStates() { return program().caches.size() > 1; }
  /// Page tables of windows, of models without states and adapters.
  size_t windows() {
    const std::vector<TensorSpec> &inputs = program().inputs;
    return inputs.size() > kStepStates &&
                   inputs.back() == inputs[kStepPageTable]
               ? inputs.size() - kStepStates
               : 0;
  }
  /// Of models without states and windows.
  bool hasAdapters() {
    return program().inputs.size() > kStepStates && windows() == 0;
  }
  /// The same of states: how many tokens there were, and their sum.
  Status runStates(int64_t poolPages) {
    const CacheSpec &spec = program().caches[1];
    for (int64_t row = 0; row < rows; ++row) {
      const int32_t slot = ints(kStepStates)[ints(kStepSequences)[row]];
      if (slot < 0 || slot >= spec.slots(poolPages))
        return Status::error("a slot that there is not");
      float *state = floats(table.caches[1]) + slot * spec.headDim;
      const int32_t position = ints(kStepPositions)[row];
      const int32_t id = ints(kStepIds)[row];
      if (position == 0)
        std::fill_n(state, 2, 0.0f);
      if (state[0] != static_cast<float>(position))
        return Status::error("a state of other tokens");
      state[0] += 1;
      state[1] += id == behavior.poison
                      ? std::numeric_limits<float>::quiet_NaN()
                      : static_cast<float>((position + 1) * id);
      float *hidden = floats(table.outputs[0]) + row * kHidden;
      hidden[0] = state[1];
      hidden[1] = state[0];
      behavior.ids.push_back(id);
    }
    return Status();
  }
  Status runHead(int64_t bodyRows) {
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t row = ints(kStepWanted)[i];
      if (row < 0 || row >= bodyRows)
        return Status::error("a row is wanted that there is not");
      const float *hidden = reals(kStepHidden) + row * kHidden;
      for (int64_t v = 0; v < kVocab; ++v)
        floats(table.outputs[0])[i * kVocab + v] =
            fakeLogitOf(hidden[0], hidden[1], v, behavior);
    }
    return Status();
  }
  Status runEmbedding(int64_t bodyRows) {
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t row = ints(kStepWanted)[i];
      if (row < 0 || row >= bodyRows)
        return Status::error("a row is wanted that there is not");
      const float *hidden = reals(kStepHidden) + row * kHidden;
      std::ranges::copy(fakeEmbeddingOf(hidden[0], hidden[1]),
                        floats(table.outputs[0]) + i * kHidden);
    }
    return Status();
  }
  int32_t choose(int64_t i) {
    const float *row = reals(kStepLogits) + i * kVocab;
    std::vector<float> logits(row, row + kVocab);
    const SamplePenalties penalties = {reals(kStepRepetition)[i],
                                       reals(kStepPresence)[i],
                                       reals(kStepFrequency)[i]};
    const int32_t first = ints(kStepFirst)[i];
    for (int32_t j = first; j < first + ints(kStepCount)[i]; ++j) {
      float &logit = logits[ints(kStepAdjustedIds)[j]];
      logit = adjustLogit(logit, ints(kStepSeen)[j], reals(kStepBias)[j],
                          penalties);
    }
    if (const int32_t masked = ints(kStepMasked)[i]; masked >= 0)
      for (int32_t v = 0; v < kVocab; ++v)
        if (!(ints(kStepMask)[masked * maskWords(kVocab) + v / 32] >> (v % 32) &
              1))
          logits[v] = -std::numeric_limits<float>::infinity();
    return sampleToken(logits,
                       {reals(kStepTemperature)[i], ints(kStepTopK)[i],
                        reals(kStepTopP)[i], reals(kStepMinP)[i],
                        static_cast<uint64_t>(at<int64_t>(kStepSeed)[i]),
                        static_cast<uint32_t>(ints(kStepCounter)[i])});
  }

  BindingTable table;
  StepPart part;
  int64_t rows = 0; ///< of the run
  FakeBehavior &behavior;
};

class FakeProgram : public LoadedProgram {
public:
  FakeProgram(const Executable &executable, FakeBehavior &behavior)
      : LoadedProgram(executable), behavior(behavior) {}

private:
  Result<std::unique_ptr<Instance>> doBind(const BindingTable &table) override {
    return std::unique_ptr<Instance>(
        new FakeInstance(program(), table, behavior));
  }

  FakeBehavior &behavior;
};

class FakeModelDevice : public FakeDevice {
public:
  using FakeDevice::FakeDevice;

  FakeBehavior behavior;
  uint64_t mostBytes = UINT64_MAX;
  int64_t rowsOfPrompts = 512;
  bool isInTiles = false, isBetween = false;

  int64_t promptRows() const override { return rowsOfPrompts; }
  uint64_t mostTensorBytes() const override { return mostBytes; }
  bool takesRowsInTiles() const override { return isInTiles; }
  bool hasTilesBetween() const override { return isBetween; }

private:
  Result<std::unique_ptr<LoadedProgram>>
  doLoad(const Executable &executable) override {
    return std::unique_ptr<LoadedProgram>(
        new FakeProgram(executable, behavior));
  }
};

/// A part of the fake model's step, as a StepProvider has to return it.
inline Executable fakeStep(const StepShape &shape,
                           const ModelConfig &config = fakeConfig()) {
  const StepSignature signature = stepSignature(shape, config);
  Executable executable;
  executable.target = "fake";
  executable.programName = nameOf(shape);
  executable.maxTokens = shape.rows;
  executable.namedSizes = signature.sizes;
  executable.arenaBytes = 256;
  executable.inputs = signature.inputs;
  executable.outputs = signature.outputs;
  if (shape.part != StepPart::Body)
    return executable;
  CacheSpec cache;
  cache.layers = cache.kvHeads = 1;
  cache.headDim = 2;
  cache.keyBlock = 16;
  executable.caches = {cache};
  if (config.hasStates())
    executable.caches.push_back(LayerCaches(config).specs().back());
  return executable;
}

} // namespace kf::test

#endif // KF_TEST_RUNTIME_ENGINE_FAKEMODEL_H
