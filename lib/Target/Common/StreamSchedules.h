//===- StreamSchedules.h - Schedules of products of few rows ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TARGET_COMMON_STREAMSCHEDULES_H
#define KF_LIB_TARGET_COMMON_STREAMSCHEDULES_H

#include "kf/Target/Common/GpuSupport.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::kf {

/// Workgroups along a dimension: half of what every device allows.
inline constexpr int64_t groupsPerDimension = 32768;

/// What `steps` of K take where `count` warps divide them, of `most` that there
/// might be: each one fewer costs a share of the steps.
inline double costOfWarps(int64_t steps, int64_t count, int64_t most) {
  constexpr double idleWarp = 0.03;
  return static_cast<double>(llvm::alignTo(steps, count)) *
         (1 + idleWarp * static_cast<double>(most - count));
}

/// The `#kf.stream` for `kernel`, whose product `op` has up to `tokens` rows;
/// null where another schedule is better or has to do.
StreamScheduleAttr selectStreamSchedule(KernelOp kernel, ProductOpInterface op,
                                        const MachineDescription &machine,
                                        int64_t tokens);

/// The `#kf.lanes` for it, likewise.
LanesScheduleAttr selectLanesSchedule(KernelOp kernel, ProductOpInterface op,
                                      const MachineDescription &machine,
                                      int64_t tokens);

/// The schedule of `op` whose rows are in workgroup memory, of `workgroup` =
/// [rows, columns], or [rows, 1, columns] of experts: they are rounded, or
/// taken as its weight has it, and with more rows, or `reduction` columns at a
/// time, warps have row blocks of their own.
StreamScheduleAttr getSharedStreamSchedule(ProductOpInterface op,
                                           ArrayRef<int64_t> workgroup,
                                           bool areRounded, int64_t warps,
                                           int64_t tiles, int64_t stages,
                                           int64_t reduction);

/// Groups of up to `rows` rows that have the same expert, of `tokens` tokens,
/// if each expert has as many: those of whole groups, and for each expert
/// another one.
int64_t countExpertGroups(ExpertMatmulOp op, int64_t tokens, int64_t rows);

} // namespace mlir::kf

#endif // KF_LIB_TARGET_COMMON_STREAMSCHEDULES_H
