//===- GpuSchedules.h - Schedules for GPUs ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_GPUSCHEDULES_H
#define KF_TARGET_COMMON_GPUSCHEDULES_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// What the schedules of a GPU's kernels depend on.
struct GpuLimits {
  StringRef name;         ///< of the target, for messages: "Vulkan"
  int64_t threads = 256;  ///< of a workgroup
  int64_t memory = 16384; ///< bytes of workgroup memory
  int64_t indexBits = 64; ///< of an index into a buffer
  /// Bits of the integers in registers beside 1 and 32; all where it is empty.
  std::optional<SmallVector<int64_t>> integers = std::nullopt;
};

/// A schedule for `kernel`, which computes up to `rows` rows; null after a
/// diagnostic that names an op or a type for which there is no GPU code.
ScheduleAttrInterface selectGpuSchedule(KernelOp kernel,
                                        const GpuLimits &limits, int64_t rows);

/// Checks that a GPU with these limits can run `kernel` by its schedule. The
/// error is on the kernel, or on the op that has no GPU code.
LogicalResult verifyGpuSchedule(KernelOp kernel, const GpuLimits &limits,
                                int64_t rows);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_GPUSCHEDULES_H
