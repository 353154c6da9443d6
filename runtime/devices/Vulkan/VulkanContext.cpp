//===- VulkanContext.cpp - A logical device and its queue -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanContext.h"

#include "runtime/devices/Vulkan/SpirvModule.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>

using namespace kf;

namespace {

/// Order of preference among kinds of devices; smaller is better.
int rankOf(VkPhysicalDeviceType type) {
  switch (type) {
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    return 0;
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
    return 1;
  case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
    return 2;
  case VK_PHYSICAL_DEVICE_TYPE_CPU:
    return 3;
  default:
    return 4;
  }
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char &c : result)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool validationWanted(const VulkanDeviceOptions &options) {
  const char *variable = std::getenv("KF_VULKAN_VALIDATION");
  return options.validation ||
         (variable && *variable && std::strcmp(variable, "0") != 0);
}

} // namespace

Result<std::unique_ptr<VulkanContext>>
VulkanContext::create(const VulkanDeviceOptions &options) {
  std::unique_ptr<VulkanContext> self(new VulkanContext(options));
  KF_ASSIGN_OR_RETURN(
      self->instance,
      VulkanInstance::create(validationWanted(options), options.onMessage));
  KF_RETURN_IF_ERROR(self->choosePhysicalDevice());
  KF_RETURN_IF_ERROR(self->finish(self->createDevice()));
  KF_RETURN_IF_ERROR(self->finish(self->createPipelineCache()));
  return self;
}

Status VulkanContext::choosePhysicalDevice() {
  KF_ASSIGN_OR_RETURN(std::vector<VkPhysicalDevice> devices,
                      instance->physicalDevices());
  std::string known;
  for (size_t i = 0; i < devices.size(); ++i)
    known += (i ? "; " : "") + std::to_string(i) + ": " +
             instance->describe(devices[i]);

  const std::string &wanted = options.device;
  size_t index = 0;
  auto [end, error] =
      std::from_chars(wanted.data(), wanted.data() + wanted.size(), index);
  bool numeric = error != std::errc::invalid_argument &&
                 end == wanted.data() + wanted.size();
  if (numeric) {
    if (error != std::errc() || index >= devices.size())
      return Status::error("no Vulkan device " + wanted + "; known are " +
                               known,
                           StatusCode::NotFound);
    physical = devices[index];
  } else {
    int best = 0;
    for (VkPhysicalDevice candidate : devices) {
      VkPhysicalDeviceProperties found;
      instance->vk.vkGetPhysicalDeviceProperties(candidate, &found);
      if (lower(found.deviceName).find(lower(wanted)) == std::string::npos)
        continue;
      int rank = rankOf(found.deviceType);
      if (!physical || rank < best) {
        physical = candidate;
        best = rank;
      }
    }
    if (!physical)
      return Status::error("no Vulkan device named '" + wanted +
                               "'; known are " + known,
                           StatusCode::NotFound);
  }

  instance->vk.vkGetPhysicalDeviceProperties(physical, &properties);
  if (properties.apiVersion < VK_API_VERSION_1_2)
    return Status::error("Vulkan device " + instance->describe(physical) +
                             ": Vulkan 1.2 is needed; update its driver",
                         StatusCode::Unavailable);
  return {};
}

namespace {

// VK_KHR_cooperative_matrix and VK_KHR_shader_bfloat16, which are younger than
// the headers that distributions have.
struct CooperativeMatrixProperties {
  VkStructureType sType = static_cast<VkStructureType>(1000506001);
  void *pNext = nullptr;
  uint32_t m = 0, n = 0, k = 0;
  int a = 0, b = 0, c = 0, result = 0;
  VkBool32 saturates = VK_FALSE;
  int scope = 0;
};
struct CooperativeMatrixFeatures {
  VkStructureType sType = static_cast<VkStructureType>(1000506000);
  void *pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE, robustBufferAccess = VK_FALSE;
};
struct ShaderBfloat16Features {
  VkStructureType sType = static_cast<VkStructureType>(1000141000);
  void *pNext = nullptr;
  VkBool32 type = VK_FALSE, dotProduct = VK_FALSE, cooperativeMatrix = VK_FALSE;
};
bool hasExtension(std::span<const VkExtensionProperties> known,
                  const char *name) {
  return std::ranges::any_of(known, [&](const VkExtensionProperties &e) {
    return std::strcmp(e.extensionName, name) == 0;
  });
}

constexpr const char *matrixExtension = "VK_KHR_cooperative_matrix",
                     *bfloat16Extension = "VK_KHR_shader_bfloat16";
constexpr int componentFloat16 = 0, componentFloat32 = 1, componentSint8 = 3,
              componentSint32 = 5, componentBfloat16 = 1000141000,
              scopeSubgroup = 3;

} // namespace

Status VulkanContext::createDevice() {
  const VulkanInstanceFunctions &ivk = instance->vk;
  ivk.vkGetPhysicalDeviceMemoryProperties(physical, &memoryProperties);

  VkPhysicalDeviceMaintenance3Properties maintenance{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  subgroup.pNext = &maintenance;
  floats.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
  maintenance.pNext = &floats;
  VkPhysicalDeviceVulkan13Properties properties13{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES};
  const bool is13 = properties.apiVersion >= VK_API_VERSION_1_3;
  if (is13)
    floats.pNext = &properties13;
  VkPhysicalDeviceProperties2 properties2{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  properties2.pNext = &subgroup;
  ivk.vkGetPhysicalDeviceProperties2(physical, &properties2);
  subgroup.pNext = floats.pNext = nullptr;
  maxAllocationBytes = maintenance.maxMemoryAllocationSize;
  maxBufferBytes = is13 ? properties13.maxBufferSize : UINT64_MAX;

  uint32_t families = 0;
  ivk.vkGetPhysicalDeviceQueueFamilyProperties(physical, &families, nullptr);
  std::vector<VkQueueFamilyProperties> family(families);
  ivk.vkGetPhysicalDeviceQueueFamilyProperties(physical, &families,
                                               family.data());
  auto compute = std::find_if(
      family.begin(), family.end(), [](const VkQueueFamilyProperties &f) {
        return f.queueCount > 0 && (f.queueFlags & VK_QUEUE_COMPUTE_BIT);
      });
  if (compute == family.end())
    return Status::error(std::string("Vulkan device ") + deviceName() +
                             " has no compute queue",
                         StatusCode::Unsupported);
  queueFamily = static_cast<uint32_t>(compute - family.begin());
  timestampBits = compute->timestampValidBits;

  uint32_t extensions = 0;
  ivk.vkEnumerateDeviceExtensionProperties(physical, nullptr, &extensions,
                                           nullptr);
  std::vector<VkExtensionProperties> extension(extensions);
  ivk.vkEnumerateDeviceExtensionProperties(physical, nullptr, &extensions,
                                           extension.data());
  const char *budget = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
  hasBudget = hasExtension(extension, budget);

  // Ask what there is, then keep what kernels can use.
  VkPhysicalDeviceVulkan11Features has11{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features has12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan13Features has13{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  has11.pNext = &has12;
  VkPhysicalDeviceFeatures2 has{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  has.pNext = &has11;
  // Structures of extensions, where these are there, lie behind all others.
  CooperativeMatrixFeatures matrices;
  ShaderBfloat16Features bfloat16;
  auto add = [](auto &structure, void *next) {
    structure.pNext = next;
    return &structure;
  };
  void *chain = nullptr;
  const bool knowsMatrices = is13 && hasExtension(extension, matrixExtension);
  const bool knowsBfloat16 =
      knowsMatrices && hasExtension(extension, bfloat16Extension);
  if (knowsMatrices)
    chain = add(matrices, chain);
  if (knowsBfloat16)
    chain = add(bfloat16, chain);
  has12.pNext = is13 ? &has13 : chain;
  has13.pNext = chain;
  ivk.vkGetPhysicalDeviceFeatures2(physical, &has);
  if (has13.subgroupSizeControl && has13.computeFullSubgroups &&
      (properties13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
    fewestSubgroupThreads = properties13.minSubgroupSize;
    mostSubgroupThreads = properties13.maxSubgroupSize;
    mostSubgroups = properties13.maxComputeWorkgroupSubgroups;
  }
  // Kernels with matrices number the subgroups of a workgroup, which all have
  // as many threads, and have workgroup memory in common by Vulkan's model.
  hasMatrices = matrices.cooperativeMatrix && has12.vulkanMemoryModel &&
                mostSubgroupThreads != 0;
  hasBfloat16 = hasMatrices && bfloat16.type && bfloat16.cooperativeMatrix;
  findUnits(extension);

  features.shaderFloat64 = has.features.shaderFloat64;
  features.shaderInt64 = has.features.shaderInt64;
  features.shaderInt16 = has.features.shaderInt16;
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  features11.storageBuffer16BitAccess = has11.storageBuffer16BitAccess;
  features11.uniformAndStorageBuffer16BitAccess =
      has11.uniformAndStorageBuffer16BitAccess;
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.shaderFloat16 = has12.shaderFloat16;
  features12.shaderInt8 = has12.shaderInt8;
  features12.storageBuffer8BitAccess = has12.storageBuffer8BitAccess;
  features12.uniformAndStorageBuffer8BitAccess =
      has12.uniformAndStorageBuffer8BitAccess;
  features12.vulkanMemoryModel = has12.vulkanMemoryModel;
  features12.vulkanMemoryModelDeviceScope = has12.vulkanMemoryModelDeviceScope;
  features12.shaderSubgroupExtendedTypes = has12.shaderSubgroupExtendedTypes;
  features12.timelineSemaphore = VK_TRUE; // every device of Vulkan 1.2 has them
  features13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  features13.shaderIntegerDotProduct = has13.shaderIntegerDotProduct;
  features13.subgroupSizeControl = has13.subgroupSizeControl;
  features13.computeFullSubgroups = has13.computeFullSubgroups;

  std::vector<const char *> enabled;
  if (hasBudget)
    enabled.push_back(budget);
  chain = nullptr;
  matrices.robustBufferAccess = bfloat16.dotProduct = VK_FALSE;
  if (hasMatrices) {
    enabled.push_back(matrixExtension);
    chain = add(matrices, chain);
  }
  if (hasBfloat16) {
    enabled.push_back(bfloat16Extension);
    chain = add(bfloat16, chain);
  }
  features11.pNext = &features12;
  features12.pNext = is13 ? &features13 : chain;
  features13.pNext = chain;
  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queueInfo{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queueInfo.queueFamilyIndex = queueFamily;
  queueInfo.queueCount = 1;
  queueInfo.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &features11;
  info.pEnabledFeatures = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queueInfo;
  info.enabledExtensionCount = static_cast<uint32_t>(enabled.size());
  info.ppEnabledExtensionNames = enabled.data();
  VkDevice created = VK_NULL_HANDLE;
  KF_RETURN_IF_ERROR(
      vulkanStatus(ivk.vkCreateDevice(physical, &info, nullptr, &created),
                   "vkCreateDevice"));
  features11.pNext = features12.pNext = features13.pNext = nullptr;

  // The destructor needs this one before any other can be missing.
  vk.vkDestroyDevice = reinterpret_cast<PFN_vkDestroyDevice>(
      ivk.vkGetDeviceProcAddr(created, "vkDestroyDevice"));
  device = created;
#define KF_LOAD(name)                                                          \
  vk.name =                                                                    \
      reinterpret_cast<PFN_##name>(ivk.vkGetDeviceProcAddr(device, #name));    \
  if (!vk.name)                                                                \
    return Status::error("the Vulkan driver has no " #name ": update it",      \
                         StatusCode::Unavailable);
  KF_VULKAN_DEVICE_FUNCTIONS(KF_LOAD)
#undef KF_LOAD
  vk.vkGetDeviceQueue(device, queueFamily, 0, &queue);

  VkSemaphoreTypeCreateInfo typeInfo{
      VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  typeInfo.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphoreInfo{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  semaphoreInfo.pNext = &typeInfo;
  KF_RETURN_IF_ERROR(vulkanStatus(
      vk.vkCreateSemaphore(device, &semaphoreInfo, nullptr, &timeline),
      "vkCreateSemaphore"));
  VkCommandPoolCreateInfo poolInfo{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  poolInfo.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  poolInfo.queueFamilyIndex = queueFamily;
  KF_RETURN_IF_ERROR(vulkanStatus(
      vk.vkCreateCommandPool(device, &poolInfo, nullptr, &commandPool),
      "vkCreateCommandPool"));
  KF_ASSIGN_OR_RETURN(clearCommands, allocateCommands());
  return {};
}

Status VulkanContext::createPipelineCache() {
  pipelineFile.emplace(options.cacheFolder, properties, options.onWarning);
  const std::string known = pipelineFile->load();
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = known.size();
  info.pInitialData = known.data();
  keptBytes = known.size();
  return vulkanStatus(
      vk.vkCreatePipelineCache(device, &info, nullptr, &pipelineCache),
      "vkCreatePipelineCache");
}

void VulkanContext::keepPipelines() {
  size_t bytes = 0;
  if (options.cacheFolder.empty() ||
      vk.vkGetPipelineCacheData(device, pipelineCache, &bytes, nullptr) !=
          VK_SUCCESS ||
      bytes <= keptBytes || bytes > PipelineCacheFile::maxBytes)
    return;
  std::string data(bytes, '\0');
  if (vk.vkGetPipelineCacheData(device, pipelineCache, &bytes, data.data()) !=
      VK_SUCCESS)
    return;
  keptBytes = bytes;
  pipelineFile->store(std::string_view(data).substr(0, bytes));
}

VulkanContext::~VulkanContext() {
  if (!device)
    return;
  // A GPU that hangs may still read what it was given: leave all of it to the
  // end of the process.
  if (!idle()) {
    (void)instance.release();
    return;
  }
  if (commandPool)
    vk.vkDestroyCommandPool(device, commandPool, nullptr);
  if (pipelineCache)
    vk.vkDestroyPipelineCache(device, pipelineCache, nullptr);
  if (timeline)
    vk.vkDestroySemaphore(device, timeline, nullptr);
  if (vk.vkDestroyDevice)
    vk.vkDestroyDevice(device, nullptr);
}

Status VulkanContext::finish(Status status) {
  Status messages = instance->messages.take();
  if (messages)
    return status;
  return status ? messages
                : Status::error(status.message() + "; " + messages.message(),
                                status.code());
}

std::string VulkanContext::description() const {
  uint64_t memory = 0;
  for (uint32_t i = 0; i < memoryProperties.memoryHeapCount; ++i)
    if (memoryProperties.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      memory = std::max<uint64_t>(memory, memoryProperties.memoryHeaps[i].size);
  std::string text = instance->describe(physical) + ", " +
                     std::to_string(memory >> 20) + " MiB, buffers up to " +
                     std::to_string(limits().maxStorageBufferRange >> 20) +
                     " MiB, workgroups of " +
                     std::to_string(limits().maxComputeSharedMemorySize >> 10) +
                     " KiB, subgroups of " +
                     std::to_string(subgroup.subgroupSize);
  if (hasSubgroups(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT))
    text += " that add up";
  if (features12.shaderFloat16 && features11.storageBuffer16BitAccess)
    text += ", f16";
  if (features12.shaderInt8 && features12.storageBuffer8BitAccess)
    text += ", i8";
  if (features13.shaderIntegerDotProduct)
    text += ", dot product";
  if (!matrixTypes.empty())
    text += ", matrices of " + matrixTypes;
  return text;
}

bool VulkanContext::hasSubgroups(uint32_t operations) const {
  return (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
         (subgroup.supportedOperations & operations) == operations;
}

bool kf::multipliesManyRows(std::string_view types,
                            std::string_view matrixTypes) {
  auto has = [](std::string_view list, std::string_view type) {
    return (" " + std::string(list) + ",")
               .find(" " + std::string(type) + ",") != std::string::npos;
  };
  return has(types, "f16") && has(types, "i16") && has(matrixTypes, "f16");
}

bool kf::roundsHalves(const VkPhysicalDeviceFloatControlsProperties &floats) {
  // Where f32 alone is on its own, f16 goes with f64.
  return floats.shaderRoundingModeRTEFloat16 &&
         floats.roundingModeIndependence !=
             VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
}

void VulkanContext::findUnits(std::span<const VkExtensionProperties> known) {
  auto has = [&](const char *name) { return hasExtension(known, name); };
  VkPhysicalDeviceProperties2 properties2{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceShaderCorePropertiesAMD amd{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
  const VulkanInstanceFunctions &ivk = instance->vk;
  if (has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) {
    properties2.pNext = &nvidia;
    ivk.vkGetPhysicalDeviceProperties2(physical, &properties2);
    multiprocessors = nvidia.shaderSMCount;
  } else if (has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) {
    properties2.pNext = &amd;
    ivk.vkGetPhysicalDeviceProperties2(physical, &properties2);
    multiprocessors = amd.shaderEngineCount * amd.shaderArraysPerEngineCount *
                      amd.computeUnitsPerShaderArray;
  }
  // Kernels with matrices round to the nearest f16, and their threads have
  // scales from one another.
  if (!roundsHalves(floats) || !hasSubgroups(VK_SUBGROUP_FEATURE_SHUFFLE_BIT))
    return;
  using GetMatrices =
      VkResult (*)(VkPhysicalDevice, uint32_t *, CooperativeMatrixProperties *);
  auto getMatrices = reinterpret_cast<GetMatrices>(
      ivk.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR);
  uint32_t count = 0;
  if (!getMatrices || !hasMatrices ||
      getMatrices(physical, &count, nullptr) != VK_SUCCESS)
    return;
  std::vector<CooperativeMatrixProperties> matrices(count);
  if (getMatrices(physical, &count, matrices.data()) != VK_SUCCESS)
    return;
  auto add = [&](const char *type, int element, int sum) {
    if (std::ranges::any_of(
            matrices, [&](const CooperativeMatrixProperties &each) {
              // What is not listed as it is may not be used.
              return each.m == 16 && each.n == 16 &&
                     (each.k == 16 ||
                      (element == componentSint8 && each.k == 32)) &&
                     each.a == element && each.b == element && each.c == sum &&
                     each.result == sum && each.scope == scopeSubgroup;
            }))
      matrixTypes += (matrixTypes.empty() ? "" : ", ") + std::string(type);
  };
  add("f16", componentFloat16, componentFloat32);
  if (hasBfloat16)
    add("bf16", componentBfloat16, componentFloat32);
  add("i8", componentSint8, componentSint32);
}

std::string VulkanContext::types() const {
  std::string types;
  auto add = [&](const char *type, bool has) {
    if (has)
      types += (types.empty() ? "" : ", ") + std::string(type);
  };
  // Kernels that widen f16 need its subnormal numbers too. Where one mode is
  // for all widths, both keep theirs.
  const bool keepsFloat32 = floats.shaderDenormPreserveFloat32;
  add("f16",
      features12.shaderFloat16 && features11.storageBuffer16BitAccess &&
          floats.shaderDenormPreserveFloat16 &&
          (keepsFloat32 || floats.denormBehaviorIndependence !=
                               VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE));
  add("i8", features12.shaderInt8 && features12.storageBuffer8BitAccess);
  add("i16", features.shaderInt16 && features11.storageBuffer16BitAccess);
  add("i64", features.shaderInt64);
  return types;
}

std::string VulkanContext::target() const {
  const std::string types = this->types();
  return "#kf.vulkan_target<threads = " +
         std::to_string(std::min(limits().maxComputeWorkGroupInvocations,
                                 limits().maxComputeWorkGroupSize[0])) +
         ", memory = " + std::to_string(limits().maxComputeSharedMemorySize) +
         ", subgroup = " + std::to_string(subgroup.subgroupSize) +
         (hasSubgroups(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT)
              ? ", arithmetic = true"
              : "") +
         (hasSubgroups(VK_SUBGROUP_FEATURE_SHUFFLE_BIT) ? ", shuffle = true"
                                                        : "") +
         (types.empty() ? "" : ", types = [" + types + "]") +
         (floats.shaderDenormPreserveFloat32 ? ", denorm_preserve = true"
                                             : "") +
         (features13.shaderIntegerDotProduct ? ", int8_dot = true" : "") +
         (matrixTypes.empty() ? "" : ", matrices = [" + matrixTypes + "]") +
         (multiprocessors > 0
              ? ", multiprocessors = " + std::to_string(multiprocessors)
              : "") +
         ">";
}

DeviceMemory VulkanContext::memory() const {
  uint32_t heap = 0;
  for (uint32_t i = 0; i < memoryProperties.memoryHeapCount; ++i) {
    auto rank = [&](uint32_t index) {
      const VkMemoryHeap &candidate = memoryProperties.memoryHeaps[index];
      return std::pair(candidate.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT,
                       candidate.size);
    };
    heap = rank(i) > rank(heap) ? i : heap;
  }
  DeviceMemory memory;
  memory.total = memoryProperties.memoryHeaps[heap].size;
  uint64_t most = memory.total, used = heapUse[heap];
  if (hasBudget) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties2{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    properties2.pNext = &budget;
    instance->vk.vkGetPhysicalDeviceMemoryProperties2(physical, &properties2);
    most = std::min<uint64_t>(most, budget.heapBudget[heap]);
    used = budget.heapUsage[heap];
  }
  memory.free = most - std::min(most, used);
  memory.largestBuffer =
      std::min({memory.total, maxAllocationBytes, maxBufferBytes}) /
      VulkanMemory::granularity * VulkanMemory::granularity;
  return memory;
}

Result<uint64_t> VulkanContext::nanosecondsBetween(uint64_t first,
                                                   uint64_t second) const {
  if (timestampBits == 0)
    return Status::error(std::string(deviceName()) +
                             " cannot measure the times of dispatches",
                         StatusCode::Unsupported);
  const uint64_t mask =
      timestampBits >= 64 ? UINT64_MAX : (uint64_t(1) << timestampBits) - 1;
  return static_cast<uint64_t>(static_cast<double>((second - first) & mask) *
                               limits().timestampPeriod);
}

Status VulkanContext::checkCapability(uint32_t capability) const {
  auto has = [&]() -> bool {
    switch (capability) {
    case 0: // Matrix
    case 1: // Shader
      return true;
    case 9:
      return features12.shaderFloat16;
    case 10:
      return features.shaderFloat64;
    case 11:
      return features.shaderInt64;
    case 22:
      return features.shaderInt16;
    case 39:
      return features12.shaderInt8;
    case 4433:
      return features11.storageBuffer16BitAccess;
    case 4434:
      return features11.uniformAndStorageBuffer16BitAccess;
    case 4448:
      return features12.storageBuffer8BitAccess;
    case 4449:
      return features12.uniformAndStorageBuffer8BitAccess;
    case 4464: // DenormPreserve; of which floats, checkDenormPreserve() knows
      return true;
    case 4467: // RoundingModeRTE; of which floats, checkRounding() knows
      return roundsHalves(floats);
    case 5345:
      return features12.vulkanMemoryModel;
    case 5346:
      return features12.vulkanMemoryModelDeviceScope;
    case 6022: // of the shapes that kernels have
      return multipliesMatrices();
    case 5116: // BFloat16TypeKHR
      return hasBfloat16;
    case 5118: // BFloat16CooperativeMatrixKHR
      return matrixTypes.find("bf16") != std::string::npos;
    case 6016:
    case 6017:
    case 6018:
    case 6019:
      return features13.shaderIntegerDotProduct;
    default:
      // GroupNonUniform..GroupNonUniformQuad are in the order of Vulkan's bits.
      return capability >= 61 && capability <= 68 &&
             (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
             (subgroup.supportedOperations & (1u << (capability - 61)));
    }
  };
  if (has())
    return {};
  return Status::error("SPIR-V capability " + capabilityName(capability) +
                           " is not supported on " + deviceName(),
                       StatusCode::Unsupported);
}

Status VulkanContext::checkDenormPreserve(uint32_t width) const {
  if ((width == 16 && floats.shaderDenormPreserveFloat16) ||
      (width == 32 && floats.shaderDenormPreserveFloat32) ||
      (width == 64 && floats.shaderDenormPreserveFloat64))
    return {};
  return Status::error("SPIR-V asks to keep the subnormal numbers of floats "
                       "of " +
                           std::to_string(width) + " bits, which " +
                           deviceName() + " cannot",
                       StatusCode::Unsupported);
}

Status VulkanContext::checkRounding(uint32_t width) const {
  if (width == 16 && roundsHalves(floats))
    return {};
  return Status::error(
      "SPIR-V asks to round floats of " + std::to_string(width) +
          " bits to the nearest" +
          (width == 16 ? ", which " + std::string(deviceName()) + " cannot"
                       : ": kernels may ask for that of 16 bits alone"),
      StatusCode::Unsupported);
}

Status
VulkanContext::checkSubgroups(uint32_t threads,
                              const std::array<uint32_t, 3> &size) const {
  const auto error = [&](const std::string &what) {
    return Status::error("compiled for subgroups of " +
                             std::to_string(threads) + " threads; " + what,
                         StatusCode::Unsupported);
  };
  if (mostSubgroupThreads == 0)
    return error(std::string(deviceName()) +
                 " takes as many as its driver likes");
  if (!std::has_single_bit(threads) || threads < fewestSubgroupThreads ||
      threads > mostSubgroupThreads)
    return error(std::string(deviceName()) + " has those of " +
                 std::to_string(fewestSubgroupThreads) + " to " +
                 std::to_string(mostSubgroupThreads) +
                 ", compile for this device");
  if (size[0] % threads != 0)
    return error("the workgroup's " + std::to_string(size[0]) +
                 " threads along x are no multiple");
  const uint64_t subgroups = uint64_t(size[0]) * size[1] * size[2] / threads;
  if (subgroups > mostSubgroups)
    return error("the workgroup has " + std::to_string(subgroups) +
                 " of them, " + deviceName() + " allows " +
                 std::to_string(mostSubgroups) +
                 " (maxComputeWorkgroupSubgroups)");
  return {};
}

uint32_t VulkanContext::maxSpirvMinor() const {
  return properties.apiVersion >= VK_API_VERSION_1_3 ? 6 : 5;
}
