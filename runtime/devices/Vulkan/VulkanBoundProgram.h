//===- VulkanBoundProgram.h - Recorded runs of a program --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The Vulkan device's Instance: descriptor sets for bound buffers and command
// buffers with all dispatches, one for each of the grid sizes and cache
// capacities that were asked for last. What is recorded is submitted again and
// again; scalars reach it through a buffer.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_VULKAN_VULKANBOUNDPROGRAM_H
#define KF_RUNTIME_DEVICES_VULKAN_VULKANBOUNDPROGRAM_H

#include "runtime/devices/GpuInstance.h"
#include "runtime/devices/Vulkan/VulkanProgram.h"

#include <memory>
#include <vector>

namespace kf {

/// Commands for all dispatches. Destruction waits for their end.
struct VulkanRecording {
  explicit VulkanRecording(VulkanContext &context) : context(context) {}
  ~VulkanRecording();
  VulkanRecording(const VulkanRecording &) = delete;
  VulkanRecording &operator=(const VulkanRecording &) = delete;

  VulkanContext &context;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets; ///< [dispatches]
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VkQueryPool queries = VK_NULL_HANDLE; ///< [dispatches + 1] times, or null
  std::vector<GpuGrid> grids;           ///< [dispatches], as recorded
  int64_t pages = -1;                   ///< of the caches
  size_t barriers = 0;                  ///< between dispatches
  uint64_t use = 0;                     ///< the last submission with it
};

/// `program` and its context outlive it.
class VulkanBoundProgram final : public GpuInstance {
public:
  static Result<std::unique_ptr<Instance>> create(VulkanContext &context,
                                                  const VulkanProgram &program,
                                                  const BindingTable &table);
  ~VulkanBoundProgram() override;

  /// Commands for scalars that were checked; valid until the next call.
  Result<VulkanRecording *> recordingFor(std::span<const int64_t> scalars);
  /// The same, measuring times, for one submission.
  Result<std::shared_ptr<VulkanRecording>>
  recordTimed(std::span<const int64_t> scalars);
  /// What a recording that has run has measured.
  Status readTimes(const VulkanRecording &recording,
                   DispatchTimes &times) const;

  /// int64 [KF_SCALAR_COUNT], which the stream writes where they change.
  VkBuffer scalarBuffer() const { return scalarMemory.buffer; }

private:
  VulkanBoundProgram(VulkanContext &context, const VulkanProgram &loaded,
                     const BindingTable &table);
  Status doCheck(std::span<const int64_t> scalars) override;
  /// byteOffsetOf(), which has to be aligned.
  Result<uint64_t> byteOffset(const kf_binding &binding, int64_t pages) const;
  /// What dispatch `index` is bound to, the scalars last.
  Result<std::vector<VkDescriptorBufferInfo>>
  descriptorsOf(size_t index, int64_t pages) const;
  /// Makes pool, sets and commands that a recording lacks, and records.
  Status record(VulkanRecording &recording, std::vector<GpuGrid> grids,
                int64_t pages) const;
  Status writeDescriptors(VulkanRecording &recording) const;
  /// What follows in `commands` begins when dispatches ahead of it are done.
  void waitForDispatches(VkCommandBuffer commands) const;

  VulkanContext &context;
  const VulkanProgram &loaded;
  VulkanMemory scalarMemory;
  /// kKeptRecordings; more where all of them were in use at once.
  std::vector<std::unique_ptr<VulkanRecording>> recordings;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_VULKAN_VULKANBOUNDPROGRAM_H
