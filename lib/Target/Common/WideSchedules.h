//===- WideSchedules.h - Products of f32 on matrix units --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TARGET_COMMON_WIDESCHEDULES_H
#define KF_LIB_TARGET_COMMON_WIDESCHEDULES_H

#include "kf/Target/Common/GpuSupport.h"

namespace mlir::kf {

/// A product of WideFactors.
struct WideProduct {
  int64_t rows, columns;
  int64_t batches; ///< 0: of matrices
};

/// All that `machine` can run `kernel` by; of small products, those that are
/// padding for the most part, too.
SmallVector<MmaScheduleAttr>
getWideSchedules(KernelOp kernel, const WideProduct &product,
                 const MachineDescription &machine);

/// The `#kf.mma` of the product of `kernel`; null where no tile can do it.
MmaScheduleAttr selectWideSchedule(KernelOp kernel, const WideProduct &product,
                                   const MachineDescription &machine);

} // namespace mlir::kf

#endif // KF_LIB_TARGET_COMMON_WIDESCHEDULES_H
