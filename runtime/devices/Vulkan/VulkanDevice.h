//===- VulkanDevice.h - Programs on Vulkan compute --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The "vulkan" device: storage buffers, one compute pipeline per kernel,
// recorded command buffers per binding of a program. The Vulkan loader is
// opened at run time, so a binary with this device runs on machines that have
// none.
//
// What it loads: Executable::binary is one SPIR-V module per kernel, in order,
// each preceded by its length in bytes (little-endian u64). A module's entry
// point bears the kernel's name; in descriptor set 0, binding i is the
// kernel's i-th buffer, and the binding after the last is the scalar buffer
// (KF_SCALAR_COUNT int64, which kernels may read as u32: the low word of slot
// s is element 2*s). KernelSpec::scratchBytes is workgroup memory.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_VULKAN_VULKANDEVICE_H
#define KF_RUNTIME_DEVICES_VULKAN_VULKANDEVICE_H

#include "runtime/devices/Device.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

struct VulkanDeviceOptions {
  /// An index into listVulkanDevices() or a part of a device's name (case
  /// ignored). Empty: the first discrete GPU, else integrated, else virtual,
  /// else CPU device.
  std::string device;
  /// Loads the Khronos validation layer; each of its warnings and errors makes
  /// the current or the next call fail with the text. The environment variable
  /// KF_VULKAN_VALIDATION=1 does the same.
  bool validation = false;
  /// Receives every validation message as well, also those that destruction
  /// brings about, from the thread that caused it; may not use the device. What
  /// it throws goes no further, and is told with the message. Empty: those of
  /// destruction go to stderr.
  std::function<void(std::string_view)> onMessage;
  /// Where compiled pipelines are kept between runs; empty: nowhere.
  std::string cacheFolder;
  /// Takes one line, for the user to see: what is wrong with that folder. May
  /// be empty; from the thread that uses the device.
  std::function<void(std::string_view)> onWarning;
  /// False: never map device memory, but copy through a staging buffer, as on
  /// GPUs whose memory the host cannot address.
  bool mapBuffers = true;
  /// A submission that takes longer is an error, and ends the device's use.
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);
};

/// Opens a device. Errors: no loader, no driver, no such device, no validation
/// layer, a device below Vulkan 1.2.
Result<std::unique_ptr<Device>>
createVulkanDevice(const VulkanDeviceOptions &options = {});

struct VulkanDeviceInfo {
  std::string description; ///< name, kind, Vulkan version
  bool isGpu = false;      ///< no implementation for the CPU, as lavapipe is
};

/// The devices of this machine. Errors: no loader, no driver.
Result<std::vector<VulkanDeviceInfo>> listVulkanDevices();

} // namespace kf

#endif // KF_RUNTIME_DEVICES_VULKAN_VULKANDEVICE_H
