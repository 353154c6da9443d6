//===- ProgramRunner.cpp - One program, ready to run ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/ProgramRunner.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Shorten.h"
#include "runtime/core/Stopwatch.h"

#include <algorithm>

using namespace kf;

namespace {

/// Buffers for `specs`, those `outside` where it has them, else new ones, which
/// go to `owned`.
Result<std::vector<Buffer *>>
buffersFor(Device &device, std::span<const TensorSpec> specs,
           std::span<const int64_t> largest,
           const std::map<size_t, Buffer *> &outside,
           std::vector<std::unique_ptr<Buffer>> &owned) {
  std::vector<Buffer *> table;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (const auto found = outside.find(i); found != outside.end()) {
      table.push_back(found->second);
      continue;
    }
    KF_ASSIGN_OR_RETURN(
        int64_t bytes,
        checkedByteCount(specs[i].type, resolveShape(specs[i].shape, largest)));
    KF_ASSIGN_OR_RETURN(
        std::unique_ptr<Buffer> buffer,
        device.allocate(std::max<int64_t>(bytes, KF_BUFFER_ALIGNMENT)));
    table.push_back(buffer.get());
    owned.push_back(std::move(buffer));
  }
  return table;
}

using FoundSizes = std::array<std::optional<int64_t>, KF_SCALAR_COUNT>;

/// Checks `input` against `spec`, and takes from its shape what `found` has not
/// yet.
Status checkInput(const TensorSpec &spec, const HostTensor &input,
                  FoundSizes &found) {
  bool fits =
      input.type == spec.type && input.shape.size() == spec.shape.size();
  for (size_t i = 0; fits && i < spec.shape.size(); ++i)
    if (!isSizeExtent(spec.shape[i]))
      fits = input.shape[i] == spec.shape[i];
  if (!fits)
    return Status::error("is " + describe({input.type, input.shape}) +
                         ", but the program takes " + describe(spec));
  KF_ASSIGN_OR_RETURN(int64_t bytes, checkedByteCount(input.type, input.shape));
  if (input.bytes.size() != static_cast<uint64_t>(bytes))
    return Status::error("has " + std::to_string(input.bytes.size()) +
                         " bytes for the shape " +
                         describe({input.type, input.shape}));
  for (size_t i = 0; i < spec.shape.size(); ++i) {
    if (!isSizeExtent(spec.shape[i]))
      continue;
    std::optional<int64_t> &size = found[slotOfExtent(spec.shape[i])];
    if (size && *size != input.shape[i])
      return Status::error("has " + std::to_string(input.shape[i]) +
                           " rows where " + std::to_string(*size) +
                           " are expected");
    size = input.shape[i];
  }
  return Status();
}

/// ": 2x8xf32, 8xi32"; nothing for none.
/// Of a line at most: gradients have hundreds.
std::string listed(std::span<const TensorSpec> specs) {
  std::string text;
  for (const TensorSpec &spec : specs)
    text += (text.empty() ? ": " : ", ") + describe(spec);
  return shorten(text, 300);
}

} // namespace

StepSizes::StepSizes(int64_t tokens, std::initializer_list<int64_t> named) {
  assert(named.size() <= KF_NAMED_SIZE_COUNT && "more sizes than slots");
  scalars[KF_SCALAR_N_TOKENS] = tokens;
  std::ranges::copy(named, scalars.begin() + KF_SCALAR_NAMED_SIZES);
}

std::string kf::describe(const TensorSpec &spec) {
  std::string text;
  for (int64_t dim : spec.shape)
    text += (isSizeExtent(dim) ? "?" : std::to_string(dim)) + "x";
  return text + std::string(nameOf(spec.type));
}

Result<std::unique_ptr<ProgramRunner>>
ProgramRunner::create(const Executable &executable, Device &device,
                      WeightStore &weights, KVCache &cache) try {
  const std::string where = "program '" + executable.programName + "'";
  Result<std::unique_ptr<LoadedProgram>> loaded = device.load(executable);
  if (!loaded.ok())
    return loaded.status().in(where);
  KF_ASSIGN_OR_RETURN(std::unique_ptr<ProgramRunner> runner,
                      create(**loaded, device, weights, cache));
  runner->ownProgram = loaded.take();
  return runner;
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<ProgramRunner>>
ProgramRunner::create(LoadedProgram &loaded, Device &device,
                      WeightStore &weights, KVCache &cache, Stream *stream,
                      const OutsideBuffers &outside) try {
  std::unique_ptr<ProgramRunner> runner(
      new ProgramRunner(loaded, device, cache.pages()));
  runner->stream = stream;
  KF_RETURN_IF_ERROR(runner->prepare(weights, cache, outside)
                         .in("program '" + loaded.program().programName + "'"));
  return runner;
} catch (...) {
  return statusOfException();
}

Status ProgramRunner::prepare(WeightStore &weights, KVCache &cache,
                              const OutsideBuffers &outside) {
  BindingTable table;
  KF_ASSIGN_OR_RETURN(table.weights, weights.getAll(executable.weights));
  for (size_t i = 0; i < executable.caches.size(); ++i) {
    KF_ASSIGN_OR_RETURN(Buffer * buffer, cache.get(i, executable.caches[i]));
    table.caches.push_back(buffer);
  }
  if (executable.arenaBytes) {
    KF_ASSIGN_OR_RETURN(arena, device.allocateArena(executable));
    table.arena = arena.get();
  }
  const auto largest = executable.largestSizes();
  KF_ASSIGN_OR_RETURN(table.inputs, buffersFor(device, executable.inputs,
                                               largest, outside.inputs, owned));
  KF_ASSIGN_OR_RETURN(
      table.outputs,
      buffersFor(device, executable.outputs, largest, outside.outputs, owned));
  KF_ASSIGN_OR_RETURN(instance, loaded.bind(table));
  if (!stream) {
    KF_ASSIGN_OR_RETURN(ownStream, device.createStream());
    stream = ownStream.get();
  }
  return Status();
}

uint64_t ProgramRunner::ioBytes() const {
  uint64_t total = 0;
  for (const auto &buffer : owned)
    total += buffer->size();
  return total;
}

Result<StepSizes> ProgramRunner::sizesOf(std::span<const HostTensor> values,
                                         std::optional<int64_t> nTokens) const {
  if (values.size() != executable.inputs.size())
    return Status::error(std::to_string(values.size()) +
                         " inputs are given, but the program takes " +
                         std::to_string(executable.inputs.size()) +
                         listed(executable.inputs));
  FoundSizes found;
  found[KF_SCALAR_N_TOKENS] = nTokens;
  for (size_t i = 0; i < values.size(); ++i)
    if (Status status = checkInput(executable.inputs[i], values[i], found);
        !status)
      return Status::error("input " + std::to_string(i) + " " +
                           status.message());
  StepSizes sizes(found[KF_SCALAR_N_TOKENS].value_or(1));
  for (size_t i = 0; i < executable.namedSizes.size(); ++i) {
    const std::optional<int64_t> &size = found[KF_SCALAR_NAMED_SIZES + i];
    sizes.scalars[KF_SCALAR_NAMED_SIZES + i] =
        size.value_or(executable.namedSizes[i].least);
  }
  KF_RETURN_IF_ERROR(checkSizes(sizes));
  return sizes;
}

Result<std::vector<HostTensor>>
ProgramRunner::run(std::span<const HostTensor> values,
                   std::optional<int64_t> nTokens) try {
  KF_ASSIGN_OR_RETURN(StepSizes sizes, sizesOf(values, nTokens));
  for (size_t i = 0; i < values.size(); ++i)
    KF_RETURN_IF_ERROR(
        write(i, values[i].bytes.data(), values[i].bytes.size()));
  KF_RETURN_IF_ERROR(execute(sizes));
  std::vector<HostTensor> results;
  for (const TensorSpec &spec : executable.outputs) {
    KF_ASSIGN_OR_RETURN(
        HostTensor result,
        HostTensor::zeros(spec.type, resolveShape(spec.shape, sizes.scalars)));
    results.push_back(std::move(result));
  }
  Status status;
  for (size_t i = 0; status.ok() && i < results.size(); ++i)
    status = stream->download(output(i), 0, std::span(results[i].bytes));
  // In any case: what was enqueued writes to `results`.
  Status done = stream->synchronize();
  KF_RETURN_IF_ERROR(status);
  KF_RETURN_IF_ERROR(done);
  return results;
} catch (...) {
  return statusOfException();
}

void ProgramRunner::setProfile(Profile *newProfile) {
  profile = newProfile;
  watched.clear();
  if (!profile)
    return;
  for (const DispatchSpec &dispatch : executable.dispatches) {
    const KernelSpec *kernel = executable.kernelOf(dispatch);
    if (!kernel || !kernel->work || !kernel->work->keys)
      continue;
    const KeyWork &keys = *kernel->work->keys;
    for (uint32_t operand : {keys.positions, keys.sequences}) {
      const kf_binding &binding = dispatch.bindings[operand];
      if (binding.kind == KF_BINDING_INPUT &&
          executable.inputs[binding.index].type == DataType::I32)
        watched[binding.index];
    }
  }
}

Status ProgramRunner::write(size_t index, uint64_t offset, const void *data,
                            uint64_t bytes) {
  assert(index < executable.inputs.size() && "no such input");
  const std::span source(static_cast<const std::byte *>(data), bytes);
  KF_RETURN_IF_ERROR(stream->upload(input(index), offset, source));
  if (bytes > Stream::smallUpload)
    KF_RETURN_IF_ERROR(stream->synchronize());
  // In the buffer, as the upload has checked.
  if (const auto held = watched.find(static_cast<uint32_t>(index));
      held != watched.end()) {
    std::vector<int32_t> &values = held->second;
    const uint64_t end = offset + bytes;
    values.resize(std::max<size_t>(
        values.size(), end / sizeof(int32_t) + (end % sizeof(int32_t) != 0)));
    std::ranges::copy(
        source,
        std::as_writable_bytes(std::span(values)).subspan(offset).begin());
  }
  return Status();
}

Status ProgramRunner::copyInput(size_t index, uint64_t offset,
                                const ProgramRunner &from, size_t output,
                                uint64_t outputOffset, uint64_t bytes) {
  assert(index < executable.inputs.size() &&
         output < from.executable.outputs.size() && "no such input or output");
  assert(from.stream == stream && "nothing orders the two");
  return stream->copy(input(index), offset, from.output(output), outputOffset,
                      bytes);
}

Status ProgramRunner::fetch(size_t index, Buffer &target, uint64_t bytes) {
  assert(index < executable.outputs.size() && "no such output");
  return stream->copy(target, 0, output(index), 0, bytes);
}

Status ProgramRunner::checkSizes(const StepSizes &sizes) const {
  return executable.limits()
      .check(sizes.scalars)
      .in("program '" + executable.programName + "'");
}

Status ProgramRunner::execute(const StepSizes &sizes, CancelFlag cancelled) {
  if (isCancelled(cancelled))
    return Status::cancelled();
  if (profile) {
    std::array<int64_t, KF_SCALAR_COUNT> scalars = sizes.scalars;
    scalars[KF_SCALAR_CACHE_PAGES] = cachePages;
    return executeProfiled(scalars, cancelled);
  }
  KF_RETURN_IF_ERROR(start(sizes));
  return stream->synchronize(cancelled);
}

Status ProgramRunner::start(const StepSizes &sizes) {
  assert(!profile && "who measures waits");
  std::array<int64_t, KF_SCALAR_COUNT> scalars = sizes.scalars;
  scalars[KF_SCALAR_CACHE_PAGES] = cachePages;
  return stream->enqueue(*instance, scalars);
}

Status ProgramRunner::executeProfiled(std::span<const int64_t> scalars,
                                      CancelFlag cancelled) try {
  DispatchTimes times;
  const auto begin = std::chrono::steady_clock::now();
  const Stopwatch watch;
  KF_RETURN_IF_ERROR(stream->enqueue(*instance, scalars, {.times = &times}));
  KF_RETURN_IF_ERROR(stream->synchronize(cancelled));
  const double seconds = watch.seconds();
  std::map<uint32_t, std::span<const int32_t>> held;
  for (const auto &[index, values] : watched) {
    const TensorSpec &spec = executable.inputs[index];
    KF_ASSIGN_OR_RETURN(
        const int64_t bytes,
        checkedByteCount(spec.type, resolveShape(spec.shape, scalars)));
    const size_t rows = static_cast<size_t>(bytes) / sizeof(int32_t);
    if (values.size() >= rows)
      held[index] = std::span(values).first(rows);
  }
  profile->add(executable, {scalars, held, times, begin, seconds});
  return Status();
} catch (...) {
  return statusOfException();
}

Result<const void *> ProgramRunner::read(size_t index, uint64_t offset,
                                         uint64_t bytes) {
  assert(index < executable.outputs.size() && "no such output");
  Buffer &buffer = output(index);
  assert(offset <= buffer.size() && bytes <= buffer.size() - offset &&
         "outside the output");
  if (void *memory = buffer.hostPointer())
    return static_cast<const std::byte *>(memory) + offset;
  staging.resize(bytes);
  KF_RETURN_IF_ERROR(stream->download(buffer, offset, std::span(staging)));
  KF_RETURN_IF_ERROR(stream->synchronize());
  return staging.data();
}
