//===- VulkanRequirement.h - Tests that need a Vulkan device ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every GoogleTest of Vulkan asks first. The lit suite asks for a device
// alone, for kf-run does without the validation layer:
// test/Tools/kf-run/lit.local.cfg.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_VULKANREQUIREMENT_H
#define KF_TEST_RUNTIME_VULKANREQUIREMENT_H

#include "runtime/devices/Vulkan/VulkanDevice.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace kf {

/// Tests run under the Khronos validation layer, unless KF_TEST_VALIDATION=0
/// says that a machine lacks it.
inline bool testsValidateVulkan() {
  const char *value = std::getenv("KF_TEST_VALIDATION");
  return !value || std::string(value) != "0";
}

/// What this machine lacks of a loader, a driver, a device and the Khronos
/// validation layer; empty where it has all of them.
inline const std::string &missingForVulkan() {
  static const std::string missing = [] {
    if (auto devices = listVulkanDevices(); !devices)
      return devices.message();
    VulkanDeviceOptions options;
    options.validation = testsValidateVulkan();
    auto device = createVulkanDevice(options);
    // Any other failure is one that tests are there to find.
    bool noLayer = !device && device.message().starts_with("no Vulkan layer");
    return noLayer ? device.message() : std::string();
  }();
  return missing;
}

/// Ends a test where Vulkan is missing: skipped on a person's machine, failed
/// where the environment variable CI is set.
#define KF_REQUIRE_VULKAN()                                                    \
  do {                                                                         \
    const std::string &kfMissing = ::kf::missingForVulkan();                   \
    if (kfMissing.empty())                                                     \
      break;                                                                   \
    if (std::getenv("CI"))                                                     \
      FAIL() << kfMissing << "; with CI set, tests of Vulkan have to run";     \
    GTEST_SKIP() << kfMissing;                                                 \
  } while (false)

} // namespace kf

#endif // KF_TEST_RUNTIME_VULKANREQUIREMENT_H
