//===- EmulatedDevice.h - Kernels for another CPU, emulated -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_EMULATOR_EMULATEDDEVICE_H
#define KF_TEST_EMULATOR_EMULATEDDEVICE_H

#include "runtime/devices/Device.h"

namespace kf::test {

/// Whether what openEmulatedDevice() needs was there when this was configured:
/// qemu-aarch64, and the C library of Linux on AArch64.
bool hasEmulator();

/// A device like the CPU's, with one thread, whose kernels are code for Linux
/// on AArch64. They run in a process of their own, by qemu-aarch64 as the CPU
/// that it calls `cpu`, which ends with the device.
Result<std::unique_ptr<Device>> openEmulatedDevice(const std::string &cpu);

} // namespace kf::test

#endif // KF_TEST_EMULATOR_EMULATEDDEVICE_H
