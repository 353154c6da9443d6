//===- Targets.h - The targets that there are -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_TARGETS_H
#define KF_TARGET_TARGETS_H

#include "kf/Dialect/KF/IR/KF.h"

#include "llvm/Support/Error.h"

namespace mlir::kf {

/// Registers the models by which each target's attribute implements
/// TargetAttrInterface.
void registerTargetModels(DialectRegistry &registry);

/// A target by its text: a device's name ("cpu", "reference", "vulkan",
/// "cuda"), one with a chip behind it ("cpu:znver4", "cuda:sm_90a"), or an
/// attribute as MLIR prints it. `workers`: threads that will share a kernel's
/// workgroups, of a CPU; 0: unknown. Errors name what is known.
llvm::Expected<TargetAttrInterface>
parseTarget(StringRef text, MLIRContext *context, int64_t workers = 0);

} // namespace mlir::kf

#endif // KF_TARGET_TARGETS_H
