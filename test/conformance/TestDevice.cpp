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
#include "test/emulator/EmulatedDevice.h"
#include "test/runtime/FlushedSubnormals.h"

#include <algorithm>
#include <cstring>
#include <optional>

using namespace kf;

bool kf::test::isSlow(const std::string &name) {
  if (!name.starts_with("vulkan"))
    return false;
  auto found = listVulkanDevices();
  return found.ok() && std::ranges::none_of(*found, &VulkanDeviceInfo::isGpu);
}

bool kf::test::isEmulated(const std::string &name) {
  return name.starts_with("cortex") || name.starts_with("neoverse");
}

bool kf::test::roundsRows(const std::string &name) {
  return !isGpu(name) && name != "reference" && name != "x86-64-v3-f32" &&
         name != "cortex-a72";
}

bool kf::test::multipliesIn16Bits(const std::string &name) {
  if (name != "vulkan")
    return name == "cuda";
  static const bool hasMatrices = [] {
    const auto device = openTestDevice("vulkan");
    return device &&
           device->target().find("matrices = [f16") != std::string::npos;
  }();
  return hasMatrices;
}

bool kf::test::roundsToBF16(const Executable &program, const Device &device) {
  return device.name() == "cpu" &&
         std::ranges::any_of(program.kernels, [](const KernelSpec &kernel) {
           return kernel.work && kernel.work->multipliesBF16();
         });
}

/// The target of a name that says one; empty where the device does.
static std::string cpuTargetOf(const std::string &name) {
  if (name == "x86-64-v3-f32")
    return "#kf.cpu_target<cpu = \"x86-64-v3\", lanes = 8>";
  if (kf::test::isEmulated(name))
    return "cpu:aarch64-linux-gnu/" + name;
  return name.starts_with("x86") ? "cpu:" + name : "";
}

std::unique_ptr<Device> kf::test::openTestDevice(const std::string &name) {
  Result<std::unique_ptr<Device>> opened = Status::error("not tried");
  if (name == "reference") {
    opened = createReferenceDevice();
  } else if (name.starts_with("cuda")) {
    opened = createCudaDevice(
        {.device = name == "cuda" ? "" : name.substr(strlen("cuda:"))});
  } else if (name.starts_with("vulkan")) {
    std::optional<FlushedSubnormals> flushed;
    if (name == "vulkan_flushed")
      flushed.emplace();
    VulkanDeviceOptions options;
    options.validation = testsValidateVulkan();
    opened = createVulkanDevice(options);
  } else if (isEmulated(name)) {
    // The emulator knows fewer CPUs than LLVM; its largest has what they have.
    opened = openEmulatedDevice(name == "neoverse-n2" ? "max" : name);
  } else {
    opened = createCpuDevice({.threads = name == "cpu2" ? 2 : 1});
  }
  EXPECT_TRUE(opened.ok()) << opened.message();
  return opened.ok() ? opened.take() : nullptr;
}

std::string kf::test::targetFor(const Device &device, const std::string &name) {
  if (name == "vulkan_any" || name == "vulkan_flushed")
    return device.name();
  const std::string cpu = cpuTargetOf(name);
  return cpu.empty() ? device.target() : cpu;
}

std::string kf::test::missingOfCpu(const std::string &name) {
  if (isEmulated(name))
    return hasEmulator() ? "" : "there is no emulator of AArch64";
  mlir::kf::CompileOptions options;
  options.target = cpuTargetOf(name);
  if (options.target.empty())
    return {};
  if (!llvm::errorToBool(mlir::kf::checkRunsOnHost(options)))
    return {};
  return "this machine cannot run code for " + name;
}
