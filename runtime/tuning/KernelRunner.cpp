//===- KernelRunner.cpp - One kernel, measured and compared ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/KernelRunner.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/core/TileRegisters.h"
#include "runtime/tuning/CacheContents.h"
#include "runtime/weights/RowScales.h"

#include <algorithm>
#include <set>

using namespace kf;

namespace {

/// More would be of no use: kernels that need more copies read little.
constexpr int64_t kMaxCopies = 256;

Executable withoutBinary(const Executable &program) {
  Executable copy = program;
  copy.binary.clear();
  return copy;
}

/// Elements of the longest row of a weight.
double longestRow(const Executable &program) {
  int64_t longest = 0;
  for (const WeightSpec &weight : program.weights)
    if (!weight.shape.empty())
      longest = std::max(longest, weight.shape.back());
  return static_cast<double>(longest);
}

bool hasBlockWeights(const Executable &program) {
  return std::ranges::any_of(program.weights, [](const WeightSpec &weight) {
    return isBlock(weight.type);
  });
}

bool multipliesBF16(const Executable &program) {
  return std::ranges::any_of(program.kernels, [](const KernelSpec &kernel) {
    return kernel.work && kernel.work->multipliesBF16();
  });
}

bool hasCacheWrites(const Executable &program) {
  for (const DispatchSpec &dispatch : program.dispatches)
    for (size_t i = 0; i < dispatch.bindings.size(); ++i)
      if (dispatch.bindings[i].kind == KF_BINDING_CACHE &&
          dispatch.accessOf(i).writes)
        return true;
  return false;
}

/// Names of the tensors that hold factors of the rows of matrices.
std::set<std::string> rowFactorsOf(const Executable &program) {
  std::set<std::string> names;
  for (const WeightSpec &weight : program.weights)
    if (weight.type == DataType::F8E4M3)
      for (const std::string &name : weight.names)
        names.insert(scaleName(name));
  return names;
}

/// The checkpoint's tensors that `spec` is made of; rows of a joined one are
/// divided evenly. `rowFactors` are those of all weights.
std::vector<DummyTensor> tensorsOf(const WeightSpec &spec,
                                   const std::set<std::string> &rowFactors) {
  std::vector<int64_t> shape(spec.shape.begin() +
                                 static_cast<int64_t>(spec.stackedDims()),
                             spec.shape.end());
  const int64_t parts = spec.stacked ? 1 : int64_t(spec.names.size());
  const int64_t rows = shape.empty() ? 1 : shape[0];
  std::vector<DummyTensor> tensors;
  for (size_t i = 0; i < spec.names.size(); ++i) {
    DummyTensor &tensor = tensors.emplace_back();
    tensor.name = spec.names[i];
    tensor.type = spec.type;
    tensor.shape = shape;
    // Weights of norms are about 1; a bias may as well. Factors make sums as
    // large as other matrices do, so that what is computed with them shows.
    tensor.mean = shape.size() == 1 ? 1 : 0;
    if (rowFactors.count(tensor.name)) {
      tensor.mean = kRowFactorMean;
      tensor.deviation = kRowFactorDeviation;
    }
    if (parts > 1)
      tensor.shape[0] = int64_t(i) + 1 < parts
                            ? rows / parts
                            : rows - (parts - 1) * (rows / parts);
    if (spec.transposed && tensor.shape.size() == 2)
      std::swap(tensor.shape[0], tensor.shape[1]);
  }
  return tensors;
}

/// The layouts that a device wants apart.
bool isSameWeight(const WeightSpec &a, WeightSpec b) {
  b.layout = a.layout;
  return a == b;
}
bool isSameCache(const CacheSpec &a, CacheSpec b) {
  b.keyBlock = a.keyBlock;
  return a == b;
}

Result<std::unique_ptr<Buffer>> upload(Device &device, Stream &stream,
                                       std::span<const std::byte> bytes) {
  KF_ASSIGN_OR_RETURN(
      std::unique_ptr<Buffer> buffer,
      device.allocate(std::max<uint64_t>(bytes.size(), KF_BUFFER_ALIGNMENT)));
  if (bytes.empty())
    return buffer;
  Status status = stream.upload(*buffer, 0, bytes);
  Status done = stream.synchronize();
  KF_RETURN_IF_ERROR(status);
  KF_RETURN_IF_ERROR(done);
  return buffer;
}

Status download(Stream &stream, Buffer &buffer, std::span<std::byte> bytes) {
  Status status = stream.download(buffer, 0, bytes);
  Status done = stream.synchronize();
  KF_RETURN_IF_ERROR(status);
  return done;
}

} // namespace

KernelRunner::KernelRunner(Device &device, const Executable &program,
                           const KernelCase &kernelCase,
                           const KernelRunnerOptions &options)
    : device(device), program(withoutBinary(program)), runCase(kernelCase),
      options(options) {}

Result<std::unique_ptr<KernelRunner>>
KernelRunner::create(Device &device, Device &reference,
                     const Executable &program, const KernelCase &kernelCase,
                     const KernelRunnerOptions &options) try {
  std::unique_ptr<KernelRunner> runner(
      new KernelRunner(device, program, kernelCase, options));
  const std::string where = "kernel " + inQuotes(program.programName);
  Result<Scalars> scalars = kernelScalars(program, kernelCase);
  if (!scalars.ok())
    return scalars.status().in(where);
  runner->scalars = *scalars;
  runner->checkTokens =
      std::min(kernelCase.tokens,
               std::max(options.checkTokens, program.limits().tokens.least));
  runner->writesCaches = hasCacheWrites(program);
  // The CPU's products with blocks round their rows; matrix units of GPUs
  // multiply f16.
  const bool hasBlocks = hasBlockWeights(program);
  runner->tolerance.roundsRows = device.name() == "cpu" && hasBlocks;
  runner->tolerance.roundsBlocks = device.roundsBlocks() && hasBlocks;
  // Matrix units multiply queries, and weights of softmax, that are rounded to
  // 16 bits, where a step has many rows.
  if (device.name() == "cuda" && kernelCase.tokens > 16 &&
      !runner->writesCaches)
    for (const CacheSpec &cache : program.caches) {
      if (cache.type == DataType::BF16)
        runner->tolerance.scale = 500;
      else if (cache.type != DataType::F32)
        runner->tolerance.scale = 100;
    }
  // What matrix units cut off of sums adds up along K.
  if (device.name() == "cuda")
    runner->tolerance.scale =
        std::max(runner->tolerance.scale, longestRow(program) / 4096.0);
  runner->tolerance.roundsIntegers =
      std::ranges::any_of(program.outputs, [](const TensorSpec &output) {
        return output.type == DataType::I8;
      });
  KF_RETURN_IF_ERROR(runner->makeSource().in(where));
  Result<std::vector<HostTensor>> inputs =
      makeKernelInputs(program, kernelCase, *scalars);
  if (!inputs.ok())
    return inputs.status().in(where);
  runner->inputs = inputs.take();
  for (size_t i = 0; i < program.caches.size(); ++i) {
    Result<HostTensor> contents =
        makeCacheContents(program.caches[i], (*scalars)[KF_SCALAR_CACHE_PAGES],
                          kernelCase.seed + i);
    if (!contents.ok())
      return contents.status().in(where);
    runner->cacheContents.push_back(contents.take());
  }
  KF_RETURN_IF_ERROR(runner->runReference(reference, program).in(where));
  runner->weights.emplace(device, runner->source.get(), options.packing);
  KF_RETURN_IF_ERROR(runner->makeBuffers().in(where));
  return runner;
} catch (...) {
  return statusOfException();
}

Status KernelRunner::makeSource() {
  std::vector<DummyTensor> tensors;
  const std::set<std::string> rowFactors = rowFactorsOf(program);
  for (const WeightSpec &spec : program.weights)
    for (DummyTensor &tensor : tensorsOf(spec, rowFactors)) {
      auto same = std::ranges::find(tensors, tensor.name, &DummyTensor::name);
      if (same == tensors.end())
        tensors.push_back(std::move(tensor));
      else if (same->shape != tensor.shape || same->type != tensor.type)
        return Status::error("weight " + inQuotes(tensor.name) +
                             " is read in two shapes");
    }
  KF_ASSIGN_OR_RETURN(source, DummyWeights::create(tensors, runCase.seed));
  return Status();
}

KernelRunner::Scalars KernelRunner::scalarsFor(int64_t tokens) const {
  Scalars result = scalars;
  result[KF_SCALAR_N_TOKENS] = tokens;
  return result;
}

/// The reference is a device as well: its results are those of a runner with
/// its own buffers, which ends here.
Status KernelRunner::runReference(Device &reference,
                                  const Executable &referenceProgram) {
  KernelRunner runner(reference, referenceProgram, runCase, options);
  runner.scalars = scalars;
  runner.writesCaches = writesCaches;
  runner.inputs = inputs;
  runner.cacheContents = cacheContents;
  runner.weights.emplace(reference, source.get(), options.packing);
  KF_RETURN_IF_ERROR(runner.makeBuffers());
  KF_ASSIGN_OR_RETURN(std::unique_ptr<KernelVariant> variant,
                      runner.load(referenceProgram));
  KF_ASSIGN_OR_RETURN(expected, variant->run(checkTokens));
  return Status();
}

Status KernelRunner::makeBuffers() {
  KF_ASSIGN_OR_RETURN(stream, device.createStream());
  for (const HostTensor &input : inputs) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                        upload(device, *stream, input.bytes));
    inputBuffers.push_back(std::move(buffer));
  }
  for (const TensorSpec &output : program.outputs) {
    KF_ASSIGN_OR_RETURN(
        int64_t bytes,
        checkedByteCount(output.type, resolveShape(output.shape, scalars)));
    const uint64_t rounded = (uint64_t(bytes) + KF_BUFFER_ALIGNMENT) /
                             KF_BUFFER_ALIGNMENT * KF_BUFFER_ALIGNMENT;
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                        device.allocate(rounded));
    outputBuffers.push_back(std::move(buffer));
  }
  return Status();
}

Status KernelRunner::checkSame(const Executable &executable) const {
  if (executable.inputs != program.inputs ||
      executable.outputs != program.outputs)
    return Status::error("it takes or gives other tensors than the reference");
  if (!std::ranges::equal(program.caches, executable.caches, isSameCache))
    return Status::error("it reads other caches than the reference");
  if (!std::ranges::is_permutation(executable.weights, program.weights,
                                   isSameWeight))
    return Status::error("it reads other weights than the reference");
  return executable.limits().check(scalars);
}

Result<std::unique_ptr<KernelVariant>>
KernelRunner::load(const Executable &executable) try {
  KF_RETURN_IF_ERROR(
      checkSame(executable).in("program " + inQuotes(executable.programName)));
  KF_ASSIGN_OR_RETURN(std::unique_ptr<LoadedProgram> loaded,
                      device.load(executable));
  std::unique_ptr<KernelVariant> variant(
      new KernelVariant(*this, std::move(loaded)));
  if (executable.arenaBytes) {
    KF_ASSIGN_OR_RETURN(variant->arena, device.allocate(executable.arenaBytes));
  }
  // Products of bf16, in pairs or in tiles, round their rows.
  variant->tolerance = tolerance;
  variant->tolerance.roundsPairs =
      device.name() == "cpu" && multipliesBF16(executable);
  KF_RETURN_IF_ERROR(chooseCopies(executable));
  KF_RETURN_IF_ERROR(variant->instanceFor(0).status());
  return variant;
} catch (...) {
  return statusOfException();
}

Result<std::vector<Buffer *>>
KernelRunner::copiedBuffers(const Executable &executable) {
  KF_ASSIGN_OR_RETURN(std::vector<Buffer *> buffers,
                      weights->getAll(executable.weights));
  for (size_t i = 0; i < executable.caches.size(); ++i) {
    KF_ASSIGN_OR_RETURN(Buffer * cache, cacheBuffer(i, executable.caches[i]));
    buffers.push_back(cache);
  }
  return buffers;
}

/// Every variant of a kernel goes round as many: layouts differ in padding
/// alone.
Status KernelRunner::chooseCopies(const Executable &executable) {
  bytesOfRun = 0;
  KF_ASSIGN_OR_RETURN(const std::vector<Buffer *> buffers,
                      copiedBuffers(executable));
  for (Buffer *buffer : buffers)
    bytesOfRun += buffer->size();
  if (copyCount > 1 || options.rotateBytes == 0 || bytesOfRun == 0)
    return Status();
  KF_ASSIGN_OR_RETURN(DeviceMemory memory, device.memory());
  const uint64_t bytes = std::min(options.rotateBytes, memory.free / 4);
  copyCount = std::clamp<int64_t>(
      static_cast<int64_t>((bytes + bytesOfRun - 1) / bytesOfRun), 1,
      kMaxCopies);
  return Status();
}

Status KernelRunner::makeCopies(const Executable &executable) {
  KF_ASSIGN_OR_RETURN(const std::vector<Buffer *> buffers,
                      copiedBuffers(executable));
  for (int64_t copy = 1; copy < copyCount; ++copy)
    for (Buffer *buffer : buffers)
      KF_RETURN_IF_ERROR(copyOf(*buffer, copy).status());
  return Status();
}

Result<Buffer *> KernelRunner::cacheBuffer(size_t index,
                                           const CacheSpec &spec) {
  std::unique_ptr<Buffer> &slot = cacheBuffers[{index, spec.keyBlock}];
  if (slot)
    return slot.get();
  KF_ASSIGN_OR_RETURN(std::vector<std::byte> bytes,
                      layOutCache(spec, cacheContents[index]));
  KF_ASSIGN_OR_RETURN(slot, upload(device, *stream, bytes));
  return slot.get();
}

Result<Buffer *> KernelRunner::copyOf(Buffer &original, int64_t copy) {
  if (copy == 0)
    return &original;
  std::vector<std::unique_ptr<Buffer>> &copies = copiesOfBuffer[&original];
  copies.resize(std::max<size_t>(copies.size(), copyCount));
  std::unique_ptr<Buffer> &slot = copies[copy];
  if (slot)
    return slot.get();
  KF_ASSIGN_OR_RETURN(slot, device.allocate(original.size()));
  KF_RETURN_IF_ERROR(stream->copy(*slot, 0, original, 0, original.size()));
  KF_RETURN_IF_ERROR(stream->synchronize());
  bytesOfCopies += slot->size();
  return slot.get();
}

Result<BindingTable> KernelRunner::tableOf(const Executable &executable,
                                           Buffer *arena, int64_t copy) {
  BindingTable table;
  table.arena = arena;
  KF_ASSIGN_OR_RETURN(table.weights, weights->getAll(executable.weights));
  for (size_t i = 0; i < executable.caches.size(); ++i) {
    KF_ASSIGN_OR_RETURN(Buffer * cache, cacheBuffer(i, executable.caches[i]));
    table.caches.push_back(cache);
  }
  for (std::vector<Buffer *> *list : {&table.weights, &table.caches})
    for (Buffer *&buffer : *list) {
      KF_ASSIGN_OR_RETURN(buffer, copyOf(*buffer, copy));
    }
  for (const auto &buffer : inputBuffers)
    table.inputs.push_back(buffer.get());
  for (const auto &buffer : outputBuffers)
    table.outputs.push_back(buffer.get());
  return table;
}

Status KernelRunner::resetCaches(const Executable &executable) {
  if (!writesCaches)
    return Status();
  for (size_t i = 0; i < executable.caches.size(); ++i) {
    KF_ASSIGN_OR_RETURN(Buffer * buffer, cacheBuffer(i, executable.caches[i]));
    KF_ASSIGN_OR_RETURN(std::vector<std::byte> bytes,
                        layOutCache(executable.caches[i], cacheContents[i]));
    Status status = stream->upload(*buffer, 0, bytes);
    Status done = stream->synchronize();
    KF_RETURN_IF_ERROR(status);
    KF_RETURN_IF_ERROR(done);
  }
  return Status();
}

Result<std::vector<HostTensor>>
KernelRunner::results(const Executable &executable, const Scalars &sizes) {
  std::vector<HostTensor> found;
  for (size_t i = 0; i < executable.outputs.size(); ++i) {
    const TensorSpec &spec = executable.outputs[i];
    KF_ASSIGN_OR_RETURN(
        HostTensor tensor,
        HostTensor::zeros(spec.type, resolveShape(spec.shape, sizes)));
    if (!tensor.bytes.empty())
      KF_RETURN_IF_ERROR(download(*stream, *outputBuffers[i], tensor.bytes));
    found.push_back(std::move(tensor));
  }
  if (!writesCaches)
    return found;
  for (size_t i = 0; i < executable.caches.size(); ++i) {
    const CacheSpec &spec = executable.caches[i];
    KF_ASSIGN_OR_RETURN(Buffer * buffer, cacheBuffer(i, spec));
    const int64_t pages = sizes[KF_SCALAR_CACHE_PAGES];
    KF_ASSIGN_OR_RETURN(int64_t size, spec.bytes(pages));
    std::vector<std::byte> bytes(size);
    KF_RETURN_IF_ERROR(download(*stream, *buffer, bytes));
    KF_ASSIGN_OR_RETURN(HostTensor contents, readCache(spec, pages, bytes));
    found.push_back(std::move(contents));
  }
  return found;
}
