//===- KernelConfig.h - Schedules for CPUs ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TARGET_LLVMCPU_KERNELCONFIG_H
#define KF_LIB_TARGET_LLVMCPU_KERNELCONFIG_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// The element types that the kernel of `op`, which computes up to `rows` rows,
/// may read these in: the best one first. It computes the same by all of them.
SmallVector<Type> getCpuRowTypes(Operation *op, CpuTargetAttr target,
                                 int64_t rows);

/// A schedule for `kernel`, whose weights are laid out and which computes up to
/// `rows` rows; null after the diagnostic of checkVectorSupport().
VectorScheduleAttr selectCpuSchedule(KernelOp kernel, CpuTargetAttr target,
                                     int64_t rows);

} // namespace mlir::kf

#endif // KF_LIB_TARGET_LLVMCPU_KERNELCONFIG_H
