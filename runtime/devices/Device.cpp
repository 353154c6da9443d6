//===- Device.cpp - What every device checks ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Device.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>

using namespace kf;

namespace {

std::string numbered(const char *what, size_t index) {
  return std::string(what) + " " + std::to_string(index);
}

/// Checks one buffer that `owner`'s program is given.
Status checkBuffer(const Buffer *buffer, const Device *owner, uint64_t bytes,
                   bool isWritten) {
  if (!buffer)
    return Status::error("no buffer is bound");
  if (buffer->device() != owner)
    return Status::error("its buffer belongs to another device; allocate it "
                         "from the program's");
  if (buffer->size() < bytes)
    return Status::error("its buffer has " + std::to_string(buffer->size()) +
                         " bytes where " + std::to_string(bytes) +
                         " are needed");
  if (isWritten && buffer->isReadOnly())
    return Status::error("it is written to, but its buffer wraps memory of the "
                         "host");
  return Status();
}

Status checkCount(const char *what, const std::vector<Buffer *> &buffers,
                  size_t count) {
  if (buffers.size() == count)
    return Status();
  return Status::error(std::to_string(buffers.size()) + " " + what +
                       " buffers are bound where the program has " +
                       std::to_string(count));
}

/// Checks the buffers of one kind, of which the program has `count`, but for
/// their sizes.
Status checkBuffers(const char *what, const std::vector<Buffer *> &buffers,
                    size_t count, const Device *owner, bool isWritten) {
  KF_RETURN_IF_ERROR(checkCount(what, buffers, count));
  for (size_t i = 0; i < count; ++i)
    KF_RETURN_IF_ERROR(
        checkBuffer(buffers[i], owner, 0, isWritten).in(numbered(what, i)));
  return Status();
}

Status checkTable(const Executable &program, const BindingTable &table,
                  const Device *owner) {
  if (program.arenaBytes > 0)
    KF_RETURN_IF_ERROR(checkBuffer(table.arena, owner, program.arenaBytes, true)
                           .in("the arena"));
  KF_RETURN_IF_ERROR(
      checkCount("weight", table.weights, program.weights.size()));
  for (size_t i = 0; i < program.weights.size(); ++i) {
    KF_ASSIGN_OR_RETURN(int64_t bytes, program.weights[i].packedBytes());
    KF_RETURN_IF_ERROR(checkBuffer(table.weights[i], owner,
                                   static_cast<uint64_t>(bytes), false)
                           .in(numbered("weight", i)));
  }
  KF_RETURN_IF_ERROR(
      checkBuffers("cache", table.caches, program.caches.size(), owner, true));
  KF_RETURN_IF_ERROR(
      checkBuffers("input", table.inputs, program.inputs.size(), owner, false));
  return checkBuffers("output", table.outputs, program.outputs.size(), owner,
                      true);
}

/// Checks buffers of inputs or outputs against what a step's sizes need.
Status checkTensors(const char *what, const std::vector<TensorSpec> &specs,
                    const std::vector<Buffer *> &buffers,
                    std::span<const int64_t> scalars) {
  for (size_t i = 0; i < specs.size(); ++i) {
    KF_ASSIGN_OR_RETURN(
        int64_t bytes,
        checkedByteCount(specs[i].type, resolveShape(specs[i].shape, scalars)));
    if (buffers[i]->size() < static_cast<uint64_t>(bytes))
      return Status::error(
          numbered(what, i) + " needs " + std::to_string(bytes) +
          " bytes for " + std::to_string(scalars[KF_SCALAR_N_TOKENS]) +
          " tokens; its buffer has " + std::to_string(buffers[i]->size()));
  }
  return Status();
}

/// Scalars that fit the program and its buffers.
Status checkScalars(const Executable &program, const BindingTable &table,
                    std::span<const int64_t> scalars) {
  if (scalars.size() != KF_SCALAR_COUNT)
    return Status::error("a program takes " + std::to_string(KF_SCALAR_COUNT) +
                         " scalars, not " + std::to_string(scalars.size()));
  KF_RETURN_IF_ERROR(program.limits().check(scalars));
  const int64_t pages = scalars[KF_SCALAR_CACHE_PAGES];
  for (size_t i = 0; i < program.caches.size(); ++i) {
    KF_ASSIGN_OR_RETURN(int64_t bytes, program.caches[i].bytes(pages));
    if (table.caches[i]->size() < static_cast<uint64_t>(bytes))
      return Status::error(numbered("cache", i) + " needs " +
                           std::to_string(bytes) + " bytes for " +
                           std::to_string(pages) + " pages; its buffer has " +
                           std::to_string(table.caches[i]->size()));
  }
  KF_RETURN_IF_ERROR(
      checkTensors("input", program.inputs, table.inputs, scalars));
  KF_RETURN_IF_ERROR(
      checkTensors("output", program.outputs, table.outputs, scalars));
  for (size_t i = 0; i < program.dispatches.size(); ++i)
    KF_RETURN_IF_ERROR(gridOf(program.dispatches[i], scalars)
                           .status()
                           .in(numbered("dispatch", i)));
  return Status();
}

} // namespace

//===----------------------------------------------------------------------===//
// Bindings and grids
//===----------------------------------------------------------------------===//

std::string kf::describe(const kf_binding &binding) {
  constexpr const char *kinds[] = {"arena", "weight", "cache", "input",
                                   "output"};
  return binding.kind == KF_BINDING_ARENA
             ? kinds[binding.kind]
             : numbered(kinds[binding.kind], binding.index);
}

Buffer *kf::bufferOf(const BindingTable &table, const kf_binding &binding) {
  switch (binding.kind) {
  case KF_BINDING_WEIGHT:
    return table.weights[binding.index];
  case KF_BINDING_CACHE:
    return table.caches[binding.index];
  case KF_BINDING_INPUT:
    return table.inputs[binding.index];
  case KF_BINDING_OUTPUT:
    return table.outputs[binding.index];
  default:
    return table.arena;
  }
}

Result<std::array<int64_t, 3>> kf::gridOf(const DispatchSpec &dispatch,
                                          std::span<const int64_t> scalars) {
  std::array<int64_t, 3> grid{};
  int64_t total = 1;
  for (size_t i = 0; i < grid.size(); ++i) {
    const kf_grid_dim &dim = dispatch.grid[i];
    grid[i] = dim.value;
    if (dim.scalar >= 0) {
      const int64_t scalar = scalars[dim.scalar];
      if (scalar < 0)
        return Status::error("scalar " + std::to_string(dim.scalar) +
                             " of a grid is negative");
      grid[i] = scalar / dim.value + (scalar % dim.value != 0);
    }
    if (__builtin_mul_overflow(total, grid[i], &total))
      return Status::error("a grid has more workgroups than 63 bits can count");
  }
  return grid;
}

//===----------------------------------------------------------------------===//
// Programs and instances
//===----------------------------------------------------------------------===//

LoadedProgram::LoadedProgram(const Executable &source) : executable(source) {
  executable.binary = std::string(); // the device has what it needs of it
}

Result<std::unique_ptr<Instance>>
LoadedProgram::bind(const BindingTable &table) try {
  KF_RETURN_IF_ERROR(checkTable(executable, table, owner));
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Instance> instance, doBind(table));
  instance->owner = owner;
  return instance;
} catch (...) {
  return statusOfException();
}

/// From token to token, the scalars are mostly the same.
Status Instance::check(std::span<const int64_t> scalars) {
  if (!checked.empty() && std::ranges::equal(scalars, checked))
    return Status();
  KF_RETURN_IF_ERROR(checkScalars(executable, table, scalars));
  KF_RETURN_IF_ERROR(doCheck(scalars));
  checked.assign(scalars.begin(), scalars.end());
  return Status();
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

Status Event::synchronize(CancelFlag cancelled) {
  return catchExceptions([&] { return doSynchronize(cancelled); });
}

/// Checks that [offset, offset + bytes) lies in a buffer of this device.
Status Stream::checkRange(const Buffer &buffer, uint64_t offset,
                          uint64_t bytes) const {
  if (buffer.device() != owner)
    return Status::error("the buffer belongs to another device; allocate it "
                         "from the stream's");
  if (offset > buffer.size() || bytes > buffer.size() - offset)
    return Status::error(
        std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
        " reach past the end of a buffer of " + std::to_string(buffer.size()));
  return Status();
}

/// The same for one that is written to.
Status Stream::checkTarget(const Buffer &buffer, uint64_t offset,
                           uint64_t bytes) const {
  KF_RETURN_IF_ERROR(checkRange(buffer, offset, bytes));
  if (buffer.isReadOnly())
    return Status::error("a buffer that wraps memory of the host cannot be "
                         "written to");
  return Status();
}

Status Stream::upload(Buffer &target, uint64_t offset,
                      std::span<const std::byte> source) try {
  KF_RETURN_IF_ERROR(checkTarget(target, offset, source.size()));
  return source.empty() ? Status() : doUpload(target, offset, source);
} catch (...) {
  return statusOfException();
}

Status Stream::download(Buffer &source, uint64_t offset,
                        std::span<std::byte> target) try {
  KF_RETURN_IF_ERROR(checkRange(source, offset, target.size()));
  return target.empty() ? Status() : doDownload(source, offset, target);
} catch (...) {
  return statusOfException();
}

Status Stream::copy(Buffer &target, uint64_t targetOffset, Buffer &source,
                    uint64_t sourceOffset, uint64_t bytes) try {
  KF_RETURN_IF_ERROR(checkRange(source, sourceOffset, bytes));
  KF_RETURN_IF_ERROR(checkTarget(target, targetOffset, bytes));
  // The ranges lie within a buffer: no sum overflows.
  if (&target == &source && targetOffset < sourceOffset + bytes &&
      sourceOffset < targetOffset + bytes)
    return Status::error("a copy of " + std::to_string(bytes) +
                         " bytes from offset " + std::to_string(sourceOffset) +
                         " to " + std::to_string(targetOffset) +
                         " overlaps itself");
  return bytes == 0 ? Status()
                    : doCopy(target, targetOffset, source, sourceOffset, bytes);
} catch (...) {
  return statusOfException();
}

Status Stream::fill(Buffer &target, uint64_t offset, uint64_t bytes,
                    uint32_t pattern) try {
  KF_RETURN_IF_ERROR(checkTarget(target, offset, bytes));
  if (offset % sizeof(pattern) != 0 || bytes % sizeof(pattern) != 0)
    return Status::error("cannot fill " + std::to_string(bytes) +
                         " bytes at offset " + std::to_string(offset) +
                         ": both have to be multiples of 4");
  return bytes == 0 ? Status() : doFill(target, offset, bytes, pattern);
} catch (...) {
  return statusOfException();
}

Status Stream::record(Event &event) try {
  if (event.owner != owner)
    return Status::error("the event belongs to another device");
  return doRecord(event);
} catch (...) {
  return statusOfException();
}

Status Stream::wait(Event &event) try {
  if (event.owner != owner)
    return Status::error("the event belongs to another device");
  return doWait(event);
} catch (...) {
  return statusOfException();
}

Status Stream::enqueue(Instance &instance, std::span<const int64_t> scalars,
                       const EnqueueOptions &options) try {
  if (instance.device() != owner)
    return Status::error("the program '" + instance.program().programName +
                         "' was loaded by another device");
  const Status status = catchExceptions([&] {
    KF_RETURN_IF_ERROR(instance.check(scalars));
    return doEnqueue(instance, scalars, options);
  });
  // Other ranks may be on their way already.
  if (!status.ok() && instance.program().ranks > 1)
    owner->group()->abort(status.message());
  return status;
} catch (...) {
  return statusOfException();
}

Status Stream::synchronize(CancelFlag cancelled) {
  return catchExceptions([&] { return doSynchronize(cancelled); });
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

Result<DeviceMemory> Device::memory() const {
  return catchExceptions([&] { return doMemory(); });
}

Status Device::join(Group &group) {
  if (ranks)
    return Status::error("the device is a rank of a group already");
  KF_RETURN_IF_ERROR(doJoin(group));
  ranks = &group;
  return Status();
}

Status Device::doJoin(Group & /*group*/) {
  return Status::error("a model cannot be run by several ranks on '" + name() +
                           "' yet; use cpu, cuda or reference",
                       StatusCode::Unsupported);
}

Result<std::unique_ptr<Buffer>> Device::allocate(uint64_t bytes,
                                                 MemoryKind kind) try {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer, doAllocate(bytes, kind));
  buffer->owner = this;
  buffer->memoryKind = kind;
  return buffer;
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<Buffer>>
Device::allocateArena(const Executable &executable) try {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                      doAllocateArena(executable));
  buffer->owner = this;
  return buffer;
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<Buffer>>
Device::doAllocateArena(const Executable &executable) {
  return doAllocate(executable.arenaBytes, MemoryKind::Device);
}

Result<std::unique_ptr<Buffer>> Device::wrap(const void *data,
                                             uint64_t bytes) try {
  if (!data && bytes > 0)
    return Status::error("cannot wrap a null pointer");
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer, doWrap(data, bytes));
  buffer->owner = this;
  buffer->readOnly = true;
  return buffer;
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<Stream>> Device::createStream() try {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, doCreateStream());
  stream->owner = this;
  return stream;
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<Event>> Device::createEvent() try {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Event> event, doCreateEvent());
  event->owner = this;
  return event;
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<LoadedProgram>>
Device::load(const Executable &executable) try {
  if (executable.target != name())
    return Status::error("the program '" + executable.programName +
                         "' was compiled for '" + executable.target +
                         "', not for '" + name() + "'");
  KF_RETURN_IF_ERROR(executable.verify());
  if (const int64_t size = ranks ? ranks->size() : 1;
      executable.ranks > 1 && executable.ranks != size)
    return Status::error(
        "the program '" + executable.programName + "' was compiled for " +
        std::to_string(executable.ranks) + " ranks, and here " +
        (size == 1 ? "is one" : "are " + std::to_string(size)));
  KF_ASSIGN_OR_RETURN(std::unique_ptr<LoadedProgram> program,
                      doLoad(executable));
  program->owner = this;
  return program;
} catch (...) {
  return statusOfException();
}
