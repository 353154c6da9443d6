//===- Devices.h - Devices by name -------------------------------*- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_DEVICES_H
#define KF_TOOLS_KF_RUN_DEVICES_H

#include "OptionParser.h"

#include "runtime/devices/Device.h"

#include <memory>
#include <string>

namespace kf {

/// What `--device` and `-t` say.
struct DeviceOptions {
  /// "cpu", "reference", "vulkan", "cuda", "auto", or "vulkan:1" for the device
  /// of that number.
  std::string device = "cpu";
  int64_t threads = 0; ///< 0: usableThreads()

  /// Adds both options to `parser`.
  void addTo(OptionParser &parser);
  /// Adds `--device` alone.
  void addDeviceTo(OptionParser &parser);
};

/// Opens the device. "auto" takes the first of an NVIDIA GPU, another GPU by
/// Vulkan, and the CPU, and says on stderr which, and what is wrong with one
/// that is there and cannot be had. Errors: threads for a device that has none,
/// a device that cannot be had.
Result<std::unique_ptr<Device>> openDevice(const DeviceOptions &options);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_DEVICES_H
