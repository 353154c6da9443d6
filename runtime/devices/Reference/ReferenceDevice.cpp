//===- ReferenceDevice.cpp - Programs run by the reference ops -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceDevice.h"

#include "runtime/core/Json.h"
#include "runtime/devices/HostDevice.h"
#include "runtime/devices/Reference/KernelInterpreter.h"

#include <chrono>
#include <new>

namespace kf {
namespace {

using reference::BoundMemory;
using reference::KernelInterpreter;
using reference::ValueType;

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

class ReferenceInstance final : public HostInstance {
public:
  ReferenceInstance(const Executable &program, const BindingTable &table,
                    const std::vector<KernelInterpreter> &kernels)
      : HostInstance(program, table), kernels(kernels) {}

  /// Finds the memory of every binding.
  void bind();
  Status run(std::span<const int64_t> scalars, CancelFlag cancelled,
             DispatchTimes *times) override;

private:
  Status collect(const CollectiveSpec &collective,
                 std::span<const BoundMemory> bindings,
                 std::span<const int64_t> scalars);

  const std::vector<KernelInterpreter> &kernels; ///< the program's
  std::vector<std::vector<BoundMemory>> bound;   ///< by dispatch, then binding
  std::vector<std::byte> staging;                ///< of collectives
};

class ReferenceProgram final : public LoadedProgram {
public:
  static Result<std::unique_ptr<LoadedProgram>>
  load(const Executable &executable);

private:
  using LoadedProgram::LoadedProgram;
  Result<std::unique_ptr<Instance>> doBind(const BindingTable &table) override;

  std::vector<KernelInterpreter> kernels;
};

Result<std::unique_ptr<LoadedProgram>>
ReferenceProgram::load(const Executable &executable) {
  std::unique_ptr<ReferenceProgram> program(new ReferenceProgram(executable));
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
    if (dispatch.collective)
      continue;
    KF_RETURN_IF_ERROR(
        checkDispatch(dispatch, program->kernels[dispatch.kernel], executable)
            .in("dispatch " + std::to_string(i)));
  }
  return std::unique_ptr<LoadedProgram>(std::move(program));
}

Result<std::unique_ptr<Instance>>
ReferenceProgram::doBind(const BindingTable &table) {
  auto instance =
      std::make_unique<ReferenceInstance>(program(), table, kernels);
  instance->bind();
  return std::unique_ptr<Instance>(std::move(instance));
}

void ReferenceInstance::bind() {
  for (const DispatchSpec &dispatch : program().dispatches) {
    std::vector<BoundMemory> &memory = bound.emplace_back();
    for (const kf_binding &binding : dispatch.bindings) {
      HostBuffer &buffer = HostBuffer::of(*bufferOf(buffers(), binding));
      if (binding.kind == KF_BINDING_CACHE) // the offset is a layer
        memory.push_back({buffer.data(), buffer.size(),
                          static_cast<int64_t>(binding.offset)});
      else
        memory.push_back(
            {buffer.data() + binding.offset, buffer.size() - binding.offset});
    }
  }
}

Status ReferenceInstance::collect(const CollectiveSpec &collective,
                                  std::span<const BoundMemory> bindings,
                                  std::span<const int64_t> scalars) {
  std::vector<std::byte *> memory;
  for (const BoundMemory &binding : bindings)
    memory.push_back(binding.data);
  return runCollective(*device()->group(), collective, scalars, memory,
                       staging);
}

Status ReferenceInstance::run(std::span<const int64_t> scalars,
                              CancelFlag cancelled, DispatchTimes *times) try {
  using Clock = std::chrono::steady_clock;
  if (times)
    times->clear();
  const Clock::time_point start = Clock::now();
  auto since = [](Clock::time_point from, Clock::time_point to) {
    return static_cast<uint64_t>(std::chrono::nanoseconds(to - from).count());
  };
  for (size_t i = 0; i < bound.size(); ++i) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    const DispatchSpec &dispatch = program().dispatches[i];
    const Clock::time_point begin = Clock::now();
    if (dispatch.collective)
      KF_RETURN_IF_ERROR(collect(*dispatch.collective, bound[i], scalars));
    else
      KF_RETURN_IF_ERROR(kernels[dispatch.kernel].run(bound[i], scalars));
    if (times)
      times->push_back({program().nameOf(dispatch), since(begin, Clock::now()),
                        since(start, begin)});
  }
  return Status();
} catch (const std::bad_alloc &) {
  return Status::error("no memory for a step of " +
                           std::to_string(scalars[KF_SCALAR_N_TOKENS]) +
                           " tokens",
                       StatusCode::OutOfMemory);
}

class ReferenceDevice final : public HostDevice {
public:
  std::string name() const override { return "reference"; }
  std::string description() const override {
    return "interpreter of plain C++ functions, f32, one thread";
  }

private:
  Result<std::unique_ptr<LoadedProgram>>
  doLoad(const Executable &executable) override try {
    return ReferenceProgram::load(executable);
  } catch (const std::bad_alloc &) {
    return Status::error("no memory to load the program '" +
                             executable.programName + "'",
                         StatusCode::OutOfMemory);
  }
};

} // namespace

std::unique_ptr<Device> createReferenceDevice() {
  return std::make_unique<ReferenceDevice>();
}

} // namespace kf
