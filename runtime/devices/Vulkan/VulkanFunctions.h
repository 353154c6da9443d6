//===- VulkanFunctions.h - Entry points found at run time -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tables of the Vulkan functions that the device calls. Include this instead
// of <vulkan/vulkan.h>: nothing links against the loader.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_VULKAN_VULKANFUNCTIONS_H
#define KF_RUNTIME_DEVICES_VULKAN_VULKANFUNCTIONS_H

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan.h>

namespace kf {

#define KF_VULKAN_INSTANCE_FUNCTIONS(X)                                        \
  X(vkCreateDevice)                                                            \
  X(vkDestroyInstance)                                                         \
  X(vkEnumerateDeviceExtensionProperties)                                      \
  X(vkEnumeratePhysicalDevices)                                                \
  X(vkGetDeviceProcAddr)                                                       \
  X(vkGetPhysicalDeviceFeatures2)                                              \
  X(vkGetPhysicalDeviceMemoryProperties)                                       \
  X(vkGetPhysicalDeviceMemoryProperties2)                                      \
  X(vkGetPhysicalDeviceProperties)                                             \
  X(vkGetPhysicalDeviceProperties2)                                            \
  X(vkGetPhysicalDeviceQueueFamilyProperties)

#define KF_VULKAN_DEVICE_FUNCTIONS(X)                                          \
  X(vkAllocateCommandBuffers)                                                  \
  X(vkAllocateDescriptorSets)                                                  \
  X(vkAllocateMemory)                                                          \
  X(vkBeginCommandBuffer)                                                      \
  X(vkBindBufferMemory)                                                        \
  X(vkCmdBindDescriptorSets)                                                   \
  X(vkCmdBindPipeline)                                                         \
  X(vkCmdCopyBuffer)                                                           \
  X(vkCmdDispatch)                                                             \
  X(vkCmdFillBuffer)                                                           \
  X(vkCmdPipelineBarrier)                                                      \
  X(vkCmdResetQueryPool)                                                       \
  X(vkCmdUpdateBuffer)                                                         \
  X(vkCmdWriteTimestamp)                                                       \
  X(vkCreateBuffer)                                                            \
  X(vkCreateCommandPool)                                                       \
  X(vkCreateComputePipelines)                                                  \
  X(vkCreateDescriptorPool)                                                    \
  X(vkCreateDescriptorSetLayout)                                               \
  X(vkCreatePipelineCache)                                                     \
  X(vkCreatePipelineLayout)                                                    \
  X(vkCreateQueryPool)                                                         \
  X(vkCreateSemaphore)                                                         \
  X(vkCreateShaderModule)                                                      \
  X(vkDestroyBuffer)                                                           \
  X(vkDestroyCommandPool)                                                      \
  X(vkDestroyDescriptorPool)                                                   \
  X(vkDestroyDescriptorSetLayout)                                              \
  X(vkDestroyDevice)                                                           \
  X(vkDestroyPipeline)                                                         \
  X(vkDestroyPipelineCache)                                                    \
  X(vkDestroyPipelineLayout)                                                   \
  X(vkDestroyQueryPool)                                                        \
  X(vkDestroySemaphore)                                                        \
  X(vkDestroyShaderModule)                                                     \
  X(vkEndCommandBuffer)                                                        \
  X(vkFreeCommandBuffers)                                                      \
  X(vkFreeMemory)                                                              \
  X(vkGetBufferMemoryRequirements)                                             \
  X(vkGetDeviceQueue)                                                          \
  X(vkGetPipelineCacheData)                                                    \
  X(vkGetQueryPoolResults)                                                     \
  X(vkGetSemaphoreCounterValue)                                                \
  X(vkMapMemory)                                                               \
  X(vkQueueSubmit)                                                             \
  X(vkUpdateDescriptorSets)                                                    \
  X(vkWaitSemaphores)

#define KF_DECLARE_VULKAN_FUNCTION(name) PFN_##name name = nullptr;
struct VulkanInstanceFunctions {
  KF_VULKAN_INSTANCE_FUNCTIONS(KF_DECLARE_VULKAN_FUNCTION)
  /// Null where the loader is older than it; its type is younger than headers.
  PFN_vkVoidFunction vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
      nullptr;
  /// Null unless validation is on.
  PFN_vkCreateDebugUtilsMessengerEXT vkCreateDebugUtilsMessengerEXT = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT vkDestroyDebugUtilsMessengerEXT = nullptr;
};
struct VulkanDeviceFunctions {
  KF_VULKAN_DEVICE_FUNCTIONS(KF_DECLARE_VULKAN_FUNCTION)
};
#undef KF_DECLARE_VULKAN_FUNCTION

} // namespace kf

#endif // KF_RUNTIME_DEVICES_VULKAN_VULKANFUNCTIONS_H
