//===- KernelTokens.h - How many rows a kernel sees -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_KERNELTOKENS_H
#define KF_TARGET_COMMON_KERNELTOKENS_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::kf {

/// The largest `max_tokens` of the programs that dispatch each kernel, by the
/// kernel's name; kernels that nobody dispatches are missing.
inline DenseMap<StringAttr, int64_t> mostTokens(ModuleOp module) {
  DenseMap<StringAttr, int64_t> tokens;
  for (auto program : module.getOps<ProgramOp>())
    program.walk([&](DispatchOp dispatch) {
      int64_t &most = tokens[dispatch.getKernelAttr().getAttr()];
      most = std::max<int64_t>(most, program.getMaxTokens());
    });
  return tokens;
}

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_KERNELTOKENS_H
