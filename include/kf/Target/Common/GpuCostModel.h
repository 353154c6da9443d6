//===- GpuCostModel.h - How long kernels take on GPUs -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_GPUCOSTMODEL_H
#define KF_TARGET_COMMON_GPUCOSTMODEL_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// Seconds that `kernel` by `schedule`, which verifies, should take with `rows`
/// rows on `machine`, a GPU; see docs/decisions/cost-model.md. Rates that are 0
/// are those that are usual for it.
double predictGpuSeconds(KernelOp kernel, ScheduleAttrInterface schedule,
                         int64_t rows, const ::kf::MachineRates &rates,
                         const MachineDescription &machine);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_GPUCOSTMODEL_H
