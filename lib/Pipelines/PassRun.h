//===- PassRun.h - Passes that can be cancelled -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_PIPELINES_PASSRUN_H
#define KF_LIB_PIPELINES_PASSRUN_H

#include "FirstError.h"

#include "kf/Pipelines/Compiler.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace mlir::kf {

/// Runs the passes that `add` adds, until one fails or `options` are cancelled.
LogicalResult runPasses(ModuleOp module, const CompileOptions &options,
                        llvm::function_ref<void(OpPassManager &)> add);

/// What passes failed with.
llvm::Error failureOf(const FirstError &errors);

} // namespace mlir::kf

#endif // KF_LIB_PIPELINES_PASSRUN_H
