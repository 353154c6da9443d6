//===- CudaRequirement.h - Tests that need an NVIDIA GPU --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_CUDAREQUIREMENT_H
#define KF_TEST_RUNTIME_CUDAREQUIREMENT_H

#include "runtime/devices/Cuda/CudaDevice.h"
#include "runtime/devices/Cuda/NcclLibrary.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace kf {

/// What this machine lacks of a driver and a device; empty where it has both.
inline const std::string &missingForCuda() {
  static const std::string missing = [] {
    auto devices = listCudaDevices();
    return devices ? std::string() : devices.message();
  }();
  return missing;
}

/// What this machine lacks for `ranks` GPUs that run a model together; empty
/// where it lacks nothing. NCCL that is there and of no use is not lacking.
inline std::string missingForCudaRanks(int64_t ranks) {
  const auto devices = listCudaDevices();
  if (!devices)
    return devices.message();
  if (static_cast<int64_t>(devices->size()) < ranks)
    return "there are " + std::to_string(devices->size()) + " CUDA devices";
  const std::string reason = loadNcclFunctions().status().message();
  return reason.starts_with("no NCCL") ? reason : std::string();
}

/// Skips a test where there is no GPU, as in CI: test/device/run.sh runs it on
/// a machine that has one.
#define KF_REQUIRE_CUDA()                                                      \
  do {                                                                         \
    if (!::kf::missingForCuda().empty())                                       \
      GTEST_SKIP() << ::kf::missingForCuda();                                  \
  } while (false)

} // namespace kf

#endif // KF_TEST_RUNTIME_CUDAREQUIREMENT_H
