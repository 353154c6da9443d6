//===- TestDevice.cpp - Devices of the conformance suite ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestDevice.h"

#include "kf/Pipelines/Compiler.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "test/runtime/FlushedSubnormals.h"

#include <algorithm>
#include <optional>

using namespace kf;

bool kf::test::isSlow(const std::string &name) {
  if (!name.starts_with("vulkan"))
    return false;
  auto found = listVulkanDevices();
  return found.ok() && std::ranges::none_of(*found, &VulkanDeviceInfo::isGpu);
}

std::unique_ptr<Device> kf::test::openTestDevice(const std::string &name) {
  Result<std::unique_ptr<Device>> opened = Status::error("not tried");
  if (name == "reference") {
    opened = createReferenceDevice();
  } else if (name == "cuda") {
    opened = createCudaDevice();
  } else if (name.starts_with("vulkan")) {
    std::optional<FlushedSubnormals> flushed;
    if (name == "vulkan_flushed")
      flushed.emplace();
    VulkanDeviceOptions options;
    options.validation = testsValidateVulkan();
    opened = createVulkanDevice(options);
  } else {
    opened = createCpuDevice({.threads = name == "cpu2" ? 2 : 1});
  }
  EXPECT_TRUE(opened.ok()) << opened.message();
  return opened.ok() ? opened.take() : nullptr;
}

std::string kf::test::targetFor(const Device &device, const std::string &name) {
  if (name == "vulkan_any" || name == "vulkan_flushed")
    return device.name();
  return name.starts_with("x86") ? "cpu:" + name : device.target();
}

std::string kf::test::missingOfCpu(const std::string &name) {
  if (!name.starts_with("x86"))
    return {};
  mlir::kf::CompileOptions options;
  options.target = "cpu:" + name;
  if (!llvm::errorToBool(mlir::kf::checkRunsOnHost(options)))
    return {};
  return "this machine cannot run code for " + name;
}
