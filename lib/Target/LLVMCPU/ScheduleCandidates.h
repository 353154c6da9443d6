//===- ScheduleCandidates.h - Schedules to measure on CPUs ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TARGET_LLVMCPU_SCHEDULECANDIDATES_H
#define KF_LIB_TARGET_LLVMCPU_SCHEDULECANDIDATES_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// Schedules that `target` can run `kernel` by and that could be the fastest
/// with up to `rows` rows: selectCpuSchedule()'s first, none twice. Weights and
/// caches are laid out. None, after a diagnostic, where that one cannot run.
SmallVector<ScheduleAttrInterface>
getCpuScheduleCandidates(KernelOp kernel, CpuTargetAttr target, int64_t rows);

} // namespace mlir::kf

#endif // KF_LIB_TARGET_LLVMCPU_SCHEDULECANDIDATES_H
