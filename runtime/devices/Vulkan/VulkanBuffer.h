//===- VulkanBuffer.h - Memory that Vulkan kernels use ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The Buffer of the Vulkan device: one storage buffer with its own memory.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_VULKAN_VULKANBUFFER_H
#define KF_RUNTIME_DEVICES_VULKAN_VULKANBUFFER_H

#include "runtime/devices/Vulkan/VulkanContext.h"

namespace kf {

/// Owns `memory`; `context` outlives it.
class VulkanBuffer final : public Buffer {
public:
  VulkanBuffer(VulkanContext &context, VulkanMemory memory, uint64_t bytes)
      : Buffer(bytes), context(context), memory(memory) {}
  ~VulkanBuffer() override { context.release(memory); }

  /// Null where reading through a mapping would be slow, or there is none.
  void *hostPointer() override {
    return memory.hostCached || kind() == MemoryKind::HostPinned ? memory.mapped
                                                                 : nullptr;
  }

  /// `buffer`, which the Vulkan device made, as what it is.
  static VulkanBuffer &of(Buffer &buffer) {
    return static_cast<VulkanBuffer &>(buffer);
  }

  VulkanContext &context;
  VulkanMemory memory;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_VULKAN_VULKANBUFFER_H
