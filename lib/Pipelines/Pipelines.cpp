//===- Pipelines.cpp - The whole path on one screen -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::kf;

void mlir::kf::buildCheckPipeline(OpPassManager &passes) {
  passes.addPass(createCheckInput());
}

void mlir::kf::buildFusePipeline(OpPassManager &passes,
                                 TargetAttrInterface target) {
  if (target.isInterpreted())
    return;
  passes.addNestedPass<func::FuncOp>(createExpandMlp());
  passes.addNestedPass<func::FuncOp>(createExpandRoute());
  passes.addNestedPass<func::FuncOp>(createExpandTensors());
  passes.addNestedPass<func::FuncOp>(createFuseProjections());
}

void mlir::kf::buildProgramPipeline(OpPassManager &passes,
                                    TargetAttrInterface target,
                                    int64_t maxTokens,
                                    const MeasuredSchedules &measured) {
  passes.addPass(createSelectRows(maxTokens, measured));
  target.addDivisionPasses(passes, maxTokens);
  passes.addNestedPass<func::FuncOp>(createRoundRows({maxTokens}));
  passes.addPass(createCanonicalize());
  passes.addPass(createCSEPass());
  passes.addPass(createFormKernels({/*fuse=*/true, maxTokens}));
  passes.addPass(createBoundTokens());
  passes.addPass(createCheckUpdates());
}

void mlir::kf::buildChoicePipeline(OpPassManager &passes,
                                   const MeasuredSchedules &measured) {
  passes.addPass(createSetLayouts());
  passes.addPass(createSelectSchedules(measured));
  passes.addNestedPass<ProgramOp>(createPlanMemory());
}

void mlir::kf::buildTilePipeline(OpPassManager &passes,
                                 TargetAttrInterface target) {
  if (!target.isInterpreted())
    passes.addNestedPass<KernelOp>(createTileKernels());
}

void mlir::kf::buildSchedulePipeline(OpPassManager &passes,
                                     TargetAttrInterface target,
                                     const MeasuredSchedules &measured) {
  buildChoicePipeline(passes, measured);
  buildTilePipeline(passes, target);
}

void mlir::kf::buildLowerPipeline(OpPassManager &passes,
                                  TargetAttrInterface target) {
  target.addLoweringPasses(passes);
}
