//===- KernelRows.h - How many rows a kernel sees -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TRANSFORMS_KERNELROWS_H
#define KF_TRANSFORMS_KERNELROWS_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::kf {

/// The most rows that each kernel computes in the programs that dispatch it, by
/// the kernel's name: those of its result, or, where it has none, of what
/// it reads. Kernels that nobody dispatches are missing.
inline DenseMap<StringAttr, int64_t> mostRows(ModuleOp module) {
  DenseMap<StringAttr, int64_t> rows;
  for (auto program : module.getOps<ProgramOp>())
    program.walk([&](DispatchOp dispatch) {
      int64_t &most = rows[dispatch.getKernelAttr().getAttr()];
      if (dispatch.getNumResults() > 0) {
        auto type = cast<RankedTensorType>(dispatch.getResultTypes().front());
        most = std::max<int64_t>(most, program.getMostRows(type));
        return;
      }
      for (Type type : dispatch.getOperandTypes())
        if (auto tensor = dyn_cast<RankedTensorType>(type);
            tensor && tensor.isDynamicDim(0))
          most = std::max<int64_t>(most, program.getMostRows(tensor));
    });
  return rows;
}

} // namespace mlir::kf

#endif // KF_TRANSFORMS_KERNELROWS_H
