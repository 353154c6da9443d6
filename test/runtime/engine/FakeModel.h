//===- FakeModel.h - A device and a model without kernels -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A decoder whose logits have a closed form, so that a test can say what the
// session has to return: after tokens t0 ... tp, logit v is
// v + sum over i of (i + 1) * ti. Its "kernels" keep the tokens in the cache,
// and poison what they must not be asked for.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_ENGINE_FAKEMODEL_H
#define KF_TEST_RUNTIME_ENGINE_FAKEMODEL_H

#include "runtime/devices/HostDevice.h"
#include "runtime/engine/Session.h"

#include <cstring>
#include <functional>
#include <map>

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

/// What the fake model answers for entry `v` after `tokens`.
inline float fakeLogit(std::span<const int32_t> tokens, int64_t v) {
  float sum = static_cast<float>(v);
  for (size_t i = 0; i < tokens.size(); ++i)
    sum += static_cast<float>((i + 1) * tokens[i]);
  return sum;
}

class FakeBuffer : public HostBuffer {
public:
  using HostBuffer::HostBuffer;
  void *hostPointer() override { return nullptr; }
};

/// Runs one step.
class FakeInstance : public HostInstance {
public:
  FakeInstance(const Executable &program, const BindingTable &table, int &runs,
               const std::function<void()> &onRun)
      : HostInstance(program, table), table(table),
        wantedShape(program.inputs[kStepWanted].shape), runs(runs),
        onRun(onRun) {}

  Status run(std::span<const int64_t> scalars, CancelFlag,
             DispatchTimes *) override {
    ++runs;
    if (onRun)
      onRun();
    std::vector<float> sums;
    for (int64_t row = 0; row < scalars[KF_SCALAR_N_TOKENS]; ++row)
      sums.push_back(read(row, scalars[KF_SCALAR_CACHE_PAGES] * kCachePage));
    const int32_t *wanted = ints(kStepWanted);
    float *out = floats(table.outputs[0]);
    const int64_t count = resolveShape(wantedShape, scalars)[0];
    for (int64_t row = 0; row < count; ++row)
      for (int64_t v = 0; v < kVocab; ++v)
        out[row * kVocab + v] = sums.at(wanted[row]) + v;
    return Status();
  }

private:
  static float *floats(Buffer *buffer) {
    return reinterpret_cast<float *>(HostBuffer::of(*buffer).data());
  }
  const int32_t *ints(StepInput input) {
    return reinterpret_cast<int32_t *>(floats(table.inputs[input]));
  }
  /// Keeps row `row`'s token in the cache; returns the sum up to there.
  float read(int64_t row, int64_t capacity) {
    const int32_t *ids = ints(kStepIds), *positions = ints(kStepPositions),
                  *sequences = ints(kStepSequences),
                  *pages = ints(kStepPageTable);
    float *tokens = floats(table.caches[0]);
    if (positions[row] >= capacity || sequences[row] != 0)
      return -1;
    auto token = [&](int64_t i) -> float & {
      return tokens[pages[i / kCachePage] * kCachePage + i % kCachePage];
    };
    token(positions[row]) = static_cast<float>(ids[row]);
    float sum = 0;
    for (int32_t i = 0; i <= positions[row]; ++i)
      sum += (i + 1) * token(i);
    return sum;
  }

  BindingTable table;
  std::vector<int64_t> wantedShape;
  int &runs;
  const std::function<void()> &onRun;
};

class FakeProgram : public LoadedProgram {
public:
  FakeProgram(const Executable &executable, int &runs,
              const std::function<void()> &onRun)
      : LoadedProgram(executable), runs(runs), onRun(onRun) {}

private:
  Result<std::unique_ptr<Instance>> doBind(const BindingTable &table) override {
    return std::unique_ptr<Instance>(
        new FakeInstance(program(), table, runs, onRun));
  }

  int &runs;
  const std::function<void()> &onRun;
};

class FakeDevice : public HostDevice {
public:
  /// With `shared`, the host sees the buffers' memory.
  explicit FakeDevice(bool shared = true) : shared(shared) {}
  std::string name() const override { return "fake"; }
  std::string description() const override { return "a fake"; }

  int runs = 0;                ///< of all programs
  std::function<void()> onRun; ///< called by each; may be empty
  int wraps = 0;               ///< calls of wrap()

private:
  Result<std::unique_ptr<Buffer>> doAllocate(uint64_t bytes,
                                             MemoryKind) override {
    KF_ASSIGN_OR_RETURN(AlignedBuffer memory, AlignedBuffer::allocate(bytes));
    return make(std::move(memory));
  }
  Result<std::unique_ptr<Buffer>> doWrap(const void *data,
                                         uint64_t bytes) override {
    ++wraps;
    if (shared)
      return std::unique_ptr<Buffer>(new HostBuffer(data, bytes));
    KF_ASSIGN_OR_RETURN(AlignedBuffer memory, AlignedBuffer::allocate(bytes));
    std::memcpy(memory.data(), data, bytes);
    return make(std::move(memory));
  }
  Result<std::unique_ptr<LoadedProgram>>
  doLoad(const Executable &executable) override {
    return std::unique_ptr<LoadedProgram>(
        new FakeProgram(executable, runs, onRun));
  }
  std::unique_ptr<Buffer> make(AlignedBuffer memory) const {
    if (shared)
      return std::make_unique<HostBuffer>(std::move(memory));
    return std::make_unique<FakeBuffer>(std::move(memory));
  }

  bool shared;
};

class FakeSource : public WeightSource {
public:
  Result<TensorView> find(const std::string &name) const override {
    auto it = tensors.find(name);
    if (it == tensors.end())
      return Status::error("there is no tensor '" + name + "'");
    return it->second;
  }
  void release(const std::string &name) const override { ++releases[name]; }
  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto &[name, view] : tensors)
      result.push_back(name);
    return result;
  }

  std::map<std::string, TensorView> tensors;
  mutable std::map<std::string, int> releases; ///< calls of release()
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
