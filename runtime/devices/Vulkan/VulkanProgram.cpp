//===- VulkanProgram.cpp - Binding and running a program ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanProgram.h"

#include <algorithm>
#include <cstring>
#include <limits>

using namespace kf;

namespace {

std::string atDispatch(size_t index) {
  return "dispatch " + std::to_string(index);
}

/// "weight 3"; an arena has no number.
std::string describe(const kf_binding &binding) {
  constexpr const char *kinds[] = {"arena", "weight", "cache", "input",
                                   "output"};
  std::string kind = kinds[binding.kind];
  return binding.kind == KF_BINDING_ARENA
             ? kind
             : kind + " " + std::to_string(binding.index);
}

Status checkSize(Buffer *buffer, int64_t needed, const char *kind,
                 size_t index) {
  if (buffer && buffer->size() >= static_cast<uint64_t>(needed))
    return {};
  std::string what = std::string(kind) + " " + std::to_string(index) +
                     " needs a buffer of " + std::to_string(needed) + " bytes";
  return Status::error(buffer ? what + ", got " + std::to_string(buffer->size())
                              : what + ", none is bound");
}

/// Checks buffers of inputs or outputs against what a step's sizes need.
Status checkTensors(const std::vector<TensorSpec> &specs,
                    const std::vector<Buffer *> &buffers,
                    std::span<const int64_t> scalars, const char *kind) {
  for (size_t i = 0; i < specs.size(); ++i) {
    KF_ASSIGN_OR_RETURN(
        int64_t bytes,
        checkedByteCount(specs[i].type, resolveShape(specs[i].shape, scalars)));
    KF_RETURN_IF_ERROR(checkSize(buffers[i], bytes, kind, i));
  }
  return {};
}

} // namespace

Status VulkanProgram::bind(const BindingTable &table) {
  return context.finish(bindAll(table));
}

Status VulkanProgram::run(std::span<const int64_t> scalars,
                          CancelFlag /*cancelled*/) {
  // All dispatches are one submission.
  return context.finish(runAll(scalars));
}

Result<VulkanBuffer *> VulkanProgram::resolve(const BindingTable &table,
                                              const kf_binding &binding) const {
  auto at = [&](const std::vector<Buffer *> &list) -> Buffer * {
    return binding.index < list.size() ? list[binding.index] : nullptr;
  };
  Buffer *buffer = nullptr;
  switch (binding.kind) {
  case KF_BINDING_ARENA:
    buffer = table.arena;
    break;
  case KF_BINDING_WEIGHT:
    buffer = at(table.weights);
    break;
  case KF_BINDING_CACHE:
    buffer = at(table.caches);
    break;
  case KF_BINDING_INPUT:
    buffer = at(table.inputs);
    break;
  case KF_BINDING_OUTPUT:
    buffer = at(table.outputs);
    break;
  }
  if (!buffer)
    return Status::error("no buffer is bound for " + describe(binding));
  VulkanBuffer *mine = VulkanBuffer::of(context, buffer);
  if (!mine)
    return Status::error("the buffer for " + describe(binding) +
                         " belongs to another device: copy it");
  return mine;
}

Status VulkanProgram::bindAll(const BindingTable &table) {
  bound = false;
  prepared.clear();
  if (!context.idle())
    return Status::error("the Vulkan device has failed earlier: it hangs");
  if (program.arenaBytes > 0)
    KF_RETURN_IF_ERROR(checkSize(
        table.arena, static_cast<int64_t>(program.arenaBytes), "arena", 0));
  if (table.weights.size() < program.weights.size() ||
      table.caches.size() < program.caches.size() ||
      table.inputs.size() < program.inputs.size() ||
      table.outputs.size() < program.outputs.size())
    return Status::error("the binding table has fewer buffers than program '" +
                         program.programName + "'");
  for (size_t i = 0; i < program.weights.size(); ++i) {
    KF_ASSIGN_OR_RETURN(int64_t bytes, program.weights[i].packedBytes());
    KF_RETURN_IF_ERROR(checkSize(table.weights[i], bytes, "weight", i));
  }

  for (size_t i = 0; i < program.dispatches.size(); ++i)
    for (const kf_binding &binding : program.dispatches[i].bindings)
      if (Result<VulkanBuffer *> buffer = resolve(table, binding); !buffer)
        return buffer.status().in(atDispatch(i));
  boundTable = table;
  bound = true;
  return {};
}

Result<uint64_t> VulkanProgram::byteOffset(const kf_binding &binding,
                                           int64_t capacity) const {
  if (binding.kind == KF_BINDING_ARENA)
    return binding.offset;
  if (binding.kind != KF_BINDING_CACHE || binding.offset == 0)
    return uint64_t(0);
  const CacheSpec &cache = program.caches[binding.index];
  if (binding.offset >= static_cast<uint64_t>(cache.layers))
    return Status::error("there is no layer " + std::to_string(binding.offset) +
                         " in a cache of " + std::to_string(cache.layers));
  KF_ASSIGN_OR_RETURN(int64_t bytes, cache.bytes(capacity));
  // Layers are equal, so this is within `bytes`.
  uint64_t offset =
      static_cast<uint64_t>(bytes / cache.layers) * binding.offset;
  uint64_t alignment = context.limits().minStorageBufferOffsetAlignment;
  if (offset % alignment != 0)
    return Status::error("cache layer " + std::to_string(binding.offset) +
                         " begins at byte " + std::to_string(offset) +
                         ", not a multiple of " + std::to_string(alignment) +
                         " (minStorageBufferOffsetAlignment): use a larger "
                         "cache capacity");
  return offset;
}

Result<uint64_t> VulkanProgram::byteRange(const kf_binding &binding,
                                          int64_t capacity) const {
  std::string what = describe(binding);
  auto largestOf = [&](const TensorSpec &spec) {
    return checkedByteCount(spec.type,
                            resolveShape(spec.shape, program.largestSizes()));
  };
  int64_t bytes = 0; // that kernels may reach
  switch (binding.kind) {
  case KF_BINDING_ARENA:
    bytes = static_cast<int64_t>(program.arenaBytes - binding.offset);
    break;
  case KF_BINDING_WEIGHT: {
    const WeightSpec &weight = program.weights[binding.index];
    KF_ASSIGN_OR_RETURN(bytes, weight.packedBytes());
    what += " '" + weight.names.front() + "'";
    break;
  }
  case KF_BINDING_CACHE: {
    const CacheSpec &cache = program.caches[binding.index];
    KF_ASSIGN_OR_RETURN(bytes, cache.bytes(capacity));
    bytes /= cache.layers;
    what = "layer " + std::to_string(binding.offset) + " of " + what;
    break;
  }
  case KF_BINDING_INPUT: {
    KF_ASSIGN_OR_RETURN(bytes, largestOf(program.inputs[binding.index]));
    break;
  }
  case KF_BINDING_OUTPUT: {
    KF_ASSIGN_OR_RETURN(bytes, largestOf(program.outputs[binding.index]));
    break;
  }
  }
  uint64_t most = context.limits().maxStorageBufferRange;
  // Kernels read whole words.
  if (static_cast<uint64_t>(bytes) > most / 4 * 4)
    return Status::error(what + " has " + std::to_string(bytes) + " bytes, " +
                         context.deviceName() + " binds at most " +
                         std::to_string(most) +
                         " (maxStorageBufferRange); use a smaller model, "
                         "context or token count");
  return std::clamp(VulkanMemory::roundUp(static_cast<uint64_t>(bytes)),
                    VulkanMemory::granularity, most);
}

Status VulkanProgram::writeDescriptors(int64_t capacity) {
  recorded = false; // updated sets invalidate what was recorded with them
  for (size_t i = 0; i < program.dispatches.size(); ++i) {
    std::vector<VkDescriptorBufferInfo> infos;
    for (const kf_binding &binding : program.dispatches[i].bindings) {
      KF_ASSIGN_OR_RETURN(VulkanBuffer * buffer, resolve(boundTable, binding));
      Result<uint64_t> offset = byteOffset(binding, capacity);
      if (!offset)
        return offset.status().in(atDispatch(i));
      Result<uint64_t> range = byteRange(binding, capacity);
      if (!range)
        return range.status().in(atDispatch(i));
      uint64_t end = buffer->memory.bytes;
      if (*offset >= end)
        return Status::error(atDispatch(i) + ": offset " +
                             std::to_string(*offset) +
                             " is past the end of a buffer of " +
                             std::to_string(buffer->size()) + " bytes");
      infos.push_back(
          {buffer->memory.buffer, *offset, std::min(*range, end - *offset)});
    }
    infos.push_back({scalarMemory.buffer, 0, scalarMemory.bytes});
    std::vector<VkWriteDescriptorSet> writes;
    for (size_t j = 0; j < infos.size(); ++j) {
      VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
      write.dstSet = sets[i];
      write.dstBinding = static_cast<uint32_t>(j);
      write.descriptorCount = 1;
      write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      write.pBufferInfo = &infos[j];
      writes.push_back(write);
    }
    context.vk.vkUpdateDescriptorSets(context.device,
                                      static_cast<uint32_t>(writes.size()),
                                      writes.data(), 0, nullptr);
  }
  return {};
}

Status VulkanProgram::checkScalars(std::span<const int64_t> scalars) const {
  if (scalars.size() != KF_SCALAR_COUNT)
    return Status::error("got " + std::to_string(scalars.size()) +
                         " scalars, a program takes " +
                         std::to_string(KF_SCALAR_COUNT));
  // Kernels read the low words only.
  for (size_t i = 0; i < scalars.size(); ++i)
    if (scalars[i] < 0 || scalars[i] > std::numeric_limits<int32_t>::max())
      return Status::error("scalar " + std::to_string(i) + " is " +
                           std::to_string(scalars[i]) +
                           ": not within 0..2147483647");
  KF_RETURN_IF_ERROR(program.limits().check(scalars));
  KF_RETURN_IF_ERROR(
      checkTensors(program.inputs, boundTable.inputs, scalars, "input"));
  KF_RETURN_IF_ERROR(
      checkTensors(program.outputs, boundTable.outputs, scalars, "output"));
  const int64_t capacity = scalars[KF_SCALAR_CACHE_CAPACITY];
  for (size_t i = 0; i < program.caches.size(); ++i) {
    kf_binding layer = {KF_BINDING_CACHE, static_cast<uint32_t>(i), 0};
    KF_RETURN_IF_ERROR(byteRange(layer, capacity).status());
    KF_ASSIGN_OR_RETURN(int64_t bytes, program.caches[i].bytes(capacity));
    KF_RETURN_IF_ERROR(checkSize(boundTable.caches[i], bytes, "cache", i));
  }
  return {};
}

Result<std::vector<VulkanProgram::Grid>>
VulkanProgram::evaluateGrids(std::span<const int64_t> scalars) const {
  const uint32_t *limit = context.limits().maxComputeWorkGroupCount;
  std::vector<Grid> result;
  for (size_t i = 0; i < program.dispatches.size(); ++i) {
    Grid grid{};
    for (size_t d = 0; d < 3; ++d) {
      const kf_grid_dim &dim = program.dispatches[i].grid[d];
      // checkDispatches has seen to value > 0 and the scalar's index.
      int64_t count = dim.value;
      if (dim.scalar >= 0)
        count = scalars[dim.scalar] / dim.value +
                (scalars[dim.scalar] % dim.value != 0);
      if (count > int64_t(limit[d]))
        return Status::error(
            atDispatch(i) + ": " + std::to_string(count) +
            " workgroups along " + "xyz"[d] + ", " + context.deviceName() +
            " allows " + std::to_string(limit[d]) +
            " (maxComputeWorkGroupCount); use larger tiles or fewer tokens");
      grid[d] = static_cast<uint32_t>(count);
    }
    result.push_back(grid);
  }
  return result;
}

Status VulkanProgram::record(std::vector<Grid> wanted) {
  const VulkanDeviceFunctions &vk = context.vk;
  recorded = false;
  prepared.clear();
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  KF_RETURN_IF_ERROR(vulkanStatus(vk.vkBeginCommandBuffer(commands, &begin),
                                  "vkBeginCommandBuffer"));
  const VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  const VkPipelineStageFlags others =
      VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_HOST_BIT;
  const VkAccessFlags shader =
      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  auto barrier = [&](VkPipelineStageFlags src, VkAccessFlags srcAccess,
                     VkPipelineStageFlags dst, VkAccessFlags dstAccess) {
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = srcAccess;
    memory.dstAccessMask = dstAccess;
    vk.vkCmdPipelineBarrier(commands, src, dst, 0, 1, &memory, 0, nullptr, 0,
                            nullptr);
  };

  barrier(compute | others,
          VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT |
              VK_ACCESS_HOST_WRITE_BIT,
          compute, shader);
  VkPipeline current = VK_NULL_HANDLE;
  for (size_t i = 0; i < program.dispatches.size(); ++i) {
    size_t kernel = program.dispatches[i].kernel;
    if (pipelines[kernel] != current) {
      current = pipelines[kernel];
      vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, current);
    }
    vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                               layouts.at(bindingCounts[kernel]).pipeline, 0, 1,
                               &sets[i], 0, nullptr);
    vk.vkCmdDispatch(commands, wanted[i][0], wanted[i][1], wanted[i][2]);
    if (i + 1 < program.dispatches.size())
      barrier(compute, VK_ACCESS_SHADER_WRITE_BIT, compute, shader);
  }
  barrier(compute, VK_ACCESS_SHADER_WRITE_BIT, compute | others,
          shader | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT |
              VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
  KF_RETURN_IF_ERROR(
      vulkanStatus(vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer"));
  grids = std::move(wanted);
  recorded = true;
  return {};
}

Status VulkanProgram::prepare(std::span<const int64_t> scalars) {
  KF_RETURN_IF_ERROR(checkScalars(scalars));
  KF_ASSIGN_OR_RETURN(std::vector<Grid> wanted, evaluateGrids(scalars));
  int64_t capacity = scalars[KF_SCALAR_CACHE_CAPACITY];
  if (prepared.empty() || prepared[KF_SCALAR_CACHE_CAPACITY] != capacity) {
    prepared.clear();
    KF_RETURN_IF_ERROR(writeDescriptors(capacity));
  }
  if (!recorded || wanted != grids)
    KF_RETURN_IF_ERROR(record(std::move(wanted)));
  prepared.assign(scalars.begin(), scalars.end());
  return {};
}

Status VulkanProgram::runAll(std::span<const int64_t> scalars) {
  if (!bound)
    return Status::error("program '" + program.programName +
                         "' runs before its buffers are bound");
  // After a timeout, commands and scalars may still be in use.
  if (!context.idle())
    return Status::error("the Vulkan device has failed earlier: it hangs");
  if (!std::ranges::equal(scalars, prepared))
    KF_RETURN_IF_ERROR(prepare(scalars));
  std::memcpy(scalarMemory.mapped, scalars.data(), scalars.size_bytes());
  return context.submit(commands);
}
