//===- Passes.h - The phases as passes --------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_PASSES_H
#define KF_PIPELINES_PASSES_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::kf {

#define GEN_PASS_DECL
#include "kf/Pipelines/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "kf/Pipelines/Passes.h.inc"

} // namespace mlir::kf

#endif // KF_PIPELINES_PASSES_H
