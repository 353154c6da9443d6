//===- KernelShapes.h - What the shapes of kernels share --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_KERNELSHAPES_H
#define KF_LIB_CONVERSION_KFTOGPU_KERNELSHAPES_H

#include "kf/Conversion/KernelShape.h"

namespace mlir::kf {

/// Says why a schedule means no shape, and fails.
using FailFn = function_ref<LogicalResult(const Twine &)>;

/// Anything larger is a mistake, and products of three stay within 64 bits.
constexpr int64_t largest = 1 << 20;

/// The last op of its kind in the kernel; null: there is none.
template <typename OpTy> OpTy findOp(KernelOp kernel) {
  OpTy found;
  kernel.walk([&](OpTy op) { found = op; });
  return found;
}

/// The dialect bounds tiles, keys and threads by less.
LogicalResult checkSizes(ArrayRef<int64_t> workgroup, FailFn fail);
/// Takes the schedule's threads, and the memory of what they reduce.
void setThreads(KernelShape &shape, KernelOp kernel, ArrayRef<int64_t> threads);

/// Statistics that `norm` keeps of a row; 0 where it is none, or null.
int64_t statisticsOf(Operation *norm);

/// The product of few rows that the schedule called `schedule` is for, a
/// kf.matmul or else a kf.expert_matmul, with a weight in fragments.
FailureOr<ProductOpInterface> findProductOfFewRows(KernelOp kernel,
                                                   StringRef schedule,
                                                   ArrayRef<int64_t> workgroup,
                                                   FailFn fail);

/// The shape of a product of few rows without matrix units.
FailureOr<KernelShape> getLanesShape(KernelOp kernel,
                                     LanesScheduleAttr schedule, FailFn fail);

/// The shapes of kernels of attention, by threads and on matrix units.
FailureOr<KernelShape>
getAttentionShape(KernelOp kernel, FlashScheduleAttr schedule, FailFn fail);
FailureOr<KernelShape>
getAttentionShape(KernelOp kernel, FlashMmaScheduleAttr schedule, FailFn fail);

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_KERNELSHAPES_H
