//===- Pipelines.h - The whole path on one screen ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_PIPELINES_H
#define KF_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::kf {

enum class Target { Cpu, Reference, Vulkan, Cuda };

struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  PipelineOptions() = default;
  PipelineOptions(const PipelineOptions &other) : PipelineOptions() {
    *this = other;
  }
  PipelineOptions &operator=(const PipelineOptions &other) {
    target = other.target.getValue();
    lanes = other.lanes.getValue();
    int8Dot = other.int8Dot.getValue();
    workers = other.workers.getValue();
    maxTokens = other.maxTokens.getValue();
    return *this;
  }

  Option<Target> target{
      *this, "target", llvm::cl::desc("device that the module is for"),
      llvm::cl::init(Target::Cpu),
      llvm::cl::values(
          clEnumValN(Target::Cpu, "cpu", "LLVM code for a CPU"),
          clEnumValN(Target::Reference, "reference", "interpreted in f32"),
          clEnumValN(Target::Vulkan, "vulkan", "SPIR-V for a Vulkan device"),
          clEnumValN(Target::Cuda, "cuda", "NVVM for an NVIDIA GPU"))};
  Option<int64_t> lanes{*this, "vector-lanes",
                        llvm::cl::desc("f32 lanes of a CPU vector register"),
                        llvm::cl::init(16)};
  Option<bool> int8Dot{*this, "int8-dot",
                       llvm::cl::desc("the CPU multiplies bytes (VNNI)"),
                       llvm::cl::init(false)};
  Option<int64_t> workers{
      *this, "workers",
      llvm::cl::desc("CPU threads that share a kernel's workgroups; 0: "
                     "unknown"),
      llvm::cl::init(0)};
  Option<int64_t> maxTokens{
      *this, "max-tokens",
      llvm::cl::desc("largest n_tokens of functions without kf.max_tokens"),
      llvm::cl::init(512)};
};

/// What comes from outside goes through this first.
void buildCheckPipeline(OpPassManager &passes);

/// Phase by phase; see Phase in Compiler.h.
void buildFusePipeline(OpPassManager &passes, const PipelineOptions &options);
void buildProgramPipeline(OpPassManager &passes,
                          const PipelineOptions &options);
void buildSchedulePipeline(OpPassManager &passes,
                           const PipelineOptions &options);
void buildLowerPipeline(OpPassManager &passes, const PipelineOptions &options);

/// Registers kf-fuse, kf-program, kf-schedule and kf-lower, each of which runs
/// its phase, and kf-compile, which runs all.
void registerPipelines();

} // namespace mlir::kf

#endif // KF_PIPELINES_PIPELINES_H
