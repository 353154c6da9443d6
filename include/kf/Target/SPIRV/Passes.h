//===- Passes.h - Passes of the SPIR-V target -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_SPIRV_PASSES_H
#define KF_TARGET_SPIRV_PASSES_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::kf {

#define GEN_PASS_DECL
#include "kf/Target/SPIRV/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "kf/Target/SPIRV/Passes.h.inc"

} // namespace mlir::kf

#endif // KF_TARGET_SPIRV_PASSES_H
