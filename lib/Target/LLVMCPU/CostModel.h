//===- CostModel.h - How long kernels take on CPUs --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TARGET_LLVMCPU_COSTMODEL_H
#define KF_LIB_TARGET_LLVMCPU_COSTMODEL_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// Seconds that `kernel` by `schedule`, which verifies, should take with `rows`
/// rows on `machine`, a CPU; see docs/decisions/cost-model.md. Rates that are 0
/// are those that are usual for it.
double predictCpuSeconds(KernelOp kernel, VectorScheduleAttr schedule,
                         const MachineDescription &machine, int64_t rows,
                         const ::kf::MachineRates &rates);

/// The machine that their constants were fitted to, where it has this CPU, by
/// LLVM's name of it; empty: they are taken over from another one.
StringRef getMeasuredCpu(StringRef chip);

} // namespace mlir::kf

#endif // KF_LIB_TARGET_LLVMCPU_COSTMODEL_H
