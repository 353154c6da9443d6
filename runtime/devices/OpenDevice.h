//===- OpenDevice.h - Devices by name ---------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library of its own, kf_open_device, which links every device: the CPU's
// brings LLVM's JIT linker along. What takes a device that somebody else has
// opened links none of them.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_OPENDEVICE_H
#define KF_RUNTIME_DEVICES_OPENDEVICE_H

#include "runtime/core/Observer.h"
#include "runtime/devices/Device.h"
#include "runtime/devices/DeviceChoice.h"

#include <functional>
#include <memory>
#include <string>

namespace kf {

/// An error where `device` is no name of a device, whether there is one or not.
Status checkDeviceName(const std::string &device);

/// Opens the device. "auto" takes the first of an NVIDIA GPU, another GPU by
/// Vulkan, and the CPU, and notes which, and what is wrong with one that is
/// there and cannot be had; of several ranks, NVIDIA GPUs if there is one for
/// each, else the CPU. `observer` may be null, and must outlive the device
/// otherwise. Errors: checkDeviceName()'s, threads for a device that has none,
/// one GPU for several ranks, a device that cannot be had.
Result<std::unique_ptr<Device>> openDevice(const DeviceChoice &choice,
                                           Observer *observer);

/// openDevice(), for those that take a device from somewhere else, too.
using OpenDevice = std::function<Result<std::unique_ptr<Device>>(
    const DeviceChoice &choice, Observer *observer)>;

} // namespace kf

#endif // KF_RUNTIME_DEVICES_OPENDEVICE_H
