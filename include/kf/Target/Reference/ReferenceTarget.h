//===- ReferenceTarget.h - The interpreter as a target ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_REFERENCE_REFERENCETARGET_H
#define KF_TARGET_REFERENCE_REFERENCETARGET_H

#include "kf/Dialect/KF/IR/KF.h"

#include "llvm/Support/Error.h"

namespace mlir::kf {

/// Makes ReferenceTargetAttr a TargetAttrInterface.
void registerReferenceTarget(DialectRegistry &registry);

/// Errors: a chip.
llvm::Expected<TargetAttrInterface>
createReferenceTarget(MLIRContext *context, StringRef chip, int64_t workers);

} // namespace mlir::kf

#endif // KF_TARGET_REFERENCE_REFERENCETARGET_H
