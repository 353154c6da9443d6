//===- CpuDevice.h - Programs on the host's cores ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs programs whose target is "cpu" on a pool of threads of this process.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CPU_CPUDEVICE_H
#define KF_RUNTIME_DEVICES_CPU_CPUDEVICE_H

#include "runtime/devices/Device.h"

namespace kf {

struct CpuDeviceOptions {
  /// Threads that work, the caller's included; 0 for usableThreads().
  int threads = 0;
};

/// The host as a device. wrap() refers to the caller's memory, never copies it.
/// Streams do their work on the thread that waits for it, which the others
/// help (runtime/devices/HostDevice.h). Errors: a number of threads that cannot
/// be had.
Result<std::unique_ptr<Device>>
createCpuDevice(const CpuDeviceOptions &options);

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CPU_CPUDEVICE_H
