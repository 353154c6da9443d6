//===- TestDevice.h - Devices of the conformance suite -------- -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests name where they run: cpu, cpu2 (two threads), reference, vulkan (with
// validation), vulkan_any (the same, by code for every Vulkan device and not
// for the one at hand), vulkan_flushed (by that code as well, and where the
// device is this machine's CPU, it takes subnormal numbers for zeros, as GPUs
// may), cuda, cuda:1 for the device of that number, or a CPU that code is made
// for, as x86-64-v3. x86-64-v3-f32 is that without products of bytes.
// cortex-a76 and others of AArch64 run in an emulator, where the build found
// one.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_CONFORMANCE_TESTDEVICE_H
#define KF_TEST_CONFORMANCE_TESTDEVICE_H

#include "runtime/devices/Device.h"
#include "test/runtime/CudaRequirement.h"
#include "test/runtime/VulkanRequirement.h"

#include <memory>
#include <string>

namespace kf::test {

inline bool isGpu(const std::string &name) {
  return name.starts_with("vulkan") || name.starts_with("cuda");
}

bool isEmulated(const std::string &name);

/// Whether products with block-quantized weights round rows to 8 bits.
bool roundsRows(const std::string &name);

/// Whether the GPU called `name` multiplies many rows on units of 16 bits:
/// cuda, and vulkan where subgroups multiply matrices of f16.
bool multipliesIn16Bits(const std::string &name);

/// Whether products, or attentions, of `program` on `device` round their rows
/// to bf16.
bool roundsToBF16(const Executable &program, const Device &device);

/// Whether this is a Vulkan that computes on the CPU, which takes minutes for
/// what takes others seconds.
bool isSlow(const std::string &name);

/// Opens the device; fails the current test, and returns null, on an error.
std::unique_ptr<Device> openTestDevice(const std::string &name);

/// What to compile for, so that `device`, of this name, runs it.
std::string targetFor(const Device &device, const std::string &name);

/// Why this machine's CPU cannot run code for the one of this name; empty if it
/// can, and for devices.
std::string missingOfCpu(const std::string &name);

/// Ends a test that cannot run here.
#define KF_REQUIRE_DEVICE(name)                                                \
  do {                                                                         \
    const std::string kfName = name;                                           \
    if (kfName.starts_with("vulkan"))                                          \
      KF_REQUIRE_VULKAN();                                                     \
    if (kfName == "cuda")                                                      \
      KF_REQUIRE_CUDA();                                                       \
    if (const std::string kfMissing = ::kf::test::missingOfCpu(kfName);        \
        !kfMissing.empty())                                                    \
      GTEST_SKIP() << kfMissing;                                               \
  } while (false)

} // namespace kf::test

#endif // KF_TEST_CONFORMANCE_TESTDEVICE_H
