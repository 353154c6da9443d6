//===- MlirText.cpp - A text through the whole CPU pipeline ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/MlirText.h"

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/Registration.h"
#include "kf/Pipelines/SourceText.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/engine/ProgramRunner.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/xxhash.h"

#include <cstring>
#include <map>
#include <random>

using namespace kf;

namespace {

constexpr int64_t cacheCapacity = 64;
/// Of all buffers of a program that is run, and of its arithmetic as far as
/// that follows from them.
constexpr int64_t maxElements = int64_t(1) << 18;

mlir::DialectRegistry makeRegistry() {
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  return registry;
}

/// Leaves one of the module's functions and programs, as --function does.
void choose(mlir::ModuleOp module, size_t number) {
  std::vector<mlir::Operation *> entries;
  for (mlir::Operation &op : *module.getBody())
    if (llvm::isa<mlir::func::FuncOp, mlir::kf::ProgramOp>(op))
      entries.push_back(&op);
  for (size_t i = 0; i < entries.size(); ++i)
    if (i != number % entries.size())
      entries[i]->erase();
}

/// Floats in [-2, 2) and small integers, now and then any bits.
Result<HostTensor> makeTensor(DataType type, std::vector<int64_t> shape,
                              int64_t rows, std::mt19937 &random) {
  for (int64_t &extent : shape)
    extent = extent < 0 ? rows : extent;
  KF_ASSIGN_OR_RETURN(HostTensor tensor, HostTensor::zeros(type, shape));
  const bool wild = random() % 8 == 0;
  std::vector<std::byte> &bytes = tensor.bytes;
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    uint32_t word = random();
    if (!wild && (type == DataType::I32 || type == DataType::I64)) {
      word = type == DataType::I64 && at % 8 ? 0 : word % 16;
    } else if (!wild && type == DataType::F32) {
      float number = static_cast<float>(static_cast<int32_t>(word)) * 0x1p-30f;
      std::memcpy(&word, &number, 4);
    }
    std::memcpy(bytes.data() + at, &word, 4);
  }
  return tensor;
}

/// What the weights of a program are made of. A weight of several tensors has
/// equal parts.
class RandomWeights : public WeightSource {
public:
  RandomWeights(const Executable &program, std::mt19937 &random) {
    for (const WeightSpec &spec : program.weights) {
      const int64_t parts = spec.names.size();
      std::vector<int64_t> shape = spec.shape;
      if (spec.stacked)
        shape.erase(shape.begin());
      else if (parts > 1)
        shape.front() /= parts;
      if (spec.transposed)
        std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
      for (const std::string &name : spec.names)
        if (auto tensor = makeTensor(spec.type, shape, 1, random); tensor.ok())
          tensors.try_emplace(name, tensor.take());
    }
  }

  Result<TensorView> find(const std::string &name) const override {
    auto found = tensors.find(name);
    if (found == tensors.end())
      return Status::error("its parts are no tensors");
    const HostTensor &tensor = found->second;
    return TensorView{tensor.type, tensor.shape, tensor.bytes.data(),
                      tensor.bytes.size()};
  }
  std::vector<std::string> names() const override { return {}; }

private:
  std::map<std::string, HostTensor> tensors;
};

int64_t countElements(const std::vector<int64_t> &shape, int64_t tokens) {
  int64_t count = 1;
  for (int64_t extent : shape) {
    count *= std::min(extent < 0 ? tokens : extent, maxElements + 1);
    if (count > maxElements)
      return maxElements + 1;
  }
  return count;
}

/// Whether a run of `tokens` takes milliseconds.
bool isSmall(const Executable &program, int64_t tokens) {
  int64_t total = 0;
  auto add = [&](const std::vector<int64_t> &shape) {
    total += countElements(shape, tokens);
  };
  if (program.arenaBytes > uint64_t(maxElements) * 4 ||
      program.dispatches.size() > 256)
    return false;
  for (const TensorSpec &spec : program.inputs)
    add(spec.shape);
  for (const TensorSpec &spec : program.outputs)
    add(spec.shape);
  for (const WeightSpec &spec : program.weights)
    add(spec.shape);
  for (const CacheSpec &spec : program.caches)
    add({spec.layers, spec.kvHeads, spec.headDim, 2 * cacheCapacity});
  return total <= maxElements;
}

Status run(const Executable &program, int64_t tokens, std::mt19937 &random) {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                      createCpuDevice({/*threads=*/1}));
  const RandomWeights source(program, random);
  WeightStore weights(*device, &source);
  KVCache cache(*device, cacheCapacity, cacheCapacity * kCachePage);
  KF_ASSIGN_OR_RETURN(std::unique_ptr<ProgramRunner> runner,
                      ProgramRunner::create(program, *device, weights, cache));
  std::vector<HostTensor> inputs;
  for (const TensorSpec &spec : program.inputs) {
    KF_ASSIGN_OR_RETURN(HostTensor input,
                        makeTensor(spec.type, spec.shape, tokens, random));
    inputs.push_back(std::move(input));
  }
  return runner->run(inputs, tokens).status();
}

} // namespace

TextCompiler::TextCompiler()
    : context(makeRegistry(), mlir::MLIRContext::Threading::DISABLED) {}

Outcome TextCompiler::use(llvm::StringRef text) {
  auto module = mlir::kf::parseSource(text, "text", &context);
  if (!module)
    return {Stage::Refused, llvm::toString(module.takeError())};
  std::mt19937 random(static_cast<uint32_t>(llvm::xxh3_64bits(text)));
  choose(**module, random());
  mlir::kf::CompileOptions options;
  llvm::Expected<Executable> program = mlir::kf::compile(**module, options);
  if (!program)
    return {Stage::Refused, llvm::toString(program.takeError())};
  const int64_t least = program->minTokens, most = program->maxTokens;
  for (int64_t tokens : {least, std::min(most, least + 1),
                         std::max(least, std::min<int64_t>(most, 19))}) {
    if (!isSmall(*program, tokens))
      return {Stage::Compiled, "it is too large to run"};
    if (Status status = run(*program, tokens, random); !status.ok())
      return {Stage::Compiled, status.message()};
  }
  return {Stage::Ran, ""};
}
