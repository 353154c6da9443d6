//===- ProgramRunner.cpp - One program, ready to run ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/ProgramRunner.h"

#include "runtime/Exceptions.h"

#include <algorithm>

using namespace kf;

namespace {

/// Bytes of a tensor of `nTokens` rows.
Result<int64_t> bytesOf(const TensorSpec &spec, int64_t nTokens) {
  std::vector<int64_t> shape = spec.shape;
  std::ranges::replace(shape, -1, nTokens);
  return checkedByteCount(spec.type, shape);
}

Status allocateAll(Device &device, std::span<const TensorSpec> specs,
                   int64_t maxTokens,
                   std::vector<std::unique_ptr<Buffer>> &buffers,
                   std::vector<Buffer *> &table) {
  for (const TensorSpec &spec : specs) {
    KF_ASSIGN_OR_RETURN(int64_t bytes, bytesOf(spec, maxTokens));
    KF_ASSIGN_OR_RETURN(
        std::unique_ptr<Buffer> buffer,
        device.allocate(std::max<int64_t>(bytes, KF_BUFFER_ALIGNMENT)));
    table.push_back(buffer.get());
    buffers.push_back(std::move(buffer));
  }
  return Status();
}

/// Checks `input` against `spec` but for n_tokens, which is found instead: -1
/// where the shape does not say.
Result<int64_t> checkInput(const TensorSpec &spec, const HostTensor &input) {
  bool fits =
      input.type == spec.type && input.shape.size() == spec.shape.size();
  int64_t tokens = -1;
  for (size_t i = 0; fits && i < spec.shape.size(); ++i) {
    if (spec.shape[i] != -1)
      fits = input.shape[i] == spec.shape[i];
    else if (tokens == -1)
      tokens = input.shape[i];
    else
      fits = input.shape[i] == tokens;
  }
  if (!fits)
    return Status::error("is " + describe({input.type, input.shape}) +
                         ", but the program takes " + describe(spec));
  KF_ASSIGN_OR_RETURN(int64_t bytes, checkedByteCount(input.type, input.shape));
  if (input.bytes.size() != static_cast<uint64_t>(bytes))
    return Status::error("has " + std::to_string(input.bytes.size()) +
                         " bytes for the shape " +
                         describe({input.type, input.shape}));
  return tokens;
}

} // namespace

std::string kf::describe(const TensorSpec &spec) {
  std::string text;
  for (int64_t dim : spec.shape)
    text += (dim == -1 ? "?" : std::to_string(dim)) + "x";
  return text + std::string(nameOf(spec.type));
}

Result<std::unique_ptr<ProgramRunner>>
ProgramRunner::create(Executable executable, Device &device,
                      WeightStore &weights, KVCache &cache) try {
  std::string name = executable.programName;
  std::unique_ptr<ProgramRunner> runner(
      new ProgramRunner(std::move(executable), device, cache.capacity()));
  KF_RETURN_IF_ERROR(
      runner->prepare(weights, cache).in("program '" + name + "'"));
  return runner;
} catch (...) {
  return statusOfException();
}

Status ProgramRunner::prepare(WeightStore &weights, KVCache &cache) {
  KF_RETURN_IF_ERROR(executable.verify());
  KF_ASSIGN_OR_RETURN(loaded, device.load(executable));
  BindingTable table;
  for (const WeightSpec &spec : executable.weights) {
    KF_ASSIGN_OR_RETURN(Buffer * buffer, weights.get(spec));
    table.weights.push_back(buffer);
  }
  for (size_t i = 0; i < executable.caches.size(); ++i) {
    KF_ASSIGN_OR_RETURN(Buffer * buffer, cache.get(i, executable.caches[i]));
    table.caches.push_back(buffer);
  }
  if (executable.arenaBytes) {
    KF_ASSIGN_OR_RETURN(arena, device.allocate(executable.arenaBytes));
    table.arena = arena.get();
  }
  KF_RETURN_IF_ERROR(allocateAll(device, executable.inputs,
                                 executable.maxTokens, inputs, table.inputs));
  KF_RETURN_IF_ERROR(allocateAll(device, executable.outputs,
                                 executable.maxTokens, outputs, table.outputs));
  return loaded->bind(table);
}

uint64_t ProgramRunner::ioBytes() const {
  uint64_t total = 0;
  for (const auto &buffer : inputs)
    total += buffer->size();
  for (const auto &buffer : outputs)
    total += buffer->size();
  return total;
}

Result<int64_t>
ProgramRunner::countTokens(std::span<const HostTensor> values,
                           std::optional<int64_t> nTokens) const {
  if (values.size() != executable.inputs.size())
    return Status::error(std::to_string(values.size()) +
                         " inputs are given, but the program takes " +
                         std::to_string(executable.inputs.size()));
  std::optional<int64_t> found = nTokens;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string which = "input " + std::to_string(i);
    Result<int64_t> rows = checkInput(executable.inputs[i], values[i]);
    if (!rows.ok())
      return Status::error(which + " " + rows.message());
    if (*rows == -1)
      continue;
    if (found && *found != *rows)
      return Status::error(which + " has " + std::to_string(*rows) +
                           " rows where " + std::to_string(*found) +
                           " are expected");
    found = *rows;
  }
  KF_RETURN_IF_ERROR(checkTokens(found.value_or(1)));
  return found.value_or(1);
}

Result<std::vector<HostTensor>>
ProgramRunner::run(std::span<const HostTensor> values,
                   std::optional<int64_t> nTokens) try {
  KF_ASSIGN_OR_RETURN(int64_t tokens, countTokens(values, nTokens));
  for (size_t i = 0; i < values.size(); ++i)
    KF_RETURN_IF_ERROR(
        write(i, values[i].bytes.data(), values[i].bytes.size()));
  KF_RETURN_IF_ERROR(execute(tokens));
  std::vector<HostTensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorSpec &spec = executable.outputs[i];
    std::vector<int64_t> shape = spec.shape;
    std::ranges::replace(shape, -1, tokens);
    KF_ASSIGN_OR_RETURN(HostTensor result,
                        HostTensor::zeros(spec.type, std::move(shape)));
    KF_RETURN_IF_ERROR(
        device.read(*outputs[i], 0, result.bytes.data(), result.bytes.size()));
    results.push_back(std::move(result));
  }
  return results;
} catch (...) {
  return statusOfException();
}

Status ProgramRunner::write(size_t index, const void *data, uint64_t bytes) {
  assert(index < inputs.size() && "no such input");
  return device.write(*inputs[index], 0, data, bytes);
}

Status ProgramRunner::checkTokens(int64_t nTokens) const {
  if (nTokens >= executable.minTokens && nTokens <= executable.maxTokens)
    return Status();
  return Status::error("program '" + executable.programName + "' runs with " +
                       std::to_string(executable.minTokens) + " to " +
                       std::to_string(executable.maxTokens) + " rows, not " +
                       std::to_string(nTokens));
}

Status ProgramRunner::execute(int64_t nTokens, CancelFlag cancelled) {
  KF_RETURN_IF_ERROR(checkTokens(nTokens));
  if (isCancelled(cancelled))
    return Status::cancelled();
  std::array<int64_t, KF_SCALAR_COUNT> scalars = {};
  scalars[KF_SCALAR_N_TOKENS] = nTokens;
  scalars[KF_SCALAR_CACHE_CAPACITY] = cacheCapacity;
  return loaded->run(scalars, cancelled);
}

Result<const void *> ProgramRunner::read(size_t index, uint64_t offset,
                                         uint64_t bytes) {
  assert(index < outputs.size() && "no such output");
  Buffer &buffer = *outputs[index];
  assert(offset <= buffer.size() && bytes <= buffer.size() - offset &&
         "outside the output");
  if (void *memory = buffer.hostPointer())
    return static_cast<const std::byte *>(memory) + offset;
  staging.resize(bytes);
  KF_RETURN_IF_ERROR(device.read(buffer, offset, staging.data(), bytes));
  return staging.data();
}
