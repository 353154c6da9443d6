//===- DeviceFlags.cpp - Options that choose a device ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceFlags.h"

#include "runtime/core/ThreadPool.h"

using namespace kf;

void DeviceFlags::addDeviceTo(OptionParser &parser) {
  parser.text({"device", 0, "NAME[:N]"}, device,
              "cpu (the default), reference (an interpreter, slow and "
              "simple), vulkan, cuda, or auto, the fastest of this machine; N "
              "is the number of the device where 'kf-run devices' lists "
              "several");
  parser.addCheck([this] { return checkDeviceName(device); });
}

void DeviceFlags::addTo(OptionParser &parser) {
  addDeviceTo(parser);
  parser.integer(
      {"threads", 't', "N"}, threads, 0, ThreadPool::maxThreads,
      "threads of the CPU device; 0, the default, is one per CPU that "
      "the process may use: its affinity and the CPU time of its "
      "control groups (containers) count");
}
