//===- VulkanMemory.cpp - Memory and submission of a context --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanContext.h"

#include <algorithm>
#include <cstring>

using namespace kf;

namespace {

/// Copies to and from memory that the host cannot address go in such pieces.
constexpr uint64_t stagingBytes = 16u << 20;
/// How long destruction waits for work that has missed its timeout.
constexpr uint64_t graceNanoseconds = 10'000'000'000;

constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags mappable =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

} // namespace

std::vector<uint32_t> VulkanContext::memoryTypes(uint32_t allowed,
                                                 MemoryUse use) const {
  // Without resizable BAR, the mappable part of a GPU's memory is a small heap
  // of its own, which is left to the driver.
  uint64_t largest = 0;
  for (uint32_t i = 0; i < memoryProperties.memoryHeapCount; ++i)
    if (memoryProperties.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      largest =
          std::max<uint64_t>(largest, memoryProperties.memoryHeaps[i].size);

  std::vector<std::pair<int, uint32_t>> ranked;
  for (uint32_t i = 0; i < memoryProperties.memoryTypeCount; ++i) {
    const VkMemoryType &type = memoryProperties.memoryTypes[i];
    VkMemoryPropertyFlags flags = type.propertyFlags;
    if (!(allowed & (1u << i)) ||
        (flags & (VK_MEMORY_PROPERTY_PROTECTED_BIT |
                  VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT)))
      continue;
    bool isLocal = flags & local, isCached = flags & cached;
    bool isMappable = (flags & mappable) == mappable;
    bool small =
        isLocal && memoryProperties.memoryHeaps[type.heapIndex].size < largest;
    if (use != MemoryUse::Device && !isMappable)
      continue;
    int score = 0;
    switch (use) {
    case MemoryUse::Device:
      score = (isLocal && !small ? 4 : 0) +
              (isMappable && options.mapBuffers ? 2 : 0) + (isCached ? 1 : 0);
      break;
    case MemoryUse::Upload:
      score = (isLocal ? 0 : 2) + (isCached ? 0 : 1);
      break;
    case MemoryUse::Download:
      score = (isCached ? 2 : 0) + (isLocal ? 0 : 1);
      break;
    }
    ranked.push_back({-score, i});
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<uint32_t> types;
  for (auto [score, index] : ranked)
    types.push_back(index);
  return types;
}

Status VulkanContext::checkAllocation(uint64_t bytes) const {
  struct {
    uint64_t most;
    const char *name;
  } allowed[] = {{maxAllocationBytes, "maxMemoryAllocationSize"},
                 {maxBufferBytes, "maxBufferSize"}};
  for (auto [most, name] : allowed)
    if (bytes > most / VulkanMemory::granularity * VulkanMemory::granularity)
      return Status::error(std::string(deviceName()) + " allocates at most " +
                           std::to_string(most) + " bytes at once (" + name +
                           "); use a smaller model, context or token count");
  return {};
}

Result<VulkanMemory> VulkanContext::allocate(uint64_t bytes, MemoryUse use) {
  std::string what = "Vulkan buffer of " + std::to_string(bytes) + " bytes";
  // Before the driver is asked, whose behavior past its limits is undefined.
  KF_RETURN_IF_ERROR(checkAllocation(bytes).in(what));
  if (allocations >= limits().maxMemoryAllocationCount)
    return Status::error(what + ": " + deviceName() + " allows " +
                         std::to_string(limits().maxMemoryAllocationCount) +
                         " allocations (maxMemoryAllocationCount)");
  uint64_t rounded =
      std::max(VulkanMemory::granularity, VulkanMemory::roundUp(bytes));

  VulkanMemory result;
  result.bytes = rounded;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = rounded;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  KF_RETURN_IF_ERROR(
      vulkanStatus(vk.vkCreateBuffer(device, &info, nullptr, &result.buffer),
                   "vkCreateBuffer")
          .in(what));
  auto fail = [&](Status status) {
    release(result);
    return status.in(what);
  };

  VkMemoryRequirements requirements;
  vk.vkGetBufferMemoryRequirements(device, result.buffer, &requirements);
  if (Status fits = checkAllocation(requirements.size); !fits)
    return fail(fits);
  VkMemoryAllocateInfo memoryInfo{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  memoryInfo.allocationSize = requirements.size;
  VkResult allocated = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  VkMemoryPropertyFlags flags = 0;
  for (uint32_t type : memoryTypes(requirements.memoryTypeBits, use)) {
    const VkMemoryType &properties = memoryProperties.memoryTypes[type];
    if (requirements.size >
        memoryProperties.memoryHeaps[properties.heapIndex].size)
      continue;
    memoryInfo.memoryTypeIndex = type;
    flags = properties.propertyFlags;
    allocated =
        vk.vkAllocateMemory(device, &memoryInfo, nullptr, &result.memory);
    if (allocated != VK_ERROR_OUT_OF_DEVICE_MEMORY)
      break;
  }
  if (allocated != VK_SUCCESS) {
    result.memory = VK_NULL_HANDLE;
    return fail(vulkanStatus(allocated, "vkAllocateMemory"));
  }
  ++allocations;
  if (Status bound = vulkanStatus(
          vk.vkBindBufferMemory(device, result.buffer, result.memory, 0),
          "vkBindBufferMemory");
      !bound)
    return fail(bound);
  if ((flags & mappable) == mappable &&
      (use != MemoryUse::Device || options.mapBuffers)) {
    if (Status map =
            vulkanStatus(vk.vkMapMemory(device, result.memory, 0, VK_WHOLE_SIZE,
                                        0, &result.mapped),
                         "vkMapMemory");
        !map)
      return fail(map);
    result.hostCached = flags & cached;
  }
  return result;
}

void VulkanContext::release(VulkanMemory &memory) {
  if (idle()) {
    if (memory.buffer)
      vk.vkDestroyBuffer(device, memory.buffer, nullptr);
    if (memory.memory) {
      vk.vkFreeMemory(device, memory.memory, nullptr);
      --allocations;
    }
  }
  memory = {};
}

Status VulkanContext::upload(const VulkanMemory &dst, uint64_t offset,
                             const void *src, uint64_t bytes) {
  if (!uploadStaging.buffer) {
    KF_ASSIGN_OR_RETURN(uploadStaging,
                        allocate(stagingBytes, MemoryUse::Upload));
  }
  const char *from = static_cast<const char *>(src);
  for (uint64_t done = 0; done < bytes;) {
    uint64_t piece = std::min(stagingBytes, bytes - done);
    std::memcpy(uploadStaging.mapped, from + done, piece);
    KF_RETURN_IF_ERROR(
        copy(uploadStaging.buffer, 0, dst.buffer, offset + done, piece));
    done += piece;
  }
  return {};
}

Status VulkanContext::download(const VulkanMemory &src, uint64_t offset,
                               void *dst, uint64_t bytes) {
  if (!downloadStaging.buffer) {
    KF_ASSIGN_OR_RETURN(downloadStaging,
                        allocate(stagingBytes, MemoryUse::Download));
  }
  char *to = static_cast<char *>(dst);
  for (uint64_t done = 0; done < bytes;) {
    uint64_t piece = std::min(stagingBytes, bytes - done);
    KF_RETURN_IF_ERROR(
        copy(src.buffer, offset + done, downloadStaging.buffer, 0, piece));
    std::memcpy(to + done, downloadStaging.mapped, piece);
    done += piece;
  }
  return {};
}

Status VulkanContext::clear(const VulkanMemory &memory) {
  if (memory.mapped && memory.hostCached) {
    std::memset(memory.mapped, 0, memory.bytes);
    return {};
  }
  return transfer([&] {
    vk.vkCmdFillBuffer(copyCommands, memory.buffer, 0, memory.bytes, 0);
  });
}

Status VulkanContext::copy(VkBuffer src, uint64_t srcOffset, VkBuffer dst,
                           uint64_t dstOffset, uint64_t bytes) {
  return transfer([&] {
    VkBufferCopy region{srcOffset, dstOffset, bytes};
    vk.vkCmdCopyBuffer(copyCommands, src, dst, 1, &region);
  });
}

Status VulkanContext::transfer(const std::function<void()> &record) {
  // An earlier timeout may have left the commands in use.
  KF_RETURN_IF_ERROR(broken);
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  KF_RETURN_IF_ERROR(vulkanStatus(vk.vkBeginCommandBuffer(copyCommands, &begin),
                                  "vkBeginCommandBuffer"));
  // Behind and ahead: kernels, other copies and the host.
  const VkPipelineStageFlags others = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                                      VK_PIPELINE_STAGE_TRANSFER_BIT |
                                      VK_PIPELINE_STAGE_HOST_BIT;
  const VkAccessFlags othersWrite = VK_ACCESS_SHADER_WRITE_BIT |
                                    VK_ACCESS_TRANSFER_WRITE_BIT |
                                    VK_ACCESS_HOST_WRITE_BIT;
  const VkAccessFlags transfer =
      VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  VkMemoryBarrier before{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  before.srcAccessMask = othersWrite;
  before.dstAccessMask = transfer;
  vk.vkCmdPipelineBarrier(copyCommands, others, VK_PIPELINE_STAGE_TRANSFER_BIT,
                          0, 1, &before, 0, nullptr, 0, nullptr);
  record();
  VkMemoryBarrier after{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  after.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  after.dstAccessMask = othersWrite | transfer | VK_ACCESS_SHADER_READ_BIT |
                        VK_ACCESS_HOST_READ_BIT;
  vk.vkCmdPipelineBarrier(copyCommands, VK_PIPELINE_STAGE_TRANSFER_BIT, others,
                          0, 1, &after, 0, nullptr, 0, nullptr);
  KF_RETURN_IF_ERROR(
      vulkanStatus(vk.vkEndCommandBuffer(copyCommands), "vkEndCommandBuffer"));
  return submit(copyCommands);
}

Result<VkCommandBuffer> VulkanContext::allocateCommands() {
  VkCommandBufferAllocateInfo info{
      VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = commandPool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  KF_RETURN_IF_ERROR(
      vulkanStatus(vk.vkAllocateCommandBuffers(device, &info, &commands),
                   "vkAllocateCommandBuffers"));
  return commands;
}

void VulkanContext::freeCommands(VkCommandBuffer commands) {
  vk.vkFreeCommandBuffers(device, commandPool, 1, &commands);
}

Status VulkanContext::submit(VkCommandBuffer commands) {
  KF_RETURN_IF_ERROR(broken);
  KF_RETURN_IF_ERROR(
      vulkanStatus(vk.vkResetFences(device, 1, &fence), "vkResetFences"));
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  Status done =
      vulkanStatus(vk.vkQueueSubmit(queue, 1, &info, fence), "vkQueueSubmit");
  if (done) {
    pending = true;
    VkResult waited = vk.vkWaitForFences(
        device, 1, &fence, VK_TRUE,
        static_cast<uint64_t>(std::max<int64_t>(0, options.timeout.count())));
    if (waited == VK_TIMEOUT) {
      done = Status::error(
          std::string("Vulkan device ") + deviceName() + " did not finish in " +
          std::to_string(
              std::chrono::duration<double>(options.timeout).count()) +
          " s: it hangs, or needs smaller steps");
    } else {
      pending = false;
      done = vulkanStatus(waited, "vkWaitForFences");
    }
  }
  if (!done)
    broken = done.in("the Vulkan device has failed earlier");
  return done;
}

bool VulkanContext::idle() {
  if (!pending)
    return true;
  if (graceGiven)
    return false;
  graceGiven = true;
  VkResult waited =
      vk.vkWaitForFences(device, 1, &fence, VK_TRUE, graceNanoseconds);
  pending = waited == VK_TIMEOUT;
  return !pending;
}
