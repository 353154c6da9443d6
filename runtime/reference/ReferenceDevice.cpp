//===- ReferenceDevice.cpp - Programs run by the reference ops -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/reference/ReferenceDevice.h"

#include "runtime/AlignedBuffer.h"
#include "runtime/Exceptions.h"
#include "runtime/io/Json.h"
#include "runtime/reference/KernelInterpreter.h"

#include <cstring>
#include <new>

namespace kf {
namespace {

using reference::BoundMemory;
using reference::KernelInterpreter;
using reference::ValueType;

/// Host memory, owned or wrapped.
class HostBuffer : public Buffer {
public:
  explicit HostBuffer(AlignedBuffer memory)
      : Buffer(memory.size()), memory(std::move(memory)) {
    base = this->memory.data();
  }
  HostBuffer(const void *data, uint64_t bytes)
      : Buffer(bytes), base(static_cast<const std::byte *>(data)) {}

  void *hostPointer() override { return const_cast<std::byte *>(base); }
  bool isWrapped() const { return memory.data() == nullptr && size() > 0; }

  /// Bytes [offset, offset + count); an error if they are not all there.
  Result<std::byte *> range(uint64_t offset, uint64_t count) {
    if (offset > size() || count > size() - offset)
      return Status::error("bytes " + std::to_string(offset) + " to " +
                           std::to_string(offset) + " + " +
                           std::to_string(count) + " are not in a buffer of " +
                           std::to_string(size()));
    return const_cast<std::byte *>(base) + offset;
  }

private:
  AlignedBuffer memory; ///< empty where the memory is wrapped
  const std::byte *base;
};

Result<HostBuffer *> asHostBuffer(Buffer *buffer, const std::string &what) {
  if (!buffer)
    return Status::error(what + " has no buffer");
  HostBuffer *host = dynamic_cast<HostBuffer *>(buffer);
  if (!host)
    return Status::error(what + " is a buffer of another device");
  return host;
}

/// "weight 3".
std::string describe(const kf_binding &binding) {
  constexpr const char *kinds[] = {"arena", "weight", "cache", "input",
                                   "output"};
  std::string kind = kinds[binding.kind];
  return binding.kind == KF_BINDING_ARENA
             ? kind
             : kind + " " + std::to_string(binding.index);
}

/// The cache type that a kernel expects is that of some layers of `cache`, from
/// the one on that the binding names.
bool hasLayers(const CacheSpec &cache, const kf_binding &binding,
               const CacheSpec &expected) {
  CacheSpec part = cache;
  part.layers = expected.layers;
  return part == expected && expected.layers <= cache.layers &&
         binding.offset <=
             static_cast<uint64_t>(cache.layers - expected.layers);
}

/// A dispatch's bindings fit its kernel, as far as is known before it is bound.
Status checkDispatch(const DispatchSpec &dispatch,
                     const KernelInterpreter &kernel,
                     const Executable &executable) {
  size_t expected = kernel.argumentCount() + kernel.resultCount();
  if (dispatch.bindings.size() != expected)
    return Status::error("it has " + std::to_string(dispatch.bindings.size()) +
                         " bindings; kernel '" + kernel.name() + "' has " +
                         std::to_string(expected) + " arguments and results");
  for (size_t i = 0; i < expected; ++i) {
    const kf_binding &binding = dispatch.bindings[i];
    bool isArgument = i < kernel.argumentCount();
    const ValueType *type = isArgument ? &kernel.argumentType(i) : nullptr;
    bool wantsCache = type && type->cache;
    if (wantsCache != (binding.kind == KF_BINDING_CACHE))
      return Status::error("binding " + std::to_string(i) +
                           (wantsCache ? " is not" : " is") + " a cache");
    if (wantsCache &&
        !hasLayers(executable.caches[binding.index], binding, *type->cache))
      return Status::error(describe(binding) +
                           " does not hold the cache that the kernel expects");
    if (!isArgument &&
        (binding.kind == KF_BINDING_WEIGHT || binding.kind == KF_BINDING_INPUT))
      return Status::error("it writes to " + describe(binding));
  }
  return Status();
}

class ReferenceProgram : public LoadedProgram {
public:
  static Result<std::unique_ptr<LoadedProgram>>
  load(const Executable &executable);

  Status bind(const BindingTable &table) override;
  Status run(std::span<const int64_t> scalars, CancelFlag cancelled) override;

private:
  Result<BoundMemory> find(const BindingTable &table,
                           const kf_binding &binding) const;

  std::vector<KernelInterpreter> kernels;
  std::vector<DispatchSpec> dispatches;
  StepLimits limits;
  bool isBound = false;
  std::vector<std::vector<BoundMemory>> bound; ///< by dispatch, then binding
};

Result<std::unique_ptr<LoadedProgram>>
ReferenceProgram::load(const Executable &executable) {
  KF_RETURN_IF_ERROR(executable.verify());
  auto program = std::make_unique<ReferenceProgram>();
  Result<JsonDocument> parsed = parseJson(executable.binary);
  if (!parsed)
    return parsed.status().in("kernel code");
  const nlohmann::json *code = &**parsed;
  if (!code->is_array() || code->size() != executable.kernels.size())
    return Status::error("kernel code is not an array of " +
                         std::to_string(executable.kernels.size()) +
                         " kernels");
  for (size_t i = 0; i < code->size(); ++i) {
    KF_ASSIGN_OR_RETURN(KernelInterpreter kernel,
                        KernelInterpreter::parse((*code)[i]));
    if (kernel.name() != executable.kernels[i].name)
      return Status::error("kernel code has '" + kernel.name() +
                           "' where the executable has '" +
                           executable.kernels[i].name + "'");
    program->kernels.push_back(std::move(kernel));
  }
  for (size_t i = 0; i < executable.dispatches.size(); ++i) {
    const DispatchSpec &dispatch = executable.dispatches[i];
    KF_RETURN_IF_ERROR(
        checkDispatch(dispatch, program->kernels[dispatch.kernel], executable)
            .in("dispatch " + std::to_string(i)));
  }
  program->dispatches = executable.dispatches;
  program->limits = executable.limits();
  return std::unique_ptr<LoadedProgram>(std::move(program));
}

Result<BoundMemory> ReferenceProgram::find(const BindingTable &table,
                                           const kf_binding &binding) const {
  Buffer *buffer = table.arena;
  if (binding.kind != KF_BINDING_ARENA) {
    const std::vector<Buffer *> &buffers =
        binding.kind == KF_BINDING_WEIGHT  ? table.weights
        : binding.kind == KF_BINDING_CACHE ? table.caches
        : binding.kind == KF_BINDING_INPUT ? table.inputs
                                           : table.outputs;
    buffer = binding.index < buffers.size() ? buffers[binding.index] : nullptr;
  }
  std::string what = describe(binding);
  KF_ASSIGN_OR_RETURN(HostBuffer * host, asHostBuffer(buffer, what));
  bool isReadOnly =
      binding.kind == KF_BINDING_WEIGHT || binding.kind == KF_BINDING_INPUT;
  if (host->isWrapped() && !isReadOnly)
    return Status::error(what + " is written to, but wraps memory of the host");
  if (binding.kind == KF_BINDING_CACHE) // the offset is a layer
    return BoundMemory{static_cast<std::byte *>(host->hostPointer()),
                       host->size(), static_cast<int64_t>(binding.offset)};
  Result<std::byte *> data = host->range(binding.offset, 0);
  if (!data)
    return data.status().in(what);
  return BoundMemory{*data, host->size() - binding.offset};
}

Status ReferenceProgram::bind(const BindingTable &table) try {
  isBound = false;
  bound.clear();
  for (const DispatchSpec &dispatch : dispatches) {
    std::vector<BoundMemory> &memory = bound.emplace_back();
    for (const kf_binding &binding : dispatch.bindings) {
      Result<BoundMemory> found = find(table, binding);
      if (!found)
        return found.status();
      memory.push_back(*found);
    }
  }
  isBound = true;
  return Status();
} catch (...) {
  return statusOfException();
}

Status ReferenceProgram::run(std::span<const int64_t> scalars,
                             CancelFlag cancelled) {
  if (!isBound)
    return Status::error("the program runs before its buffers are bound");
  if (scalars.size() < KF_SCALAR_COUNT)
    return Status::error("a step has " + std::to_string(scalars.size()) +
                         " scalars of " + std::to_string(KF_SCALAR_COUNT));
  KF_RETURN_IF_ERROR(limits.check(scalars));
  try {
    for (size_t i = 0; i < dispatches.size(); ++i) {
      if (isCancelled(cancelled))
        return Status::cancelled();
      KF_RETURN_IF_ERROR(kernels[dispatches[i].kernel].run(bound[i], scalars));
    }
  } catch (const std::bad_alloc &) {
    return Status::error("no memory for a step of " +
                         std::to_string(scalars[KF_SCALAR_N_TOKENS]) +
                         " tokens");
  }
  return Status();
}

class ReferenceDevice : public Device {
public:
  std::string name() const override { return "reference"; }
  std::string description() const override {
    return "interpreter of plain C++ functions, f32, one thread";
  }

  Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) override try {
    KF_ASSIGN_OR_RETURN(AlignedBuffer memory, AlignedBuffer::allocate(bytes));
    return std::unique_ptr<Buffer>(new HostBuffer(std::move(memory)));
  } catch (...) {
    return statusOfException();
  }

  Result<std::unique_ptr<Buffer>> wrap(const void *data,
                                       uint64_t bytes) override try {
    if (!data && bytes > 0)
      return Status::error("no memory to wrap");
    return std::unique_ptr<Buffer>(new HostBuffer(data, bytes));
  } catch (...) {
    return statusOfException();
  }

  Status write(Buffer &dst, uint64_t offset, const void *src,
               uint64_t bytes) override {
    Result<HostBuffer *> host = asHostBuffer(&dst, "the destination");
    if (!host)
      return host.status();
    if ((*host)->isWrapped())
      return Status::error("a buffer that wraps memory of the host cannot be "
                           "written to");
    Result<std::byte *> data = (*host)->range(offset, bytes);
    if (data && bytes > 0)
      std::memcpy(*data, src, bytes);
    return data.status();
  }

  Status read(Buffer &src, uint64_t offset, void *dst,
              uint64_t bytes) override {
    Result<HostBuffer *> host = asHostBuffer(&src, "the source");
    if (!host)
      return host.status();
    Result<std::byte *> data = (*host)->range(offset, bytes);
    if (data && bytes > 0)
      std::memcpy(dst, *data, bytes);
    return data.status();
  }

  Result<std::unique_ptr<LoadedProgram>>
  load(const Executable &executable) override {
    if (executable.target != name())
      return Status::error("an executable for target '" + executable.target +
                           "' does not run on the reference device; compile "
                           "it for 'reference'");
    try {
      return ReferenceProgram::load(executable);
    } catch (const std::bad_alloc &) {
      return Status::error("no memory to load the program '" +
                           executable.programName + "'");
    }
  }
};

} // namespace

std::unique_ptr<Device> createReferenceDevice() {
  return std::make_unique<ReferenceDevice>();
}

} // namespace kf
