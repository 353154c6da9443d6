//===- VulkanProgram.h - An Executable on a Vulkan device -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pipelines for an Executable's kernels, descriptor sets for its dispatches,
// and one command buffer, recorded when buffers, cache capacity or grid sizes
// change.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_VULKAN_VULKANPROGRAM_H
#define KF_RUNTIME_DEVICES_VULKAN_VULKANPROGRAM_H

#include "runtime/devices/Vulkan/VulkanBuffer.h"

#include <array>
#include <map>
#include <vector>

namespace kf {

struct SpirvModule;

/// `context` outlives it.
class VulkanProgram : public LoadedProgram {
public:
  static Result<std::unique_ptr<VulkanProgram>>
  create(VulkanContext &context, const Executable &executable);
  ~VulkanProgram() override;
  VulkanProgram(const VulkanProgram &) = delete;
  VulkanProgram &operator=(const VulkanProgram &) = delete;

  Status bind(const BindingTable &table) override;
  Status run(std::span<const int64_t> scalars, CancelFlag cancelled) override;

private:
  using Grid = std::array<uint32_t, 3>; // workgroups in x, y, z

  /// What dispatches with the same number of buffers share.
  struct Layout {
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout pipeline = VK_NULL_HANDLE;
  };

  explicit VulkanProgram(VulkanContext &context) : context(context) {}
  Status createAll(const Executable &executable);
  /// Fills `bindingCounts` and checks what dispatches ask of the device.
  Status checkDispatches();
  Status checkKernel(const KernelSpec &kernel, const SpirvModule &module,
                     size_t bindingCount) const;
  Status createPipeline(size_t kernel, const SpirvModule &module);
  Result<Layout> layoutFor(size_t bindingCount);
  Status createDescriptorSets();
  Status bindAll(const BindingTable &table);
  Status runAll(std::span<const int64_t> scalars);
  /// The table's buffer that `binding` means.
  Result<VulkanBuffer *> resolve(const BindingTable &table,
                                 const kf_binding &binding) const;
  /// Checks the scalars, and that the bound buffers are as large as they say.
  Status checkScalars(std::span<const int64_t> scalars) const;
  Result<std::vector<Grid>>
  evaluateGrids(std::span<const int64_t> scalars) const;
  /// Bytes before `binding` in its buffer; `capacity` positions in the caches.
  Result<uint64_t> byteOffset(const kf_binding &binding,
                              int64_t capacity) const;
  /// Bytes that `binding` gives to a kernel, the buffer permitting: a whole
  /// weight, input or output, one layer of a cache, the arena from its offset
  /// on. An error that names it if the device binds fewer.
  Result<uint64_t> byteRange(const kf_binding &binding, int64_t capacity) const;
  /// Points all descriptor sets at the bound buffers.
  Status writeDescriptors(int64_t capacity);
  /// All that depends on the scalars' values, for the next submission.
  Status prepare(std::span<const int64_t> scalars);
  Status record(std::vector<Grid> wanted);

  VulkanContext &context;
  Executable program; ///< without its binary
  /// Buffers of each kernel, scalars apart; -1: never dispatched.
  std::vector<int64_t> bindingCounts;
  std::map<size_t, Layout> layouts;  ///< by number of buffers
  std::vector<VkPipeline> pipelines; ///< [kernels], null if never dispatched
  VkDescriptorPool descriptorPool = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets; ///< [dispatches]
  VulkanMemory scalarMemory;         ///< int64 [KF_SCALAR_COUNT]
  VkCommandBuffer commands = VK_NULL_HANDLE;
  bool bound = false, recorded = false;
  std::vector<Grid> grids; ///< [dispatches], as recorded
  BindingTable boundTable;
  /// The scalars that sets and commands are made for; empty: none.
  std::vector<int64_t> prepared;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_VULKAN_VULKANPROGRAM_H
