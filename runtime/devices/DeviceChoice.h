//===- DeviceChoice.h - What device to open ---------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_DEVICECHOICE_H
#define KF_RUNTIME_DEVICES_DEVICECHOICE_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <string>

namespace kf {

/// A device as people name it: what kf-run's `--device` and `-t` say.
struct DeviceChoice {
  /// "cpu", "reference", "vulkan", "cuda", "auto", or "vulkan:1" for the device
  /// of that number.
  std::string device = "cpu";
  /// Threads of the CPU device; 0: usableThreads().
  int64_t threads = 0;
  /// Which of several ranks of this process opens it. "cuda" is the device of
  /// the rank's number then.
  int64_t rank = 0, ranks = 1;
};

/// The device of each of `ranks`, which share the threads of `all`. Threads 0:
/// as many as a rank has CPUs for. Errors: fewer threads than ranks.
Result<DeviceChoice> deviceOfRank(DeviceChoice all, int64_t ranks);
/// The same where `sharers` ranks may use the CPUs of this one: threads 0 are
/// so many of them.
DeviceChoice withThreads(DeviceChoice choice, int64_t sharers);

} // namespace kf

#endif // KF_RUNTIME_DEVICES_DEVICECHOICE_H
