//===- OpenDevice.cpp - Devices by name -----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/OpenDevice.h"

#include "runtime/core/Lines.h"
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

Result<std::unique_ptr<Device>> openCuda(std::string_view which,
                                         const DeviceChoice &choice) {
  if (choice.ranks > 1 && !which.empty())
    return Status::error("--device cuda:" + std::string(which) +
                         " is one GPU, and each of " +
                         std::to_string(choice.ranks) +
                         " ranks has its own: leave the number out, and let "
                         "CUDA_VISIBLE_DEVICES say which");
  CudaDeviceOptions options;
  options.device =
      choice.ranks > 1 ? std::to_string(choice.rank) : std::string(which);
  options.ranks = choice.ranks;
  return createCudaDevice(options);
}

Result<std::unique_ptr<Device>> openVulkan(std::string_view which,
                                           Observer *observer) {
  VulkanDeviceOptions options;
  options.device = which;
  // Whoever keeps no programs keeps no pipelines; errors are the programs'.
  const Result<std::string> folder = ExecutableCache::defaultFolder();
  const Result<uint64_t> limit = ExecutableCache::defaultLimit();
  if (folder.ok() && limit.ok() && *limit > 0)
    options.cacheFolder = *folder;
  if (observer)
    options.onWarning = [observer](std::string_view line) {
      observer->onWarning(std::string(line));
    };
  return createVulkanDevice(options);
}

/// A GPU that is there, or null; why those that are there cannot be had.
std::unique_ptr<Device> openAnyGpu(const DeviceChoice &choice,
                                   std::string &unusable, Observer *observer) {
  auto tryOpen = [&](Result<std::unique_ptr<Device>> opened) {
    if (!opened.ok())
      unusable += "; " + oneLine(opened.message());
    return opened.ok() ? opened.take() : nullptr;
  };
  if (hasCudaDriver())
    if (std::unique_ptr<Device> device = tryOpen(openCuda({}, choice)))
      return device;
  if (choice.ranks > 1) // Vulkan has no collectives
    return nullptr;
  // A driver that computes on the CPU is slower there than the CPU's device.
  const Result<std::vector<VulkanDeviceInfo>> found = listVulkanDevices();
  if (found.ok() && std::ranges::any_of(*found, &VulkanDeviceInfo::isGpu))
    return tryOpen(openVulkan({}, observer));
  return nullptr;
}

Result<std::unique_ptr<Device>> openCpu(const DeviceChoice &choice) {
  if (choice.threads < 0 || choice.threads > ThreadPool::maxThreads)
    return Status::error("-t takes 0 to " +
                         std::to_string(ThreadPool::maxThreads) + ", not " +
                         std::to_string(choice.threads));
  return createCpuDevice({.threads = static_cast<int>(choice.threads)});
}

Result<std::unique_ptr<Device>> openFastest(const DeviceChoice &choice,
                                            Observer *observer) {
  std::string unusable;
  std::unique_ptr<Device> device = openAnyGpu(choice, unusable, observer);
  const std::string taken =
      device ? device->name() + ": " + oneLine(device->description())
             : "cpu: there is no GPU that can be used";
  if (observer)
    observer->onNote("--device auto takes " + taken + unusable);
  if (device)
    return device;
  return openCpu(choice);
}

} // namespace

Status kf::checkDeviceName(const std::string &device) {
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

Result<std::unique_ptr<Device>> kf::openDevice(const DeviceChoice &choice,
                                               Observer *observer) {
  KF_RETURN_IF_ERROR(checkDeviceName(choice.device));
  const auto [name, which] = split(choice.device);
  if (name == "auto")
    return openFastest(choice, observer);
  if (name == "cpu")
    return openCpu(choice);
  if (choice.threads > 1)
    return Status::error("-t " + std::to_string(choice.threads) +
                         ": threads are the CPU device's; leave -t out with "
                         "--device " +
                         choice.device);
  if (name == "reference")
    return createReferenceDevice();
  return name == "cuda" ? openCuda(which, choice) : openVulkan(which, observer);
}
