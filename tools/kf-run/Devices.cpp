//===- Devices.cpp - Devices by name --------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Devices.h"

#include "Report.h"

#include "runtime/core/Quote.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Cuda/CudaDevice.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "runtime/devices/Vulkan/VulkanDevice.h"
#include "runtime/program/ExecutableCache.h"

#include <algorithm>
#include <string_view>

using namespace kf;

namespace {

/// "vulkan:1": the kind, and which of it ("" where that is not said).
struct DeviceName {
  std::string_view kind, which;
};

DeviceName split(std::string_view device) {
  const size_t colon = device.find(':');
  if (colon == std::string_view::npos)
    return {device, {}};
  return {device.substr(0, colon), device.substr(colon + 1)};
}

Status checkName(const std::string &device) {
  const auto [kind, which] = split(device);
  if (kind != "cpu" && kind != "reference" && kind != "vulkan" &&
      kind != "cuda" && kind != "auto")
    return Status::error("--device takes one of cpu, reference, vulkan, cuda, "
                         "auto, not " +
                         inQuotes(device));
  if (kind.size() == device.size())
    return Status();
  const bool isNumber =
      !which.empty() && which.size() < 4 &&
      std::ranges::all_of(which, [](char c) { return c >= '0' && c <= '9'; });
  if (!isNumber)
    return Status::error("--device takes a device's number behind ':', as in "
                         "vulkan:1, not " +
                         inQuotes(device));
  if (kind == "auto")
    return Status::error("--device auto chooses by itself; name a kind of "
                         "device with a number, as in cuda:" +
                         std::string(which));
  if (kind != "vulkan" && kind != "cuda" && which != "0")
    return Status::error("--device " + device + ": there is one " +
                         std::string(kind) + " device, number 0");
  return Status();
}

Result<std::unique_ptr<Device>> openCuda(std::string_view which) {
  CudaDeviceOptions options;
  options.device = which;
  return createCudaDevice(options);
}

Result<std::unique_ptr<Device>> openVulkan(std::string_view which) {
  VulkanDeviceOptions options;
  options.device = which;
  // Whoever keeps no programs keeps no pipelines; errors are the programs'.
  const Result<std::string> folder = ExecutableCache::defaultFolder();
  const Result<uint64_t> limit = ExecutableCache::defaultLimit();
  if (folder.ok() && limit.ok() && *limit > 0)
    options.cacheFolder = *folder;
  options.onWarning = printWarning;
  return createVulkanDevice(options);
}

/// A GPU that is there, or null; why those that are there cannot be had.
std::unique_ptr<Device> openAnyGpu(std::string &unusable) {
  auto tryOpen = [&](Result<std::unique_ptr<Device>> opened) {
    if (!opened.ok())
      unusable += "; " + oneLine(opened.message());
    return opened.ok() ? opened.take() : nullptr;
  };
  if (hasCudaDriver())
    if (std::unique_ptr<Device> device = tryOpen(openCuda({})))
      return device;
  // A driver that computes on the CPU is slower there than the CPU's device.
  const Result<std::vector<VulkanDeviceInfo>> found = listVulkanDevices();
  if (found.ok() && std::ranges::any_of(*found, &VulkanDeviceInfo::isGpu))
    return tryOpen(openVulkan({}));
  return nullptr;
}

Result<std::unique_ptr<Device>> openCpu(const DeviceOptions &options) {
  return createCpuDevice({.threads = static_cast<int>(options.threads)});
}

Result<std::unique_ptr<Device>> openFastest(const DeviceOptions &options) {
  std::string unusable;
  if (std::unique_ptr<Device> device = openAnyGpu(unusable)) {
    printNote("--device auto takes " + device->name() + ": " +
              oneLine(device->description()) + unusable);
    return device;
  }
  printNote("--device auto takes cpu: there is no GPU that can be used" +
            unusable);
  return openCpu(options);
}

} // namespace

void DeviceOptions::addDeviceTo(OptionParser &parser) {
  parser.text({"device", 0, "NAME[:N]"}, device,
              "cpu (the default), reference (an interpreter, slow and "
              "simple), vulkan, cuda, or auto, the fastest of this machine; N "
              "is the number of the device where 'kf-run devices' lists "
              "several");
  parser.addCheck([this] { return checkName(device); });
}

void DeviceOptions::addTo(OptionParser &parser) {
  addDeviceTo(parser);
  parser.integer(
      {"threads", 't', "N"}, threads, 0, ThreadPool::maxThreads,
      "threads of the CPU device; 0, the default, is one per CPU that "
      "the process may use: its affinity and the CPU time of its "
      "control groups (containers) count");
}

Result<std::unique_ptr<Device>> kf::openDevice(const DeviceOptions &options) {
  const auto [name, which] = split(options.device);
  if (name == "auto")
    return openFastest(options);
  if (name == "cpu")
    return openCpu(options);
  if (options.threads > 1)
    return Status::error("-t " + std::to_string(options.threads) +
                         ": threads are the CPU device's; leave -t out with "
                         "--device " +
                         options.device);
  if (name == "reference")
    return createReferenceDevice();
  return name == "cuda" ? openCuda(which) : openVulkan(which);
}
