//===- RoundRows.h - Rows of products in 16 bits ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_ROUNDROWS_H
#define KF_TARGET_COMMON_ROUNDROWS_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kf {

/// Which rows matrix units of a GPU get in 16 bits.
struct RowRounding {
  int64_t maxTokens; ///< rows of functions without `kf.max_tokens`
  /// What rows of a product are rounded to; null: nothing.
  llvm::function_ref<Type(MatmulOp)> typeOf;
  /// The most rows that are not.
  llvm::function_ref<int64_t(MatmulOp)> mostWhole;
  /// Whether queries of many rows are rounded, too, to what goes with the
  /// cache.
  bool roundsQueries = false;
};

/// What matrix units multiply with the weight of `op`: its type of 16 bits, or
/// f16 with blocks and f8E4M3FN; null: they do not.
Type getRoundedType(MatmulOp op);

/// Rounds rows of products, which keep results of f32, and results of attention
/// that all readers round alike.
void roundRows(func::FuncOp function, const RowRounding &rules);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_ROUNDROWS_H
