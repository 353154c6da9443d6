//===- GpuSupport.h - Schedules that GPUs can run ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_GPUSUPPORT_H
#define KF_TARGET_COMMON_GPUSUPPORT_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// Checks that `machine` can run `kernel`, which checkGpuSupport() found good,
/// by `schedule`. `emitError` begins the diagnostic; null: there is none.
LogicalResult verifyGpuSchedule(KernelOp kernel, ScheduleAttrInterface schedule,
                                const MachineDescription &machine,
                                function_ref<InFlightDiagnostic()> emitError);

/// Checks that `machine` can run `kernel` by its schedule, checkGpuSupport()
/// included.
LogicalResult verifyGpuSchedule(KernelOp kernel,
                                const MachineDescription &machine,
                                int64_t rows);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_GPUSUPPORT_H
