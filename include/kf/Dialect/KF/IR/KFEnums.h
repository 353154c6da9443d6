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

#endif // KF_DIALECT_KF_IR_KFENUMS_H
