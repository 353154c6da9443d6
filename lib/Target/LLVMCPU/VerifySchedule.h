//===- VerifySchedule.h - Schedules that a CPU can run ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TARGET_LLVMCPU_VERIFYSCHEDULE_H
#define KF_LIB_TARGET_LLVMCPU_VERIFYSCHEDULE_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// Checks that `target` can run `kernel` by `schedule`, and that every field of
/// it has an effect. `emitError` begins the diagnostic, which names the field;
/// null: there is none.
LogicalResult verifyCpuSchedule(KernelOp kernel, ScheduleAttrInterface schedule,
                                CpuTargetAttr target,
                                function_ref<InFlightDiagnostic()> emitError);

} // namespace mlir::kf

#endif // KF_LIB_TARGET_LLVMCPU_VERIFYSCHEDULE_H
