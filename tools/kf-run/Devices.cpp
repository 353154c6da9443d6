//===- Devices.cpp - Devices by name --------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Devices.h"

#include "runtime/ThreadPool.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Vulkan/VulkanDevice.h"
#include "runtime/reference/ReferenceDevice.h"

#include <cstdio>

using namespace kf;

void DeviceOptions::addTo(OptionParser &parser) {
  parser.choice({"device", 0, "NAME"}, device,
                {"cpu", "reference", "vulkan", "auto"},
                "cpu (the default), reference (an interpreter, slow and "
                "simple), vulkan, or auto");
  parser.integer(
      {"threads", 't', "N"}, threads, 0, ThreadPool::maxThreads,
      "threads of the CPU device; 0, the default, is one per CPU that "
      "the process may use: its affinity and the CPU time of its "
      "control groups (containers) count");
}

Result<std::unique_ptr<Device>> kf::openDevice(const DeviceOptions &options) {
  std::string name = options.device;
  if (name == "auto") {
    std::fputs("device: cpu (chosen by --device auto)\n", stderr);
    name = "cpu";
  }
  if (name == "cpu")
    return createCpuDevice({.threads = static_cast<int>(options.threads)});
  if (options.threads > 1)
    return Status::error("-t " + std::to_string(options.threads) +
                         ": threads are the CPU device's; leave -t out with "
                         "--device " +
                         name);
  if (name == "reference")
    return createReferenceDevice();
  return createVulkanDevice();
}
