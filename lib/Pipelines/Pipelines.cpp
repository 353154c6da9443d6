//===- Pipelines.cpp - The whole path on one screen -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/Pipelines.h"

#include "kf/Target/LLVMCPU/Codegen.h"
#include "kf/Target/LLVMCPU/Passes.h"
#include "kf/Target/SPIRV/Codegen.h"
#include "kf/Target/SPIRV/Passes.h"
#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::kf;

void mlir::kf::buildCheckPipeline(OpPassManager &passes) {
  passes.addPass(createCheckInput());
}

void mlir::kf::buildFusePipeline(OpPassManager &passes,
                                 const PipelineOptions &options) {
  if (options.target == Target::Cpu)
    passes.addPass(createSetCacheLayout({options.lanes}));
  if (options.target == Target::Reference)
    return; // runs ops as they are written
  passes.addNestedPass<func::FuncOp>(createExpandMlp());
  passes.addNestedPass<func::FuncOp>(createExpandTensors());
  passes.addNestedPass<func::FuncOp>(createFuseProjections());
}

void mlir::kf::buildProgramPipeline(OpPassManager &passes,
                                    const PipelineOptions &options) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createFormKernels(
      {/*fuse=*/options.target != Target::Reference, options.maxTokens}));
  passes.addPass(createBoundTokens());
}

void mlir::kf::buildSchedulePipeline(OpPassManager &passes,
                                     const PipelineOptions &options) {
  if (options.target == Target::Cpu) {
    passes.addPass(createSelectCpuSchedules(
        {options.lanes, options.int8Dot, options.workers}));
    passes.addPass(createPackWeights());
  }
  if (options.target == Target::Vulkan)
    passes.addPass(createSelectSpirvSchedules());
  passes.addNestedPass<ProgramOp>(createPlanMemory());
  if (options.target != Target::Reference)
    passes.addNestedPass<KernelOp>(createTileKernels());
}

void mlir::kf::buildLowerPipeline(OpPassManager &passes,
                                  const PipelineOptions &options) {
  if (options.target == Target::Cpu)
    buildCpuCodegenPipeline(passes);
  if (options.target == Target::Vulkan)
    buildSpirvCodegenPipeline(passes);
}

void mlir::kf::registerPipelines() {
  using Registration = PassPipelineRegistration<PipelineOptions>;
  Registration("kf-fuse", "Join projections and expand kf.mlp",
               buildFusePipeline);
  Registration("kf-program", "Form kernels and programs", buildProgramPipeline);
  Registration("kf-schedule",
               "Choose schedules, pack weights, plan memory and tile",
               buildSchedulePipeline);
  Registration("kf-lower", "Lower tiled kernels to the target's dialect",
               buildLowerPipeline);
  Registration("kf-compile", "Every phase from kf functions to the target",
               [](OpPassManager &passes, const PipelineOptions &options) {
                 buildCheckPipeline(passes);
                 buildFusePipeline(passes, options);
                 buildProgramPipeline(passes, options);
                 buildSchedulePipeline(passes, options);
                 buildLowerPipeline(passes, options);
               });
}
