//===- VulkanProgram.h - An Executable on a Vulkan device -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pipelines for an Executable's kernels.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_VULKAN_VULKANPROGRAM_H
#define KF_RUNTIME_DEVICES_VULKAN_VULKANPROGRAM_H

#include "runtime/devices/Vulkan/VulkanBuffer.h"

#include <map>
#include <vector>

namespace kf {

struct SpirvModule;

/// `context` outlives it.
class VulkanProgram final : public LoadedProgram {
public:
  static Result<std::unique_ptr<LoadedProgram>>
  create(VulkanContext &context, const Executable &executable);
  ~VulkanProgram() override;

  /// A pool with one descriptor set for each dispatch, not written yet.
  Status createDescriptorSets(VkDescriptorPool &pool,
                              std::vector<VkDescriptorSet> &sets) const;
  /// Bytes that binding `number` gives to a kernel, the buffer permitting: a
  /// whole weight, input or output, one layer of a cache of `pages`, what the
  /// dispatch uses of the arena. An error that names it if the device binds
  /// fewer.
  Result<uint64_t> byteRange(const DispatchSpec &dispatch, size_t number,
                             int64_t pages) const;
  VkPipeline pipelineOf(const DispatchSpec &dispatch) const {
    return pipelines[dispatch.kernel];
  }
  VkPipelineLayout layoutOf(const DispatchSpec &dispatch) const {
    return layouts.at(bindingCounts[dispatch.kernel]).pipeline;
  }

private:
  /// What dispatches with the same number of buffers share.
  struct Layout {
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout pipeline = VK_NULL_HANDLE;
  };

  VulkanProgram(VulkanContext &context, const Executable &executable)
      : LoadedProgram(executable), context(context) {}
  Result<std::unique_ptr<Instance>> doBind(const BindingTable &table) override;
  Status createAll(std::string_view binary);
  /// Fills `bindingCounts` and checks what dispatches ask of the device.
  Status checkDispatches();
  Status checkKernel(const KernelSpec &kernel, const SpirvModule &module,
                     size_t bindingCount) const;
  Status createPipeline(size_t kernel, const SpirvModule &module);
  Result<Layout> layoutFor(size_t bindingCount);

  VulkanContext &context;
  /// Buffers of each kernel, scalars apart; -1: never dispatched.
  std::vector<int64_t> bindingCounts;
  std::map<size_t, Layout> layouts;  ///< by number of buffers
  std::vector<VkPipeline> pipelines; ///< [kernels], null if never dispatched
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_VULKAN_VULKANPROGRAM_H
