//===- RankSetup.h - What a rank needs to open its part ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_RANKSETUP_H
#define KF_RUNTIME_SESSION_RANKSETUP_H

#include "runtime/devices/OpenDevice.h"
#include "runtime/model/Stages.h"
#include "runtime/session/OpenModel.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kf {

/// What rank 0 says to the others at the beginning of a session. Paths are
/// theirs: all hosts have the same files at the same places.
struct RankSetup {
  ModelChoice model = {};
  /// Of one rank. Threads 0: as many as it has CPUs for itself.
  DeviceChoice device = {};
  int64_t context = 0; ///< settleContext()'s
  Parallelism parallelism = Parallelism::Tensor;
};

/// As a message, and back. Errors: bytes that are none.
std::string encode(const RankSetup &setup);
Result<RankSetup> decodeSetup(std::string_view message);

} // namespace kf

#endif // KF_RUNTIME_SESSION_RANKSETUP_H
