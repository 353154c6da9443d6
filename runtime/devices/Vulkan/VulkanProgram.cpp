//===- VulkanProgram.cpp - Pipelines for an Executable's kernels ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks an Executable against the device's limits and makes its pipelines.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanProgram.h"

#include "runtime/devices/Vulkan/SpirvModule.h"
#include "runtime/devices/Vulkan/VulkanBoundProgram.h"

#include <algorithm>
#include <limits>

using namespace kf;

/// SPIR-V's capability CooperativeMatrixKHR.
static constexpr uint32_t cooperativeMatrix = 6022;

Result<std::unique_ptr<LoadedProgram>>
VulkanProgram::create(VulkanContext &context, const Executable &executable) {
  std::unique_ptr<VulkanProgram> self(new VulkanProgram(context, executable));
  KF_RETURN_IF_ERROR(self->createAll(executable.binary));
  return std::unique_ptr<LoadedProgram>(std::move(self));
}

Result<std::unique_ptr<Instance>>
VulkanProgram::doBind(const BindingTable &table) {
  return context.finish(VulkanBoundProgram::create(context, *this, table));
}

Status VulkanProgram::createAll(std::string_view binary) {
  KF_RETURN_IF_ERROR(checkDispatches());
  KF_ASSIGN_OR_RETURN(std::vector<SpirvModule> modules,
                      parseSpirvModules(binary, program().kernels.size()));
  pipelines.assign(program().kernels.size(), VK_NULL_HANDLE);
  for (size_t i = 0; i < modules.size(); ++i) {
    if (bindingCounts[i] < 0)
      continue;
    const KernelSpec &kernel = program().kernels[i];
    Status status = checkKernel(kernel, modules[i], bindingCounts[i]);
    if (status)
      status = createPipeline(i, modules[i]);
    if (!status)
      return status.in("kernel '" + kernel.name + "'");
  }
  context.keepPipelines();
  return {};
}

VulkanProgram::~VulkanProgram() {
  if (!context.idle())
    return;
  const VulkanDeviceFunctions &vk = context.vk;
  for (VkPipeline pipeline : pipelines)
    vk.vkDestroyPipeline(context.device, pipeline, nullptr);
  for (auto &[count, layout] : layouts) {
    vk.vkDestroyPipelineLayout(context.device, layout.pipeline, nullptr);
    vk.vkDestroyDescriptorSetLayout(context.device, layout.set, nullptr);
  }
}

Status VulkanProgram::checkDispatches() {
  const VkPhysicalDeviceLimits &limits = context.limits();
  // The scalar buffer takes one descriptor more.
  uint64_t most = std::min({limits.maxPerStageDescriptorStorageBuffers,
                            limits.maxDescriptorSetStorageBuffers,
                            limits.maxPerStageResources});
  bindingCounts.assign(program().kernels.size(), -1);
  for (size_t i = 0; i < program().dispatches.size(); ++i) {
    const DispatchSpec &dispatch = program().dispatches[i];
    std::string where = "dispatch " + std::to_string(i);
    size_t count = dispatch.bindings.size();
    if (count + 1 > most)
      return Status::error(where + ": " + std::to_string(count) +
                           " buffers and the scalars, " + context.deviceName() +
                           " binds at most " + std::to_string(most) +
                           " storage buffers to a kernel");
    bindingCounts[dispatch.kernel] = static_cast<int64_t>(count);
    uint64_t alignment = limits.minStorageBufferOffsetAlignment;
    for (size_t j = 0; j < count; ++j) {
      const kf_binding &binding = dispatch.bindings[j];
      if (binding.kind == KF_BINDING_ARENA && binding.offset % alignment != 0)
        return Status::error(
            where + ": arena offset " + std::to_string(binding.offset) +
            " is not a multiple of " + std::to_string(alignment) +
            " (minStorageBufferOffsetAlignment)");
      // How many pages caches have is not known yet.
      if (binding.kind != KF_BINDING_CACHE)
        KF_RETURN_IF_ERROR(byteRange(dispatch, j, 0).status().in(where));
    }
  }
  return {};
}

Status VulkanProgram::checkKernel(const KernelSpec &kernel,
                                  const SpirvModule &module,
                                  size_t bindingCount) const {
  const VkPhysicalDeviceLimits &limits = context.limits();
  const std::string name = context.deviceName();
  if (module.minorVersion > context.maxSpirvMinor())
    return Status::error("SPIR-V 1." + std::to_string(module.minorVersion) +
                         ", " + name + " takes 1." +
                         std::to_string(context.maxSpirvMinor()) + " at most");
  for (uint32_t capability : module.capabilities)
    KF_RETURN_IF_ERROR(context.checkCapability(capability));
  for (uint32_t width : module.denormPreserve)
    KF_RETURN_IF_ERROR(context.checkDenormPreserve(width));
  for (uint32_t width : module.roundToNearest)
    KF_RETURN_IF_ERROR(context.checkRounding(width));

  const SpirvEntryPoint *entry = module.find(kernel.name);
  if (!entry || !entry->compute)
    return Status::error(
        "its SPIR-V module has no compute entry point of this name");
  if (module.maxSet > 0)
    return Status::error("its SPIR-V module uses descriptor set " +
                         std::to_string(module.maxSet) + ": only 0 is bound");
  if (module.maxBinding > static_cast<int64_t>(bindingCount))
    return Status::error("its SPIR-V module uses binding " +
                         std::to_string(module.maxBinding) + ", but has " +
                         std::to_string(bindingCount) +
                         " buffers and the scalars");

  if (entry->localSize != kernel.workgroupSize)
    return Status::error(
        "its SPIR-V LocalSize differs from the Executable's workgroup size");
  uint64_t invocations = 1;
  for (size_t d = 0; d < 3; ++d) {
    uint32_t size = kernel.workgroupSize[d];
    if (size == 0 || size > limits.maxComputeWorkGroupSize[d])
      return Status::error("workgroup size " + std::to_string(size) +
                           " along " + "xyz"[d] + ", " + name + " allows " +
                           std::to_string(limits.maxComputeWorkGroupSize[d]) +
                           " (maxComputeWorkGroupSize)");
    // Each factor is below 2^32 and the product so far is within the limit,
    // itself below 2^32.
    invocations *= size;
    if (invocations > limits.maxComputeWorkGroupInvocations)
      return Status::error(
          "a workgroup of more than the " +
          std::to_string(limits.maxComputeWorkGroupInvocations) +
          " threads that " + name + " allows (maxComputeWorkGroupInvocations)");
  }
  if (kernel.subgroupThreads != 0)
    KF_RETURN_IF_ERROR(
        context.checkSubgroups(kernel.subgroupThreads, kernel.workgroupSize));
  else if (std::ranges::find(module.capabilities, cooperativeMatrix) !=
           module.capabilities.end())
    return Status::error("its SPIR-V module multiplies matrices of subgroups, "
                         "whose size the Executable does not state");
  if (kernel.scratchBytes > limits.maxComputeSharedMemorySize)
    return Status::error(std::to_string(kernel.scratchBytes) +
                         " bytes of workgroup memory, " + name + " has " +
                         std::to_string(limits.maxComputeSharedMemorySize) +
                         " (maxComputeSharedMemorySize)");
  return {};
}

Result<VulkanProgram::Layout> VulkanProgram::layoutFor(size_t bindingCount) {
  auto [it, inserted] = layouts.try_emplace(bindingCount);
  Layout &layout = it->second;
  if (!inserted)
    return layout;
  std::vector<VkDescriptorSetLayoutBinding> bindings(bindingCount + 1);
  for (size_t i = 0; i < bindings.size(); ++i) {
    bindings[i].binding = static_cast<uint32_t>(i);
    bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    bindings[i].descriptorCount = 1;
    bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo setInfo{
      VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  setInfo.bindingCount = static_cast<uint32_t>(bindings.size());
  setInfo.pBindings = bindings.data();
  KF_RETURN_IF_ERROR(
      vulkanStatus(context.vk.vkCreateDescriptorSetLayout(
                       context.device, &setInfo, nullptr, &layout.set),
                   "vkCreateDescriptorSetLayout"));
  VkPipelineLayoutCreateInfo info{
      VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = 1;
  info.pSetLayouts = &layout.set;
  KF_RETURN_IF_ERROR(
      vulkanStatus(context.vk.vkCreatePipelineLayout(context.device, &info,
                                                     nullptr, &layout.pipeline),
                   "vkCreatePipelineLayout"));
  return layout;
}

Status VulkanProgram::createPipeline(size_t kernel, const SpirvModule &module) {
  const VulkanDeviceFunctions &vk = context.vk;
  KF_ASSIGN_OR_RETURN(Layout layout, layoutFor(bindingCounts[kernel]));
  VkShaderModuleCreateInfo moduleInfo{
      VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  moduleInfo.codeSize = module.words.size() * sizeof(uint32_t);
  moduleInfo.pCode = module.words.data();
  VkShaderModule shader = VK_NULL_HANDLE;
  KF_RETURN_IF_ERROR(vulkanStatus(
      vk.vkCreateShaderModule(context.device, &moduleInfo, nullptr, &shader),
      "vkCreateShaderModule"));
  // What validation rejects must not reach the driver's compiler.
  Status status = context.finish(Status());
  if (status) {
    VkComputePipelineCreateInfo info{
        VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = shader;
    info.stage.pName = program().kernels[kernel].name.c_str();
    info.layout = layout.pipeline;
    // Kernels that number their subgroups count on whole ones of one size.
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroups{
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
    subgroups.requiredSubgroupSize = program().kernels[kernel].subgroupThreads;
    if (subgroups.requiredSubgroupSize != 0) {
      info.stage.pNext = &subgroups;
      info.stage.flags =
          VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
    status = vulkanStatus(
        vk.vkCreateComputePipelines(context.device, context.pipelineCache, 1,
                                    &info, nullptr, &pipelines[kernel]),
        "vkCreateComputePipelines");
  }
  vk.vkDestroyShaderModule(context.device, shader, nullptr);
  return status;
}

Result<uint64_t> VulkanProgram::byteRange(const DispatchSpec &dispatch,
                                          size_t number, int64_t pages) const {
  const kf_binding &binding = dispatch.bindings[number];
  std::string what = describe(binding);
  auto largestOf = [&](const TensorSpec &spec) {
    return checkedByteCount(spec.type,
                            resolveShape(spec.shape, program().largestSizes()));
  };
  int64_t bytes = 0; // that kernels may reach
  DataType type = DataType::F32;
  switch (binding.kind) {
  case KF_BINDING_ARENA:
    bytes = static_cast<int64_t>(dispatch.accessOf(number).bytes);
    if (bytes == 0)
      bytes = static_cast<int64_t>(program().arenaBytes - binding.offset);
    break;
  case KF_BINDING_WEIGHT: {
    const WeightSpec &weight = program().weights[binding.index];
    KF_ASSIGN_OR_RETURN(bytes, weight.packedBytes());
    type = weight.type;
    what += " '" + weight.names.front() + "'";
    break;
  }
  case KF_BINDING_CACHE: {
    const CacheSpec &cache = program().caches[binding.index];
    KF_ASSIGN_OR_RETURN(bytes, cache.bytes(pages));
    bytes /= cache.layers;
    type = cache.type;
    what = "layer " + std::to_string(binding.offset) + " of " + what;
    break;
  }
  case KF_BINDING_INPUT: {
    KF_ASSIGN_OR_RETURN(bytes, largestOf(program().inputs[binding.index]));
    type = program().inputs[binding.index].type;
    break;
  }
  case KF_BINDING_OUTPUT: {
    KF_ASSIGN_OR_RETURN(bytes, largestOf(program().outputs[binding.index]));
    type = program().outputs[binding.index].type;
    break;
  }
  }
  // Kernels count elements with 32 bits and a sign. Where they are bytes, as
  // blocks are, a binding could have more.
  if (bytes > std::numeric_limits<int32_t>::max() &&
      (isBlock(type) || sizeOf(type) == 1))
    return Status::error(what + " has " + std::to_string(bytes) +
                         " bytes, of which Vulkan's kernels count 2147483647; "
                         "use a smaller model, context or token count");
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

Status
VulkanProgram::createDescriptorSets(VkDescriptorPool &pool,
                                    std::vector<VkDescriptorSet> &sets) const {
  if (program().dispatches.empty())
    return {};
  uint64_t descriptors = 0;
  std::vector<VkDescriptorSetLayout> setLayouts;
  for (const DispatchSpec &dispatch : program().dispatches) {
    size_t count = bindingCounts[dispatch.kernel];
    descriptors += count + 1;
    setLayouts.push_back(layouts.at(count).set);
  }
  if (descriptors > std::numeric_limits<uint32_t>::max())
    return Status::error(std::to_string(descriptors) +
                         " descriptors are more than Vulkan counts");
  VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                            static_cast<uint32_t>(descriptors)};
  VkDescriptorPoolCreateInfo poolInfo{
      VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  poolInfo.maxSets = static_cast<uint32_t>(setLayouts.size());
  poolInfo.poolSizeCount = 1;
  poolInfo.pPoolSizes = &size;
  KF_RETURN_IF_ERROR(
      vulkanStatus(context.vk.vkCreateDescriptorPool(context.device, &poolInfo,
                                                     nullptr, &pool),
                   "vkCreateDescriptorPool"));
  VkDescriptorSetAllocateInfo info{
      VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  info.descriptorPool = pool;
  info.descriptorSetCount = poolInfo.maxSets;
  info.pSetLayouts = setLayouts.data();
  sets.resize(setLayouts.size());
  return vulkanStatus(
      context.vk.vkAllocateDescriptorSets(context.device, &info, sets.data()),
      "vkAllocateDescriptorSets");
}
