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

#ifndef KF_TEST_RUNTIME_SESSION_FAKEMODEL_H
#define KF_TEST_RUNTIME_SESSION_FAKEMODEL_H

#include "runtime/AlignedBuffer.h"
#include "runtime/session/Session.h"

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

class FakeBuffer : public Buffer {
public:
  FakeBuffer(AlignedBuffer owned, bool shared)
      : Buffer(owned.size()), memory(std::move(owned)), base(memory.data()),
        shared(shared) {}
  /// The caller's memory.
  FakeBuffer(const void *data, uint64_t bytes)
      : Buffer(bytes), base(static_cast<std::byte *>(const_cast<void *>(data))),
        shared(true) {}
  void *hostPointer() override { return shared ? base : nullptr; }
  std::byte *data() { return base; }

private:
  AlignedBuffer memory;
  std::byte *base;
  bool shared;
};

/// Runs one step; its Executable's name says which.
class FakeProgram : public LoadedProgram {
public:
  FakeProgram(std::string name, int &runs, const std::function<void()> &onRun)
      : name(std::move(name)), runs(runs), onRun(onRun) {}

  Status bind(const BindingTable &buffers) override {
    table = buffers;
    return Status();
  }
  Status run(std::span<const int64_t> scalars, CancelFlag) override {
    ++runs;
    if (onRun)
      onRun();
    const int64_t rows = scalars[KF_SCALAR_N_TOKENS];
    const float *in = floats(table.inputs[0]);
    float *out = floats(table.outputs[0]);
    if (name == "head") {
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t v = 0; v < kVocab; ++v)
          out[row * kVocab + v] = in[row * kHidden + 1] + v;
      return Status();
    }
    for (int64_t row = 0; row < rows; ++row) {
      float sum = read(row, scalars[KF_SCALAR_CACHE_CAPACITY] * kCachePage);
      if (name == "decode")
        for (int64_t v = 0; v < kVocab; ++v)
          out[v] = sum + v;
      else
        out[row * kHidden + 1] = sum;
    }
    return Status();
  }

private:
  static float *floats(Buffer *buffer) {
    return reinterpret_cast<float *>(static_cast<FakeBuffer *>(buffer)->data());
  }
  /// Keeps row `row`'s token in the cache; returns the sum up to there.
  float read(int64_t row, int64_t capacity) {
    auto ids = reinterpret_cast<int32_t *>(floats(table.inputs[0]));
    auto positions = reinterpret_cast<int32_t *>(floats(table.inputs[1]));
    auto sequences = reinterpret_cast<int32_t *>(floats(table.inputs[2]));
    auto pages = reinterpret_cast<int32_t *>(floats(table.inputs[3]));
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

  std::string name;
  int &runs;
  const std::function<void()> &onRun;
  BindingTable table;
};

class FakeDevice : public Device {
public:
  /// With `shared`, the host sees the buffers' memory.
  explicit FakeDevice(bool shared = true) : shared(shared) {}
  std::string name() const override { return "fake"; }
  std::string description() const override { return "a fake"; }

  Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) override {
    KF_ASSIGN_OR_RETURN(AlignedBuffer memory, AlignedBuffer::allocate(bytes));
    return std::unique_ptr<Buffer>(new FakeBuffer(std::move(memory), shared));
  }
  Result<std::unique_ptr<Buffer>> wrap(const void *data,
                                       uint64_t bytes) override {
    ++wraps;
    if (shared)
      return std::unique_ptr<Buffer>(new FakeBuffer(data, bytes));
    KF_ASSIGN_OR_RETURN(AlignedBuffer memory, AlignedBuffer::allocate(bytes));
    std::memcpy(memory.data(), data, bytes);
    return std::unique_ptr<Buffer>(new FakeBuffer(std::move(memory), shared));
  }
  Status write(Buffer &dst, uint64_t offset, const void *src,
               uint64_t bytes) override {
    if (offset > dst.size() || bytes > dst.size() - offset)
      return Status::error("outside the buffer");
    std::memcpy(static_cast<FakeBuffer &>(dst).data() + offset, src, bytes);
    return Status();
  }
  Status read(Buffer &src, uint64_t offset, void *dst,
              uint64_t bytes) override {
    if (offset > src.size() || bytes > src.size() - offset)
      return Status::error("outside the buffer");
    std::memcpy(dst, static_cast<FakeBuffer &>(src).data() + offset, bytes);
    return Status();
  }
  Result<std::unique_ptr<LoadedProgram>>
  load(const Executable &executable) override {
    return std::unique_ptr<LoadedProgram>(
        new FakeProgram(executable.programName, runs, onRun));
  }

  int runs = 0;                ///< of all programs
  std::function<void()> onRun; ///< called by each; may be empty
  int wraps = 0;               ///< calls of wrap()

private:
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
inline Executable fakeStep(StepKind kind, int64_t maxTokens,
                           const ModelConfig &config = fakeConfig()) {
  const int64_t rows = maxTokens == 1 ? 1 : -1;
  const TensorSpec ids = {DataType::I32, {rows}};
  const TensorSpec hidden = {DataType::F32, {rows, kHidden}};
  const TensorSpec logits = {DataType::F32, {rows, kVocab}};
  Executable executable;
  executable.target = "fake";
  executable.programName = std::string(nameOf(kind));
  executable.maxTokens = maxTokens;
  executable.arenaBytes = 256;
  if (kind == StepKind::Head) {
    executable.inputs = {hidden};
  } else {
    const TensorSpec table = {DataType::I32,
                              {1, cachePagesOf(config.maxPositions)}};
    executable.inputs = {ids, ids, ids, table};
    CacheSpec cache;
    cache.layers = cache.kvHeads = 1;
    cache.headDim = 2;
    cache.keyBlock = 16;
    executable.caches = {cache};
  }
  executable.outputs = {kind == StepKind::Prefill ? hidden : logits};
  return executable;
}

} // namespace kf::test

#endif // KF_TEST_RUNTIME_SESSION_FAKEMODEL_H
