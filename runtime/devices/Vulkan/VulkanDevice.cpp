//===- VulkanDevice.cpp - Programs on Vulkan compute ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanDevice.h"

#include "runtime/devices/Vulkan/VulkanProgram.h"

#include <cstring>

using namespace kf;

namespace {

class VulkanDevice : public Device {
public:
  explicit VulkanDevice(std::unique_ptr<VulkanContext> context)
      : context(std::move(context)) {}

  std::string name() const override { return "vulkan"; }
  std::string description() const override { return context->description(); }

  Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) override {
    return context->finish(allocateZeros(bytes));
  }

  Result<std::unique_ptr<Buffer>> wrap(const void *data,
                                       uint64_t bytes) override {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<VulkanBuffer> buffer,
                        context->finish(allocateBuffer(bytes)));
    KF_RETURN_IF_ERROR(write(*buffer, 0, data, bytes));
    return std::unique_ptr<Buffer>(std::move(buffer));
  }

  Status write(Buffer &dst, uint64_t offset, const void *src,
               uint64_t bytes) override {
    KF_ASSIGN_OR_RETURN(VulkanBuffer * buffer, check(dst, offset, bytes));
    if (bytes == 0)
      return {};
    if (void *mapped = buffer->memory.mapped) {
      std::memcpy(static_cast<char *>(mapped) + offset, src, bytes);
      return context->finish(Status());
    }
    return context->finish(context->upload(buffer->memory, offset, src, bytes));
  }

  Status read(Buffer &src, uint64_t offset, void *dst,
              uint64_t bytes) override {
    KF_ASSIGN_OR_RETURN(VulkanBuffer * buffer, check(src, offset, bytes));
    if (bytes == 0)
      return {};
    if (const void *mapped = buffer->hostPointer()) {
      std::memcpy(dst, static_cast<const char *>(mapped) + offset, bytes);
      return context->finish(Status());
    }
    return context->finish(
        context->download(buffer->memory, offset, dst, bytes));
  }

  Result<std::unique_ptr<LoadedProgram>>
  load(const Executable &executable) override {
    return context->finish(loadProgram(executable));
  }

private:
  /// Of any content.
  Result<std::unique_ptr<VulkanBuffer>> allocateBuffer(uint64_t bytes) {
    KF_ASSIGN_OR_RETURN(
        VulkanMemory memory,
        context->allocate(bytes, VulkanContext::MemoryUse::Device));
    return std::make_unique<VulkanBuffer>(*context, memory, bytes);
  }

  Result<std::unique_ptr<Buffer>> allocateZeros(uint64_t bytes) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<VulkanBuffer> buffer,
                        allocateBuffer(bytes));
    KF_RETURN_IF_ERROR(context->clear(buffer->memory));
    return std::unique_ptr<Buffer>(std::move(buffer));
  }

  Result<std::unique_ptr<LoadedProgram>>
  loadProgram(const Executable &executable) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<VulkanProgram> program,
                        VulkanProgram::create(*context, executable));
    return std::unique_ptr<LoadedProgram>(std::move(program));
  }

  /// `buffer` as this device's, with the range checked to lie within it.
  Result<VulkanBuffer *> check(Buffer &buffer, uint64_t offset,
                               uint64_t bytes) const {
    VulkanBuffer *mine = VulkanBuffer::of(*context, &buffer);
    if (!mine)
      return Status::error("the buffer belongs to another device: allocate it "
                           "from this one");
    if (offset > buffer.size() || bytes > buffer.size() - offset)
      return Status::error(std::to_string(bytes) + " bytes at offset " +
                           std::to_string(offset) +
                           " reach past the end of a buffer of " +
                           std::to_string(buffer.size()) + " bytes");
    return mine;
  }

  std::unique_ptr<VulkanContext> context;
};

} // namespace

Result<std::unique_ptr<Device>>
kf::createVulkanDevice(const VulkanDeviceOptions &options) {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<VulkanContext> context,
                      VulkanContext::create(options));
  return std::unique_ptr<Device>(
      std::make_unique<VulkanDevice>(std::move(context)));
}

Result<std::vector<std::string>> kf::listVulkanDevices() {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<VulkanInstance> instance,
                      VulkanInstance::create(false, {}));
  KF_ASSIGN_OR_RETURN(std::vector<VkPhysicalDevice> devices,
                      instance->physicalDevices());
  std::vector<std::string> lines;
  for (VkPhysicalDevice device : devices)
    lines.push_back(instance->describe(device));
  return lines;
}
