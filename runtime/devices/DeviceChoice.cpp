//===- DeviceChoice.cpp - What device to open -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/DeviceChoice.h"

#include "runtime/core/UsableThreads.h"

#include <algorithm>

using namespace kf;

/// Whether the threads of `choice` may be a device's.
static bool mayBeCpu(const DeviceChoice &choice) {
  return choice.device.starts_with("cpu") || choice.device == "auto";
}

Result<DeviceChoice> kf::deviceOfRank(DeviceChoice all, int64_t ranks) {
  all.ranks = ranks;
  if (!mayBeCpu(all))
    return all;
  if (all.threads > 0 && all.threads < ranks)
    return Status::error("-t " + std::to_string(all.threads) +
                         ": the threads are shared by " +
                         std::to_string(ranks) +
                         " ranks, each of which takes one at least; raise -t, "
                         "or have fewer ranks");
  all.threads /= ranks;
  return all;
}

DeviceChoice kf::withThreads(DeviceChoice choice, int64_t sharers) {
  if (mayBeCpu(choice) && choice.threads == 0)
    choice.threads = std::max<int64_t>(usableThreads() / sharers, 1);
  return choice;
}
