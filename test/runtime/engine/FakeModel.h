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
// keep the tokens in the cache, and choose as kf.sample does.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_ENGINE_FAKEMODEL_H
#define KF_TEST_RUNTIME_ENGINE_FAKEMODEL_H

#include "runtime/engine/Engine.h"
#include "test/runtime/FakeDevice.h"

#include <algorithm>
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

/// What the fake model does; tests change it at any time.
struct FakeBehavior {
  std::function<void()> onRun; ///< called by each run; may be empty
  bool varies = false;         ///< logits are as good as random
  int32_t poison = -1;         ///< a token behind which logits are NaN
  Status failure;              ///< what runs end with
  int runs = 0;                ///< of all programs
  int64_t rows = 0;            ///< in them
};

/// What the fake model answers for entry `v` after `tokens`.
inline float fakeLogit(std::span<const int32_t> tokens, int64_t v,
                       const FakeBehavior &behavior = {}) {
  float sum = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == behavior.poison)
      return std::numeric_limits<float>::quiet_NaN();
    sum += static_cast<float>((i + 1) * tokens[i]);
  }
  if (!behavior.varies)
    return sum + static_cast<float>(v);
  const uint64_t bits = randomBits(static_cast<uint64_t>(sum),
                                   static_cast<uint32_t>(v + tokens.size()));
  return static_cast<float>(bits >> 40) / 0x1p20f;
}

/// Runs one step.
class FakeInstance : public HostInstance {
public:
  FakeInstance(const Executable &program, const BindingTable &table,
               FakeBehavior &behavior)
      : HostInstance(program, table), table(table),
        wantedShape(program.inputs[kStepWanted].shape),
        pages(program.inputs[kStepPageTable].shape[1]),
        givesLogits(program.inputs.size() == kStepWanted + 1),
        behavior(behavior) {}

  Status run(std::span<const int64_t> scalars, CancelFlag cancelled,
             DispatchTimes *) override {
    ++behavior.runs;
    const int64_t rows = scalars[KF_SCALAR_N_TOKENS];
    behavior.rows += rows;
    if (behavior.onRun)
      behavior.onRun();
    KF_RETURN_IF_ERROR(behavior.failure);
    if (isCancelled(cancelled))
      return Status::cancelled();
    for (int64_t row = 0; row < rows; ++row)
      KF_RETURN_IF_ERROR(keep(row, scalars[KF_SCALAR_CACHE_PAGES]));
    const int64_t count = resolveShape(wantedShape, scalars)[0];
    for (int64_t i = 0; i < count; ++i) {
      const int32_t row = ints(kStepWanted)[i];
      if (row < 0 || row >= rows)
        return Status::error("a row is wanted that there is not");
      std::vector<float> logits = logitsOf(row);
      if (givesLogits)
        std::ranges::copy(logits, floats(table.outputs[0]) + i * kVocab);
      else
        of<int32_t>(table.outputs[0])[i] = choose(i, logits);
    }
    return Status();
  }

private:
  template <typename T> static T *of(Buffer *buffer) {
    return reinterpret_cast<T *>(HostBuffer::of(*buffer).data());
  }
  static float *floats(Buffer *buffer) { return of<float>(buffer); }
  const int32_t *ints(StepInput input) {
    return of<int32_t>(table.inputs[input]);
  }
  const float *reals(StepInput input) { return of<float>(table.inputs[input]); }

  /// Where the cache keeps the token at `position` of row `row`'s sequence.
  float &token(int64_t row, int64_t position) {
    const int32_t page =
        ints(kStepPageTable)[ints(kStepSequences)[row] * pages +
                             position / kCachePage];
    // Of the page's keys and values, two each, the first is used.
    return floats(
        table.caches[0])[(page * 4 * kCachePage) + position % kCachePage];
  }
  Status keep(int64_t row, int64_t poolPages) {
    const int64_t position = ints(kStepPositions)[row];
    const int32_t page =
        ints(kStepPageTable)[ints(kStepSequences)[row] * pages +
                             position / kCachePage];
    if (page < 0 || page >= poolPages)
      return Status::error("a page that there is not");
    token(row, position) = static_cast<float>(ints(kStepIds)[row]);
    return Status();
  }
  std::vector<float> logitsOf(int64_t row) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i <= ints(kStepPositions)[row]; ++i)
      tokens.push_back(static_cast<int32_t>(token(row, i)));
    std::vector<float> logits;
    for (int64_t v = 0; v < kVocab; ++v)
      logits.push_back(fakeLogit(tokens, v, behavior));
    return logits;
  }
  int32_t choose(int64_t i, std::vector<float> &logits) {
    const SamplePenalties penalties = {reals(kStepRepetition)[i],
                                       reals(kStepPresence)[i],
                                       reals(kStepFrequency)[i]};
    const int32_t first = ints(kStepFirst)[i];
    for (int32_t j = first; j < first + ints(kStepCount)[i]; ++j) {
      float &logit = logits[ints(kStepAdjustedIds)[j]];
      logit = adjustLogit(logit, ints(kStepSeen)[j], reals(kStepBias)[j],
                          penalties);
    }
    if (const int32_t row = ints(kStepMasked)[i]; row >= 0)
      for (int32_t v = 0; v < kVocab; ++v)
        if (!(ints(kStepMask)[row * maskWords(kVocab) + v / 32] >> (v % 32) &
              1))
          logits[v] = -std::numeric_limits<float>::infinity();
    const int64_t seed = of<int64_t>(table.inputs[kStepSeed])[i];
    return sampleToken(logits, {reals(kStepTemperature)[i], ints(kStepTopK)[i],
                                reals(kStepTopP)[i], reals(kStepMinP)[i],
                                static_cast<uint64_t>(seed),
                                static_cast<uint32_t>(ints(kStepCounter)[i])});
  }

  BindingTable table;
  std::vector<int64_t> wantedShape;
  int64_t pages; ///< of a sequence
  bool givesLogits;
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

private:
  Result<std::unique_ptr<LoadedProgram>>
  doLoad(const Executable &executable) override {
    return std::unique_ptr<LoadedProgram>(
        new FakeProgram(executable, behavior));
  }
};

/// The fake model's step, as a StepProvider has to return it.
inline Executable fakeStep(const StepShape &shape,
                           const ModelConfig &config = fakeConfig()) {
  const StepSignature signature = stepSignature(shape, config);
  Executable executable;
  executable.target = "fake";
  executable.programName = nameOf(shape);
  executable.maxTokens = shape.tokens;
  executable.namedSizes = signature.sizes;
  executable.arenaBytes = 256;
  executable.inputs = signature.inputs;
  executable.outputs = signature.outputs;
  CacheSpec cache;
  cache.layers = cache.kvHeads = 1;
  cache.headDim = 2;
  cache.keyBlock = 16;
  executable.caches = {cache};
  return executable;
}

} // namespace kf::test

#endif // KF_TEST_RUNTIME_ENGINE_FAKEMODEL_H
