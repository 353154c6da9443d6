//===- SplitAttention.h - Attention over parts of the keys ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For targets' passes that divide the keys of few rows.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_SPLITATTENTION_H
#define KF_TARGET_COMMON_SPLITATTENTION_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kf {

/// The most rows that `tensor` has in a step of `function`, of which
/// `maxTokens` tokens are the most where it says nothing.
int64_t getMostRows(func::FuncOp function, RankedTensorType tensor,
                    int64_t maxTokens);

/// Replaces `op`, whose queries are f32, by kf.attention_partial of `splits`
/// parts and kf.attention_combine.
void splitAttention(AttentionOp op, int64_t splits);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_SPLITATTENTION_H
