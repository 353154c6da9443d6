//===- CudaTarget.h - An NVIDIA GPU as a target -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_NVVM_CUDATARGET_H
#define KF_TARGET_NVVM_CUDATARGET_H

#include "kf/Dialect/KF/IR/KF.h"

#include "llvm/Support/Error.h"

namespace mlir::kf {

/// Makes CudaTargetAttr a TargetAttrInterface.
void registerCudaTarget(DialectRegistry &registry);

/// The GPUs with `chip`'s architecture; without one sm_80, whose code every
/// later GPU runs. Errors: a chip that there is no code for.
llvm::Expected<TargetAttrInterface>
createCudaTarget(MLIRContext *context, StringRef chip, int64_t workers);

} // namespace mlir::kf

#endif // KF_TARGET_NVVM_CUDATARGET_H
