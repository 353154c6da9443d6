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

/// In how many parts `machine`, a GPU, divides the keys of `rows` rows: 1 where
/// there are as many KV heads of rows as multiprocessors, or the context is too
/// short for parts.
int64_t countAttentionParts(CacheAttentionInterface op, int64_t rows,
                            const MachineDescription &machine);
/// Which of them a cluster of workgroups computes; 1 where there are no
/// clusters, or more parts than a cluster has workgroups are better.
int64_t countClusterParts(CacheAttentionInterface op, int64_t rows,
                          const MachineDescription &machine);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_SPLITATTENTION_H
