//===- KFEnums.h - Enumerations of the kf dialect ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFENUMS_H
#define KF_DIALECT_KF_IR_KFENUMS_H

#include "mlir/IR/OpDefinition.h"

#include "kf/Dialect/KF/IR/KFEnums.h.inc"

namespace mlir::kf {

/// Whether products with `dot` are of rows in 8 bits.
constexpr bool multipliesBytes(DotKind dot) {
  return dot == DotKind::I8 || dot == DotKind::S8;
}

} // namespace mlir::kf

#endif // KF_DIALECT_KF_IR_KFENUMS_H
