//===- VulkanInstance.h - Loader, instance and validation -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Opens the Vulkan loader, makes an instance, lists its physical devices and
// collects what the validation layer says.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_VULKAN_VULKANINSTANCE_H
#define KF_RUNTIME_DEVICES_VULKAN_VULKANINSTANCE_H

#include "runtime/core/Status.h"
#include "runtime/devices/Vulkan/VulkanFunctions.h"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// "VK_ERROR_DEVICE_LOST" and the like; "VkResult N" for unknown codes.
std::string nameOf(VkResult result);
/// `what: VK_ERROR_...` unless `result` is VK_SUCCESS.
Status vulkanStatus(VkResult result, const char *what);

/// Validation messages that no call has reported yet. Any thread may add one.
class VulkanMessages {
public:
  explicit VulkanMessages(std::function<void(std::string_view)> listener)
      : listener(std::move(listener)) {}
  /// For C code to call, which nothing may be thrown through: what the listener
  /// throws, or the want of memory, is part of the next error.
  void add(std::string_view message) noexcept;
  /// All messages since the last call as one error; success if there are none.
  Status take();
  bool hasListener() const { return static_cast<bool>(listener); }

private:
  std::mutex mutex;
  std::vector<std::string> pending;
  bool hasFailed = false; ///< a message or its listener, since take()
  std::function<void(std::string_view)> listener;
};

/// A Vulkan instance; owns everything it opened but the loader, which stays in
/// the process. One thread at a time.
class VulkanInstance {
public:
  /// `listener` receives validation messages at once; may be empty. Errors: no
  /// loader, no driver, no validation layer.
  static Result<std::unique_ptr<VulkanInstance>>
  create(bool validation, std::function<void(std::string_view)> listener);
  ~VulkanInstance();
  VulkanInstance(const VulkanInstance &) = delete;
  VulkanInstance &operator=(const VulkanInstance &) = delete;

  /// In the driver's order; an error if there is none.
  Result<std::vector<VkPhysicalDevice>> physicalDevices() const;
  /// "name, kind, Vulkan 1.3.230".
  std::string describe(VkPhysicalDevice physical) const;

  VulkanInstanceFunctions vk;
  VulkanMessages messages;

private:
  explicit VulkanInstance(std::function<void(std::string_view)> listener)
      : messages(std::move(listener)) {}

  VkInstance instance = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_VULKAN_VULKANINSTANCE_H
