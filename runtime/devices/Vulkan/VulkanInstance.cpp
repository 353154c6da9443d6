//===- VulkanInstance.cpp - Loader, instance and validation ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanInstance.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <set>

using namespace kf;

namespace {

constexpr const char *validationLayer = "VK_LAYER_KHRONOS_validation";

/// The loader's one exported function, or an error. The library is never
/// closed: drivers leave threads and thread-local destructors behind.
Result<PFN_vkGetInstanceProcAddr> openLoader() {
  void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status::error(
        "no Vulkan loader (libvulkan.so.1): install libvulkan1 "
        "and a driver such as mesa-vulkan-drivers",
        StatusCode::Unavailable);
  auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      dlsym(library, "vkGetInstanceProcAddr"));
  if (!get)
    return Status::error("libvulkan.so.1 has no vkGetInstanceProcAddr: "
                         "reinstall the Vulkan loader",
                         StatusCode::Unavailable);
  return get;
}

/// Nothing is thrown through the C library, which holds a lock meanwhile.
std::set<std::string> loadedLibraries() {
  struct {
    std::set<std::string> names;
    std::exception_ptr failure;
  } found;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *user) {
        auto &result = *static_cast<decltype(found) *>(user);
        try {
          if (info->dlpi_name && *info->dlpi_name)
            result.names.insert(info->dlpi_name);
        } catch (...) {
          result.failure = std::current_exception();
        }
        return result.failure ? 1 : 0;
      },
      &found);
  if (found.failure)
    std::rethrow_exception(found.failure);
  return std::move(found.names);
}

/// Keeps the drivers and layers that came since `before` in the process when
/// their instance goes: the next instance opens faster, and leak checkers can
/// still name them.
void keepLibrariesSince(const std::set<std::string> &before) {
  for (const std::string &name : loadedLibraries())
    if (!before.count(name))
      dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

VKAPI_ATTR VkBool32 VKAPI_CALL receiveMessage(
    VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
    const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  static_cast<VulkanMessages *>(user)->add(data->pMessage ? data->pMessage
                                                          : "(no text)");
  return VK_FALSE;
}

bool hasLayer(PFN_vkEnumerateInstanceLayerProperties enumerate,
              const char *name) {
  uint32_t count = 0;
  if (!enumerate || enumerate(&count, nullptr) != VK_SUCCESS)
    return false;
  std::vector<VkLayerProperties> layers(count);
  if (enumerate(&count, layers.data()) < VK_SUCCESS)
    return false;
  return std::any_of(layers.begin(), layers.begin() + count,
                     [&](const VkLayerProperties &layer) {
                       return std::strcmp(layer.layerName, name) == 0;
                     });
}

const char *kindOf(VkPhysicalDeviceType type) {
  switch (type) {
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    return "discrete GPU";
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
    return "integrated GPU";
  case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
    return "virtual GPU";
  case VK_PHYSICAL_DEVICE_TYPE_CPU:
    return "CPU";
  default:
    return "other";
  }
}

constexpr const char *noDriver =
    "no Vulkan driver: install one for the GPU, or mesa-vulkan-drivers for a "
    "device on the CPU";

} // namespace

std::string kf::nameOf(VkResult result) {
  switch (result) {
#define KF_RESULT(name)                                                        \
  case name:                                                                   \
    return #name;
    KF_RESULT(VK_SUCCESS)
    KF_RESULT(VK_NOT_READY)
    KF_RESULT(VK_TIMEOUT)
    KF_RESULT(VK_INCOMPLETE)
    KF_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY)
    KF_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    KF_RESULT(VK_ERROR_INITIALIZATION_FAILED)
    KF_RESULT(VK_ERROR_DEVICE_LOST)
    KF_RESULT(VK_ERROR_MEMORY_MAP_FAILED)
    KF_RESULT(VK_ERROR_LAYER_NOT_PRESENT)
    KF_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT)
    KF_RESULT(VK_ERROR_FEATURE_NOT_PRESENT)
    KF_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER)
    KF_RESULT(VK_ERROR_TOO_MANY_OBJECTS)
    KF_RESULT(VK_ERROR_FRAGMENTED_POOL)
    KF_RESULT(VK_ERROR_UNKNOWN)
    KF_RESULT(VK_ERROR_OUT_OF_POOL_MEMORY)
    KF_RESULT(VK_ERROR_FRAGMENTATION)
    KF_RESULT(VK_ERROR_VALIDATION_FAILED_EXT)
    KF_RESULT(VK_ERROR_INVALID_SHADER_NV)
#undef KF_RESULT
  default:
    return "VkResult " + std::to_string(static_cast<int>(result));
  }
}

/// What a caller can do about an error of the driver.
static StatusCode codeOf(VkResult result) {
  switch (result) {
  case VK_ERROR_OUT_OF_HOST_MEMORY:
  case VK_ERROR_OUT_OF_DEVICE_MEMORY:
  case VK_ERROR_OUT_OF_POOL_MEMORY:
  case VK_ERROR_MEMORY_MAP_FAILED: // no address space
  case VK_ERROR_TOO_MANY_OBJECTS:
    return StatusCode::OutOfMemory;
  case VK_ERROR_EXTENSION_NOT_PRESENT:
  case VK_ERROR_FEATURE_NOT_PRESENT:
    return StatusCode::Unsupported;
  case VK_ERROR_INITIALIZATION_FAILED:
  case VK_ERROR_INCOMPATIBLE_DRIVER:
  case VK_ERROR_LAYER_NOT_PRESENT:
  case VK_ERROR_DEVICE_LOST:
    return StatusCode::Unavailable;
  default:
    return StatusCode::Internal;
  }
}

Status kf::vulkanStatus(VkResult result, const char *what) {
  if (result == VK_SUCCESS)
    return {};
  return Status::error(std::string(what) + ": " + nameOf(result),
                       codeOf(result));
}

void VulkanMessages::add(std::string_view message) noexcept {
  std::lock_guard<std::mutex> lock(mutex);
  try {
    std::string &line = pending.emplace_back(message);
    std::replace(line.begin(), line.end(), '\n', ' ');
    if (listener)
      listener(line);
  } catch (...) {
    hasFailed = true;
  }
}

Status VulkanMessages::take() {
  std::lock_guard<std::mutex> lock(mutex);
  if (pending.empty() && !hasFailed)
    return {};
  std::string text = "Vulkan validation: ";
  for (size_t i = 0; i < pending.size(); ++i)
    text += (i ? " | " : "") + pending[i];
  if (hasFailed)
    text += std::string(pending.empty() ? "" : " | ") +
            "a message was lost for want of memory, or its listener failed";
  pending.clear();
  hasFailed = false;
  return Status::error(std::move(text), StatusCode::Internal);
}

Result<std::unique_ptr<VulkanInstance>>
VulkanInstance::create(bool validation,
                       std::function<void(std::string_view)> listener) {
  KF_ASSIGN_OR_RETURN(PFN_vkGetInstanceProcAddr get, openLoader());
  auto createInstance = reinterpret_cast<PFN_vkCreateInstance>(
      get(VK_NULL_HANDLE, "vkCreateInstance"));
  auto instanceVersion = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(
      get(VK_NULL_HANDLE, "vkEnumerateInstanceVersion"));
  auto instanceLayers =
      reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(
          get(VK_NULL_HANDLE, "vkEnumerateInstanceLayerProperties"));
  uint32_t version = VK_API_VERSION_1_0;
  if (instanceVersion)
    KF_RETURN_IF_ERROR(
        vulkanStatus(instanceVersion(&version), "vkEnumerateInstanceVersion"));
  if (!createInstance || version < VK_API_VERSION_1_2)
    return Status::error(
        "the Vulkan loader is older than Vulkan 1.2: update libvulkan1",
        StatusCode::Unavailable);
  if (validation && !hasLayer(instanceLayers, validationLayer))
    return Status::error(std::string("no Vulkan layer ") + validationLayer +
                             ": install vulkan-validationlayers",
                         StatusCode::Unavailable);

  std::unique_ptr<VulkanInstance> self(new VulkanInstance(std::move(listener)));

  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "kernelforge";
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;

  // Messages of type "general" are left out: they are the loader's about
  // drivers that do not fit the machine.
  VkDebugUtilsMessengerCreateInfoEXT messengerInfo{
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messengerInfo.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messengerInfo.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                              VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  messengerInfo.pfnUserCallback = receiveMessage;
  messengerInfo.pUserData = &self->messages;
  const VkValidationFeatureEnableEXT synchronization =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &synchronization;
  features.pNext = &messengerInfo;
  const char *extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                              VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  if (validation) {
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &validationLayer;
    info.enabledExtensionCount = 2;
    info.ppEnabledExtensionNames = extensions;
    info.pNext = &features;
  }
  std::set<std::string> before = loadedLibraries();
  VkResult created = createInstance(&info, nullptr, &self->instance);
  if (created == VK_ERROR_INCOMPATIBLE_DRIVER)
    return Status::error(noDriver, StatusCode::Unavailable);
  KF_RETURN_IF_ERROR(vulkanStatus(created, "vkCreateInstance"));
  keepLibrariesSince(before);

#define KF_LOAD(name)                                                          \
  self->vk.name = reinterpret_cast<PFN_##name>(get(self->instance, #name));    \
  if (!self->vk.name)                                                          \
    return Status::error("the Vulkan loader has no " #name                     \
                         ": update libvulkan1");
  KF_VULKAN_INSTANCE_FUNCTIONS(KF_LOAD)
  self->vk.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
      get(self->instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  if (validation) {
    KF_LOAD(vkCreateDebugUtilsMessengerEXT)
    KF_LOAD(vkDestroyDebugUtilsMessengerEXT)
    KF_RETURN_IF_ERROR(vulkanStatus(
        self->vk.vkCreateDebugUtilsMessengerEXT(self->instance, &messengerInfo,
                                                nullptr, &self->messenger),
        "vkCreateDebugUtilsMessengerEXT"));
  }
#undef KF_LOAD
  return self;
}

VulkanInstance::~VulkanInstance() {
  if (messenger)
    vk.vkDestroyDebugUtilsMessengerEXT(instance, messenger, nullptr);
  if (instance && vk.vkDestroyInstance)
    vk.vkDestroyInstance(instance, nullptr);
  Status last = catchExceptions([&] { return messages.take(); });
  if (!last && !messages.hasListener())
    std::fprintf(stderr, "error: %s\n", last.message().c_str());
}

Result<std::vector<VkPhysicalDevice>> VulkanInstance::physicalDevices() const {
  uint32_t count = 0;
  VkResult result = vk.vkEnumeratePhysicalDevices(instance, &count, nullptr);
  if (result == VK_ERROR_INITIALIZATION_FAILED || (!result && count == 0))
    return Status::error(noDriver, StatusCode::Unavailable);
  KF_RETURN_IF_ERROR(vulkanStatus(result, "vkEnumeratePhysicalDevices"));
  std::vector<VkPhysicalDevice> devices(count);
  result = vk.vkEnumeratePhysicalDevices(instance, &count, devices.data());
  if (result != VK_INCOMPLETE)
    KF_RETURN_IF_ERROR(vulkanStatus(result, "vkEnumeratePhysicalDevices"));
  devices.resize(count);
  return devices;
}

std::string VulkanInstance::describe(VkPhysicalDevice physical) const {
  VkPhysicalDeviceProperties properties;
  vk.vkGetPhysicalDeviceProperties(physical, &properties);
  uint32_t version = properties.apiVersion;
  return std::string(properties.deviceName) + ", " +
         kindOf(properties.deviceType) + ", Vulkan " +
         std::to_string(VK_API_VERSION_MAJOR(version)) + "." +
         std::to_string(VK_API_VERSION_MINOR(version)) + "." +
         std::to_string(VK_API_VERSION_PATCH(version));
}
