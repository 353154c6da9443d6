//===- PipelineCacheFile.h - Compiled pipelines on disk ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a driver keeps of the pipelines that it has compiled, in a file for each
// device and version of its driver. Losing it costs time and nothing else. A
// driver trusts what it is given, so only a file that nobody else may have
// written (PrivateFolder), that is whole, and that begins as this device's data
// do is taken.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_VULKAN_PIPELINECACHEFILE_H
#define KF_RUNTIME_DEVICES_VULKAN_PIPELINECACHEFILE_H

#include "runtime/core/Status.h"
#include "runtime/devices/Vulkan/VulkanFunctions.h"

#include <functional>
#include <string>
#include <string_view>

namespace kf {

/// One thread; any number of processes may use one folder.
class PipelineCacheFile {
public:
  /// Takes one line, for the user to see; may be empty.
  using Warning = std::function<void(std::string_view)>;
  static constexpr uint64_t maxBytes = uint64_t(256) << 20;

  /// Without a folder (""), nothing is found or stored.
  PipelineCacheFile(std::string folder,
                    const VkPhysicalDeviceProperties &device, Warning warn);

  /// The data stored last for this device and driver, or nothing. What cannot
  /// be used is warned about, and removed where it is damaged.
  std::string load() const;
  /// Keeps `data`, which vkGetPipelineCacheData gave; a failure is a warning.
  void store(std::string_view data) const;

  /// Where the data are.
  std::string path() const { return folder + "/" + name; }

private:
  Result<std::string> read() const;
  Status write(std::string_view data) const;
  Status checkData(std::string_view data) const;
  void warning(const Status &status) const;

  std::string folder, name;
  const VkPhysicalDeviceProperties device;
  Warning warn;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_VULKAN_PIPELINECACHEFILE_H
