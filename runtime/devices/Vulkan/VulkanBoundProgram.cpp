//===- VulkanBoundProgram.cpp - Recorded runs of a program ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanBoundProgram.h"

#include "runtime/devices/HazardTracker.h"

#include <algorithm>

using namespace kf;

VulkanRecording::~VulkanRecording() {
  if (use > context.ended() && !context.idle())
    return;
  if (commands)
    context.freeCommands(commands);
  context.vk.vkDestroyDescriptorPool(context.device, pool, nullptr);
  context.vk.vkDestroyQueryPool(context.device, queries, nullptr);
}

VulkanBoundProgram::VulkanBoundProgram(VulkanContext &context,
                                       const VulkanProgram &loaded,
                                       const BindingTable &table)
    : GpuInstance(loaded.program(), table,
                  {std::to_array<int64_t>(
                       {context.limits().maxComputeWorkGroupCount[0],
                        context.limits().maxComputeWorkGroupCount[1],
                        context.limits().maxComputeWorkGroupCount[2]}),
                   context.deviceName()}),
      context(context), loaded(loaded) {}

Result<std::unique_ptr<Instance>>
VulkanBoundProgram::create(VulkanContext &context, const VulkanProgram &program,
                           const BindingTable &table) {
  std::unique_ptr<VulkanBoundProgram> self(
      new VulkanBoundProgram(context, program, table));
  KF_ASSIGN_OR_RETURN(self->scalarMemory,
                      context.allocate(KF_SCALAR_COUNT * sizeof(int64_t),
                                       VulkanContext::MemoryUse::Device));
  return std::unique_ptr<Instance>(std::move(self));
}

VulkanBoundProgram::~VulkanBoundProgram() { context.release(scalarMemory); }

//===----------------------------------------------------------------------===//
// What the device asks of scalars and buffers
//===----------------------------------------------------------------------===//

Status VulkanBoundProgram::doCheck(std::span<const int64_t> scalars) {
  KF_RETURN_IF_ERROR(GpuInstance::doCheck(scalars));
  for (size_t i = 0; i < program().dispatches.size(); ++i)
    KF_RETURN_IF_ERROR(descriptorsOf(i, scalars[KF_SCALAR_CACHE_PAGES])
                           .status()
                           .in(atDispatch(i)));
  return {};
}

Result<uint64_t> VulkanBoundProgram::byteOffset(const kf_binding &binding,
                                                int64_t pages) const {
  KF_ASSIGN_OR_RETURN(uint64_t offset, byteOffsetOf(program(), binding, pages));
  if (binding.kind != KF_BINDING_CACHE) // checked when it was loaded
    return offset;
  uint64_t alignment = context.limits().minStorageBufferOffsetAlignment;
  if (offset % alignment != 0)
    return Status::error("cache layer " + std::to_string(binding.offset) +
                         " begins at byte " + std::to_string(offset) +
                         ", not a multiple of " + std::to_string(alignment) +
                         " (minStorageBufferOffsetAlignment): use a larger "
                         "cache");
  return offset;
}

Result<std::vector<VkDescriptorBufferInfo>>
VulkanBoundProgram::descriptorsOf(size_t index, int64_t pages) const {
  std::vector<VkDescriptorBufferInfo> infos;
  const DispatchSpec &dispatch = program().dispatches[index];
  for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
    const kf_binding &binding = dispatch.bindings[i];
    VulkanBuffer &buffer = VulkanBuffer::of(*bufferOf(buffers(), binding));
    KF_ASSIGN_OR_RETURN(uint64_t offset, byteOffset(binding, pages));
    KF_ASSIGN_OR_RETURN(uint64_t range, loaded.byteRange(dispatch, i, pages));
    const uint64_t end = buffer.memory.bytes;
    if (offset >= end)
      return Status::error("offset " + std::to_string(offset) +
                           " is past the end of a buffer of " +
                           std::to_string(buffer.size()) + " bytes");
    infos.push_back(
        {buffer.memory.buffer, offset, std::min(range, end - offset)});
  }
  infos.push_back({scalarMemory.buffer, 0, scalarMemory.bytes});
  return infos;
}

//===----------------------------------------------------------------------===//
// Recording
//===----------------------------------------------------------------------===//

Status VulkanBoundProgram::writeDescriptors(VulkanRecording &recording) const {
  for (size_t i = 0; i < recording.sets.size(); ++i) {
    KF_ASSIGN_OR_RETURN(std::vector<VkDescriptorBufferInfo> infos,
                        descriptorsOf(i, recording.pages));
    std::vector<VkWriteDescriptorSet> writes;
    for (size_t j = 0; j < infos.size(); ++j) {
      VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
      write.dstSet = recording.sets[i];
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

void VulkanBoundProgram::waitForDispatches(VkCommandBuffer commands) const {
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  context.vk.vkCmdPipelineBarrier(commands,
                                  VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                  VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                                  &memory, 0, nullptr, 0, nullptr);
}

/// Barriers stand where dispatches depend, and between all of them where each
/// is timed.
Status VulkanBoundProgram::record(VulkanRecording &recording,
                                  std::vector<GpuGrid> grids,
                                  int64_t pages) const {
  const VulkanDeviceFunctions &vk = context.vk;
  recording.grids.clear();
  if (!recording.commands) {
    KF_ASSIGN_OR_RETURN(recording.commands, context.allocateCommands());
    KF_RETURN_IF_ERROR(
        loaded.createDescriptorSets(recording.pool, recording.sets));
  }
  if (recording.pages != pages) {
    recording.pages = pages;
    KF_RETURN_IF_ERROR(writeDescriptors(recording));
  }
  KF_ASSIGN_OR_RETURN(std::vector<bool> needsBarrier,
                      findBarriers(program(), buffers(), pages));
  VkCommandBuffer commands = recording.commands;
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  KF_RETURN_IF_ERROR(vulkanStatus(vk.vkBeginCommandBuffer(commands, &begin),
                                  "vkBeginCommandBuffer"));
  const std::vector<DispatchSpec> &dispatches = program().dispatches;
  auto mark = [&](uint32_t query) {
    if (recording.queries)
      vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                             recording.queries, query);
  };
  if (recording.queries)
    vk.vkCmdResetQueryPool(commands, recording.queries, 0,
                           static_cast<uint32_t>(dispatches.size() + 1));
  context.orderAll(commands);
  mark(0);
  VkPipeline current = VK_NULL_HANDLE;
  recording.barriers = 0;
  for (size_t i = 0; i < dispatches.size(); ++i) {
    if (needsBarrier[i] || (recording.queries && i > 0)) {
      waitForDispatches(commands);
      ++recording.barriers;
    }
    if (VkPipeline pipeline = loaded.pipelineOf(dispatches[i]);
        pipeline != current) {
      current = pipeline;
      vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, current);
    }
    vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                               loaded.layoutOf(dispatches[i]), 0, 1,
                               &recording.sets[i], 0, nullptr);
    vk.vkCmdDispatch(commands, grids[i][0], grids[i][1], grids[i][2]);
    mark(static_cast<uint32_t>(i + 1));
  }
  context.orderAll(commands);
  KF_RETURN_IF_ERROR(
      vulkanStatus(vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer"));
  recording.grids = std::move(grids);
  return {};
}

Result<VulkanRecording *>
VulkanBoundProgram::recordingFor(std::span<const int64_t> scalars) {
  const int64_t pages = scalars[KF_SCALAR_CACHE_PAGES];
  KF_ASSIGN_OR_RETURN(std::vector<GpuGrid> grids, evaluateGrids(scalars));
  const uint64_t ended = context.ended();
  VulkanRecording *oldest = nullptr; // of those that nothing uses
  for (std::unique_ptr<VulkanRecording> &recording : recordings) {
    if (recording->pages == pages && recording->grids == grids)
      return recording.get();
    if (recording->use <= ended && (!oldest || recording->use < oldest->use))
      oldest = recording.get();
  }
  if (!oldest || recordings.size() < kKeptRecordings) {
    // A recording that is half made is not kept.
    auto made = std::make_unique<VulkanRecording>(context);
    KF_RETURN_IF_ERROR(record(*made, std::move(grids), pages));
    recordings.push_back(std::move(made));
    return recordings.back().get();
  }
  // Descriptors may be half written: they are written anew then.
  Status status = record(*oldest, std::move(grids), pages);
  if (!status) {
    oldest->pages = -1;
    return status;
  }
  return oldest;
}

Result<std::shared_ptr<VulkanRecording>>
VulkanBoundProgram::recordTimed(std::span<const int64_t> scalars) {
  KF_RETURN_IF_ERROR(context.nanosecondsBetween(0, 0).status());
  KF_ASSIGN_OR_RETURN(std::vector<GpuGrid> grids, evaluateGrids(scalars));
  auto recording = std::make_shared<VulkanRecording>(context);
  VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = static_cast<uint32_t>(program().dispatches.size() + 1);
  KF_RETURN_IF_ERROR(
      vulkanStatus(context.vk.vkCreateQueryPool(context.device, &info, nullptr,
                                                &recording->queries),
                   "vkCreateQueryPool"));
  KF_RETURN_IF_ERROR(
      record(*recording, std::move(grids), scalars[KF_SCALAR_CACHE_PAGES]));
  return recording;
}

Status VulkanBoundProgram::readTimes(const VulkanRecording &recording,
                                     DispatchTimes &times) const {
  const std::vector<DispatchSpec> &dispatches = program().dispatches;
  std::vector<uint64_t> stamps(dispatches.size() + 1);
  KF_RETURN_IF_ERROR(vulkanStatus(
      context.vk.vkGetQueryPoolResults(
          context.device, recording.queries, 0,
          static_cast<uint32_t>(stamps.size()),
          stamps.size() * sizeof(uint64_t), stamps.data(), sizeof(uint64_t),
          VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
      "vkGetQueryPoolResults"));
  times.clear();
  for (size_t i = 0; i < dispatches.size(); ++i) {
    KF_ASSIGN_OR_RETURN(uint64_t nanoseconds,
                        context.nanosecondsBetween(stamps[i], stamps[i + 1]));
    KF_ASSIGN_OR_RETURN(uint64_t begin,
                        context.nanosecondsBetween(stamps[0], stamps[i]));
    times.push_back(
        {program().kernels[dispatches[i].kernel].name, nanoseconds, begin});
  }
  return {};
}
