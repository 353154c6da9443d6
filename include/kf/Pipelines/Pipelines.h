//===- Pipelines.h - The whole path on one screen ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_PIPELINES_H
#define KF_PIPELINES_PIPELINES_H

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

namespace mlir::kf {

/// The largest n_tokens of functions without `kf.max_tokens`, where nobody says
/// otherwise.
constexpr int64_t defaultMaxTokens = 512;

/// What comes from outside goes through this first.
void buildCheckPipeline(OpPassManager &passes);

/// Phase by phase, for a target; see Phase in Compiler.h.
void buildFusePipeline(OpPassManager &passes, TargetAttrInterface target);
/// Products read their rows as `measured` says, where it says something.
void buildProgramPipeline(OpPassManager &passes, TargetAttrInterface target,
                          int64_t maxTokens,
                          const MeasuredSchedules &measured = {});
/// Kernels without a schedule get one of `measured`, where it has one.
void buildSchedulePipeline(OpPassManager &passes, TargetAttrInterface target,
                           const MeasuredSchedules &measured = {});
/// The two halves of it: what kernels are is settled, and they are tiled, which
/// hides what they compute.
void buildChoicePipeline(OpPassManager &passes,
                         const MeasuredSchedules &measured = {});
void buildTilePipeline(OpPassManager &passes, TargetAttrInterface target);
void buildLowerPipeline(OpPassManager &passes, TargetAttrInterface target);

} // namespace mlir::kf

#endif // KF_PIPELINES_PIPELINES_H
