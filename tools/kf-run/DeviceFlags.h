//===- DeviceFlags.h - Options that choose a device -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_DEVICEFLAGS_H
#define KF_TOOLS_KF_RUN_DEVICEFLAGS_H

#include "OptionParser.h"

#include "runtime/devices/OpenDevice.h"

namespace kf {

/// What `--device` and `-t` say.
struct DeviceFlags : DeviceChoice {
  /// Adds both options to `parser`.
  void addTo(OptionParser &parser);
  /// Adds `--device` alone.
  void addDeviceTo(OptionParser &parser);
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_DEVICEFLAGS_H
