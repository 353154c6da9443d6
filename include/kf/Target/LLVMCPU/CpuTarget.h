//===- CpuTarget.h - A CPU as a target --------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_LLVMCPU_CPUTARGET_H
#define KF_TARGET_LLVMCPU_CPUTARGET_H

#include "kf/Dialect/KF/IR/KF.h"

#include "llvm/Support/Error.h"

namespace mlir::kf {

/// Makes CpuTargetAttr a TargetAttrInterface.
void registerCpuTarget(DialectRegistry &registry);

/// LLVM's CPU `chip`; this machine's where it is empty. Errors: no such CPU.
llvm::Expected<TargetAttrInterface>
createCpuTarget(MLIRContext *context, StringRef chip, int64_t workers);

} // namespace mlir::kf

#endif // KF_TARGET_LLVMCPU_CPUTARGET_H
