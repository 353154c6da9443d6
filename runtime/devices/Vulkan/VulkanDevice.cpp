//===- VulkanDevice.cpp - Programs on Vulkan compute ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanDevice.h"

#include "runtime/core/Exceptions.h"
#include "runtime/devices/Vulkan/VulkanProgram.h"
#include "runtime/devices/Vulkan/VulkanStream.h"

using namespace kf;

namespace {

class VulkanDevice final : public Device {
public:
  explicit VulkanDevice(std::unique_ptr<VulkanContext> context)
      : context(std::move(context)) {}

  std::string name() const override { return "vulkan"; }
  std::string target() const override { return context->target(); }
  bool runsAlone() const override { return true; }
  int64_t promptRows() const override {
    return context->multipliesMatrices() ? 2048 : 512;
  }
  bool takesRowsInTiles() const override {
    return context->multipliesMatrices();
  }
  bool roundsBlocks() const override { return context->multipliesMatrices(); }
  std::string description() const override { return context->description(); }
  uint64_t mostTensorBytes() const override {
    return context->limits().maxStorageBufferRange;
  }

private:
  Result<DeviceMemory> doMemory() const override { return context->memory(); }

  Result<std::unique_ptr<Buffer>> doAllocate(uint64_t bytes,
                                             MemoryKind kind) override {
    return context->finish(allocateZeros(bytes, kind));
  }

  Result<std::unique_ptr<Buffer>> doWrap(const void *data,
                                         uint64_t bytes) override {
    return context->finish(copyOf(data, bytes));
  }

  Result<std::unique_ptr<Stream>> doCreateStream() override {
    return std::unique_ptr<Stream>(std::make_unique<VulkanStream>(*context));
  }

  Result<std::unique_ptr<Event>> doCreateEvent() override {
    return std::unique_ptr<Event>(std::make_unique<VulkanEvent>(*context));
  }

  Result<std::unique_ptr<LoadedProgram>>
  doLoad(const Executable &executable) override {
    return context->finish(VulkanProgram::create(*context, executable));
  }

  /// Of any content.
  Result<std::unique_ptr<VulkanBuffer>> allocateBuffer(uint64_t bytes,
                                                       MemoryKind kind) {
    const auto use = kind == MemoryKind::HostPinned
                         ? VulkanContext::MemoryUse::Download
                         : VulkanContext::MemoryUse::Device;
    KF_ASSIGN_OR_RETURN(VulkanMemory memory, context->allocate(bytes, use));
    return std::make_unique<VulkanBuffer>(*context, memory, bytes);
  }

  Result<std::unique_ptr<Buffer>> allocateZeros(uint64_t bytes,
                                                MemoryKind kind) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<VulkanBuffer> buffer,
                        allocateBuffer(bytes, kind));
    KF_RETURN_IF_ERROR(context->clear(buffer->memory));
    return std::unique_ptr<Buffer>(std::move(buffer));
  }

  Result<std::unique_ptr<Buffer>> copyOf(const void *data, uint64_t bytes) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<VulkanBuffer> buffer,
                        allocateBuffer(bytes, MemoryKind::Device));
    if (bytes > 0) {
      VulkanStream stream(*context);
      KF_RETURN_IF_ERROR(stream.transfer(
          *buffer, 0, {static_cast<const std::byte *>(data), bytes}));
    }
    return std::unique_ptr<Buffer>(std::move(buffer));
  }

  std::unique_ptr<VulkanContext> context;
};

} // namespace

Result<std::unique_ptr<Device>>
kf::createVulkanDevice(const VulkanDeviceOptions &options) try {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<VulkanContext> context,
                      VulkanContext::create(options));
  return std::unique_ptr<Device>(
      std::make_unique<VulkanDevice>(std::move(context)));
} catch (...) {
  return statusOfException();
}

Result<std::vector<VulkanDeviceInfo>> kf::listVulkanDevices() try {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<VulkanInstance> instance,
                      VulkanInstance::create(false, {}));
  KF_ASSIGN_OR_RETURN(std::vector<VkPhysicalDevice> devices,
                      instance->physicalDevices());
  std::vector<VulkanDeviceInfo> found;
  for (VkPhysicalDevice device : devices) {
    VkPhysicalDeviceProperties properties;
    instance->vk.vkGetPhysicalDeviceProperties(device, &properties);
    found.push_back(
        {instance->describe(device),
         properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU &&
             properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_OTHER});
  }
  return found;
} catch (...) {
  return statusOfException();
}
