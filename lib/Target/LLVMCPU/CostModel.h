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

/// What is fitted to one machine's measurements, and stands for all others.
struct CpuCosts {
  llvm::StringLiteral chip;    ///< as LLVM calls it
  llvm::StringLiteral machine; ///< that was measured
  /// Slots of a sum that registers do not hold, for each time it is needed.
  double spill;
  /// Of two that run at the same time, how much of the shorter does not hide.
  double overlap;
};
/// Those of costs/emeraldrapids.inc, which kf_cost_model_test makes.
const CpuCosts &getCpuCosts();

/// Seconds that `kernel` by `schedule`, which verifies, should take with `rows`
/// rows on `machine`, a CPU; see docs/decisions/cost-model.md. Rates that are 0
/// are those that are usual for it.
double predictCpuSeconds(KernelOp kernel, VectorScheduleAttr schedule,
                         const MachineDescription &machine, int64_t rows,
                         const ::kf::MachineRates &rates,
                         const CpuCosts &costs = getCpuCosts());

} // namespace mlir::kf

#endif // KF_LIB_TARGET_LLVMCPU_COSTMODEL_H
