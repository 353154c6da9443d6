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

namespace mlir::kf {

/// Replaces `op`, whose queries are f32, by kf.attention_partial of `splits`
/// parts and kf.attention_combine.
void splitAttention(AttentionOp op, int64_t splits);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_SPLITATTENTION_H
