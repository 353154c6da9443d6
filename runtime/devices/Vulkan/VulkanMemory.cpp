//===- VulkanMemory.cpp - Memory and submission of a context --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanContext.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <cstring>

using namespace kf;

namespace {

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
                               std::to_string(most) + " bytes at once (" +
                               name +
                               "); use a smaller model, context or token count",
                           StatusCode::OutOfMemory);
  return {};
}

Result<VulkanMemory> VulkanContext::allocate(uint64_t bytes, MemoryUse use) {
  std::string what = "Vulkan buffer of " + std::to_string(bytes) + " bytes";
  // Before the driver is asked, whose behavior past its limits is undefined.
  KF_RETURN_IF_ERROR(checkAllocation(bytes).in(what));
  if (allocations >= limits().maxMemoryAllocationCount)
    return Status::error(what + ": " + deviceName() + " allows " +
                             std::to_string(limits().maxMemoryAllocationCount) +
                             " allocations (maxMemoryAllocationCount)",
                         StatusCode::OutOfMemory);
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
  result.allocated = requirements.size;
  result.heap =
      memoryProperties.memoryTypes[memoryInfo.memoryTypeIndex].heapIndex;
  heapUse[result.heap] += result.allocated;
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
  if (memory.buffer && idle()) {
    vk.vkDestroyBuffer(device, memory.buffer, nullptr);
    if (memory.memory) {
      vk.vkFreeMemory(device, memory.memory, nullptr);
      heapUse[memory.heap] -= memory.allocated;
      --allocations;
    }
  }
  memory = {};
}

Status VulkanContext::clear(const VulkanMemory &memory) {
  if (memory.mapped && memory.hostCached) {
    std::memset(memory.mapped, 0, memory.bytes);
    return {};
  }
  // An earlier timeout may have left the commands in use.
  KF_RETURN_IF_ERROR(broken);
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  KF_RETURN_IF_ERROR(vulkanStatus(
      vk.vkBeginCommandBuffer(clearCommands, &begin), "vkBeginCommandBuffer"));
  vk.vkCmdFillBuffer(clearCommands, memory.buffer, 0, memory.bytes, 0);
  orderAll(clearCommands);
  KF_RETURN_IF_ERROR(
      vulkanStatus(vk.vkEndCommandBuffer(clearCommands), "vkEndCommandBuffer"));
  KF_ASSIGN_OR_RETURN(uint64_t number, submit({&clearCommands, 1}));
  return waitFor(number);
}

void VulkanContext::orderAll(VkCommandBuffer commands) const {
  const VkPipelineStageFlags all = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                                   VK_PIPELINE_STAGE_TRANSFER_BIT |
                                   VK_PIPELINE_STAGE_HOST_BIT;
  VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT |
                         VK_ACCESS_TRANSFER_WRITE_BIT |
                         VK_ACCESS_HOST_WRITE_BIT;
  memory.dstAccessMask = memory.srcAccessMask | VK_ACCESS_SHADER_READ_BIT |
                         VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_HOST_READ_BIT;
  vk.vkCmdPipelineBarrier(commands, all, all, 0, 1, &memory, 0, nullptr, 0,
                          nullptr);
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

/// Remembers why the device is of no use any more, even without memory for it.
Status VulkanContext::fail(Status status) {
  broken = catchExceptions(
      [&] { return status.in("the Vulkan device has failed earlier"); });
  return status;
}

Status VulkanContext::fail(VkResult result, const char *what) {
  isLost |= result == VK_ERROR_DEVICE_LOST;
  return fail(catchExceptions([&] { return vulkanStatus(result, what); }));
}

Result<uint64_t>
VulkanContext::submit(std::span<const VkCommandBuffer> commands) {
  KF_RETURN_IF_ERROR(broken);
  const uint64_t number = submitted + 1;
  VkTimelineSemaphoreSubmitInfo values{
      VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &number;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.pNext = &values;
  info.commandBufferCount = static_cast<uint32_t>(commands.size());
  info.pCommandBuffers = commands.data();
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline;
  VkResult result = vk.vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE);
  if (result == VK_ERROR_DEVICE_LOST)
    return fail(result, "vkQueueSubmit");
  KF_RETURN_IF_ERROR(vulkanStatus(result, "vkQueueSubmit"));
  submitted = number;
  return number;
}

uint64_t VulkanContext::ended() noexcept {
  if (knownEnded == submitted || isLost)
    return knownEnded;
  uint64_t value = 0;
  VkResult result = vk.vkGetSemaphoreCounterValue(device, timeline, &value);
  // Some drivers let a lost device's semaphores jump to the largest number.
  isLost = result == VK_ERROR_DEVICE_LOST || value > submitted;
  if (result == VK_SUCCESS && !isLost)
    knownEnded = std::max(knownEnded, value);
  return knownEnded;
}

Status VulkanContext::waitFor(uint64_t number) {
  for (uint64_t before = ended(); before < number;) {
    KF_RETURN_IF_ERROR(broken);
    if (isLost)
      return fail(VK_ERROR_DEVICE_LOST, "vkGetSemaphoreCounterValue");
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &timeline;
    info.pValues = &number;
    VkResult result = vk.vkWaitSemaphores(
        device, &info,
        static_cast<uint64_t>(std::max<int64_t>(0, options.timeout.count())));
    if (result != VK_SUCCESS && result != VK_TIMEOUT)
      return fail(result, "vkWaitSemaphores");
    const uint64_t now = ended();
    if (now == before && !isLost)
      return fail(catchExceptions([&] {
        return Status::error(
            std::string("Vulkan device ") + deviceName() +
                " did not finish in " +
                std::to_string(
                    std::chrono::duration<double>(options.timeout).count()) +
                " s: it hangs, or needs smaller steps",
            StatusCode::Unavailable);
      }));
    before = now;
  }
  return {};
}

bool VulkanContext::idle() noexcept {
  if (isLost || ended() == submitted)
    return true;
  if (broken.ok() && catchExceptions([&] { return waitFor(submitted); }).ok())
    return true;
  if (graceGiven)
    return isLost;
  graceGiven = true;
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline;
  info.pValues = &submitted;
  VkResult result = vk.vkWaitSemaphores(device, &info, graceNanoseconds);
  isLost |= result == VK_ERROR_DEVICE_LOST;
  return isLost || ended() == submitted;
}
