//===- Occupancy.h - What a multiprocessor holds at once --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_OCCUPANCY_H
#define KF_CONVERSION_OCCUPANCY_H

#include "kf/Conversion/KernelShape.h"

namespace mlir::kf {

/// Bytes of a multiprocessor's workgroup memory that CUDA keeps for itself of
/// each workgroup, beside what this asks for, from sm_80 on (CUDA Programming
/// Guide, "Shared Memory" of compute capability 8.x and later). All chips with
/// clusters are such.
inline constexpr int64_t kReservedWorkgroupBytes = 1024;

/// Whether a multiprocessor of `machine`, which has clusters, has the memory
/// for two workgroups of `shape` at once.
inline bool holdsTwo(const KernelShape &shape,
                     const MachineDescription &machine) {
  return 2 * (shape.workgroupBytes + kReservedWorkgroupBytes) <=
         machine.ofEach.memory;
}

} // namespace mlir::kf

#endif // KF_CONVERSION_OCCUPANCY_H
