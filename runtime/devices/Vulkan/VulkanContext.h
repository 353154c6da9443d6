//===- VulkanContext.h - A logical device and its queue ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What buffers and programs of one Vulkan device share: functions, limits,
// features, memory and submission.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_VULKAN_VULKANCONTEXT_H
#define KF_RUNTIME_DEVICES_VULKAN_VULKANCONTEXT_H

#include "runtime/devices/Vulkan/PipelineCacheFile.h"
#include "runtime/devices/Vulkan/VulkanDevice.h"
#include "runtime/devices/Vulkan/VulkanInstance.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kf {

/// A VkBuffer with memory of its own.
struct VulkanMemory {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t bytes = 0;      ///< of the VkBuffer: what was asked for, rounded up
  uint64_t allocated = 0;  ///< of `memory`
  uint32_t heap = 0;       ///< where `memory` is
  void *mapped = nullptr;  ///< all of it, for as long as it lives, or null
  bool hostCached = false; ///< reading through `mapped` is fast

  /// VkBuffers are a multiple of this, so that kernels may read whole words.
  static constexpr uint64_t granularity = 64;
  /// The next multiple; `bytes` is far below 2^64.
  static constexpr uint64_t roundUp(uint64_t bytes) {
    return (bytes + granularity - 1) / granularity * granularity;
  }
};

/// Whether kernels multiply many rows on cooperative matrices of a device with
/// these types of elements and of matrices, both as the compiler spells them
/// ("f16, i8"): f16 matrices, and f16 and i16 by themselves, as the compiler
/// has it (lib/Target/SPIRV/VulkanTarget.cpp).
bool multipliesManyRows(std::string_view types, std::string_view matrixTypes);

/// Whether kernels of a device with `floats` can ask that conversions to f16
/// round to the nearest and leave f32 as it is; they have no f64.
bool roundsHalves(const VkPhysicalDeviceFloatControlsProperties &floats);

/// One thread at a time. Outlives whatever was made from it.
class VulkanContext {
public:
  static Result<std::unique_ptr<VulkanContext>>
  create(const VulkanDeviceOptions &options);
  ~VulkanContext();
  VulkanContext(const VulkanContext &) = delete;
  VulkanContext &operator=(const VulkanContext &) = delete;

  const VkPhysicalDeviceLimits &limits() const { return properties.limits; }
  const char *deviceName() const { return properties.deviceName; }
  /// Model, kind, versions, memory and the features that schedules ask for.
  std::string description() const;
  /// What to compile for, as the compiler spells it.
  std::string target() const;
  /// Success if kernels may declare this SPIR-V capability here.
  Status checkCapability(uint32_t capability) const;
  /// Success if kernels can keep subnormal floats of `width` bits here.
  Status checkDenormPreserve(uint32_t width) const;
  /// Success if kernels can have floats of `width` bits rounded to the nearest.
  Status checkRounding(uint32_t width) const;
  /// Success if a workgroup of `size` threads can consist here of whole
  /// subgroups of `threads` threads.
  Status checkSubgroups(uint32_t threads,
                        const std::array<uint32_t, 3> &size) const;
  /// Whether subgroups multiply matrices that products of many rows are on.
  bool multipliesMatrices() const {
    return multipliesManyRows(types(), matrixTypes);
  }
  /// The x of the newest SPIR-V 1.x that the device takes.
  uint32_t maxSpirvMinor() const;

  /// Of the heap that kernels' data is in.
  DeviceMemory memory() const;
  /// Nanoseconds between two timestamps of a queue; an error if it has none.
  Result<uint64_t> nanosecondsBetween(uint64_t first, uint64_t second) const;

  /// What memory is for; decides where it lies.
  enum class MemoryUse {
    Device,   ///< kernels' data: device-local, mapped where that is possible
    Upload,   ///< written by the host, mapped
    Download, ///< read by the host, mapped and cached where that is possible
  };
  /// Of any content. Errors: more than one allocation or the heap can hold.
  Result<VulkanMemory> allocate(uint64_t bytes, MemoryUse use);
  void release(VulkanMemory &memory);
  /// Makes all of it zeros.
  Status clear(const VulkanMemory &memory);

  Result<VkCommandBuffer> allocateCommands();
  void freeCommands(VkCommandBuffer commands);
  /// Whatever follows in `commands`, and behind them, comes after whatever is
  /// ahead of it.
  void orderAll(VkCommandBuffer commands) const;

  // Submissions are numbered from 1; they go to one queue and end in order.

  /// Submits recorded commands and returns at once; the submission's number.
  /// After an error nothing is submitted, and the commands are as they were.
  Result<uint64_t> submit(std::span<const VkCommandBuffer> commands);
  /// Number of the last submission that has ended.
  uint64_t ended() noexcept;
  /// Returns when submission `number` has ended. An error if one takes longer
  /// than VulkanDeviceOptions::timeout; the device is of no use then.
  Status waitFor(uint64_t number);
  /// Waits for all submissions. False if the device still works on something
  /// that did not end in time; objects in use must then be left undestroyed.
  bool idle() noexcept;

  /// Puts what was compiled since the last time into the cache's file.
  void keepPipelines();

  /// What a public call returns: its status, with validation's messages.
  Status finish(Status status);
  template <typename T> Result<T> finish(Result<T> result) {
    Status status = finish(result.status());
    return status ? std::move(result) : Result<T>(std::move(status));
  }

  VulkanDeviceFunctions vk;
  VkDevice device = VK_NULL_HANDLE;
  VkPipelineCache pipelineCache = VK_NULL_HANDLE;

private:
  explicit VulkanContext(const VulkanDeviceOptions &options)
      : options(options) {}
  Status choosePhysicalDevice();
  Status createDevice();
  Status createPipelineCache();
  /// Counts multiprocessors and finds cooperative matrices, where one of the
  /// extensions `known` tells.
  void findUnits(std::span<const VkExtensionProperties> known);
  /// Those that kernels may compute with beside f32 and i32, as the compiler
  /// spells them: "f16, i8".
  std::string types() const;
  /// Whether subgroups of kernels have these VkSubgroupFeatureFlagBits.
  bool hasSubgroups(uint32_t operations) const;
  /// The memory types to try for `use`, best first.
  std::vector<uint32_t> memoryTypes(uint32_t allowed, MemoryUse use) const;
  /// An error that names the limit that a buffer of `bytes` exceeds.
  Status checkAllocation(uint64_t bytes) const;
  Status fail(Status status);
  Status fail(VkResult result, const char *what);

  const VulkanDeviceOptions options;
  std::unique_ptr<VulkanInstance> instance;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memoryProperties{};
  uint64_t maxAllocationBytes = 0; ///< of one VkDeviceMemory
  uint64_t maxBufferBytes = 0;     ///< of one VkBuffer
  VkPhysicalDeviceSubgroupProperties subgroup{};
  /// The fewest and the most threads that subgroups of kernels can be given;
  /// 0: they have as many as the driver takes.
  uint32_t fewestSubgroupThreads = 0, mostSubgroupThreads = 0;
  uint32_t mostSubgroups = 0;   ///< of a workgroup, where the above are not 0
  uint32_t multiprocessors = 0; ///< 0: unknown
  /// Those that subgroups multiply as 16 x 16 matrices, as the compiler spells
  /// them: "f16, i8".
  std::string matrixTypes;
  /// Whether kernels multiply cooperative matrices, and those of bf16.
  bool hasMatrices = false, hasBfloat16 = false;
  VkPhysicalDeviceFloatControlsProperties floats{};
  /// What the device was created with: all that kernels may use.
  VkPhysicalDeviceFeatures features{};
  VkPhysicalDeviceVulkan11Features features11{};
  VkPhysicalDeviceVulkan12Features features12{};
  VkPhysicalDeviceVulkan13Features features13{};
  std::optional<PipelineCacheFile> pipelineFile;
  size_t keptBytes = 0; ///< of `pipelineCache` in its file
  uint32_t queueFamily = 0;
  VkQueue queue = VK_NULL_HANDLE;
  VkCommandPool commandPool = VK_NULL_HANDLE;
  VkSemaphore timeline = VK_NULL_HANDLE; ///< counts ended submissions
  VkCommandBuffer clearCommands = VK_NULL_HANDLE;
  bool hasBudget = false;     ///< VK_EXT_memory_budget
  uint32_t timestampBits = 0; ///< that count, of a timestamp; 0: there are none
  uint64_t heapUse[VK_MAX_MEMORY_HEAPS] = {}; ///< bytes that allocate() gave
  uint32_t allocations = 0; ///< alive, against maxMemoryAllocationCount
  uint64_t submitted = 0, knownEnded = 0; ///< numbers of submissions
  bool isLost = false;     ///< nothing is at work, nor ever will be
  bool graceGiven = false; ///< idle() has waited for a device that hangs
  Status broken;           ///< why nothing can be submitted any more
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_VULKAN_VULKANCONTEXT_H
