//===- Phases.cpp - The phases as passes ----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/Passes.h"
#include "kf/Pipelines/Pipelines.h"
#include "kf/Pipelines/Registration.h"
#include "kf/Target/Targets.h"

namespace mlir::kf {
#define GEN_PASS_DEF_SETTARGET
#define GEN_PASS_DEF_FUSEPHASE
#define GEN_PASS_DEF_PROGRAMPHASE
#define GEN_PASS_DEF_SCHEDULEPHASE
#define GEN_PASS_DEF_LOWERPHASE
#define GEN_PASS_DEF_COMPILEPHASES
#include "kf/Pipelines/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

struct SetTargetPass : mlir::kf::impl::SetTargetBase<SetTargetPass> {
  using SetTargetBase::SetTargetBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    registerDialects(registry);
  }

  void runOnOperation() override {
    llvm::Expected<TargetAttrInterface> parsed =
        parseTarget(target, &getContext(), workers);
    if (!parsed) {
      getOperation().emitError("kf-set-target: ")
          << llvm::toString(parsed.takeError());
      return signalPassFailure();
    }
    getOperation()->setAttr(kTargetAttrName, *parsed);
  }
};

/// Runs what `build` adds for the module's target. The dialects of all targets
/// are loaded ahead, since the target is known only here.
template <typename Base> struct Phase : Base {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    registerDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = this->getOperation();
    TargetAttrInterface target = getTarget(module);
    if (!target)
      return this->signalPassFailure();
    OpPassManager passes(ModuleOp::getOperationName());
    build(passes, target);
    if (failed(this->runPipeline(passes, module)))
      this->signalPassFailure();
  }

  virtual void build(OpPassManager &passes, TargetAttrInterface target) = 0;
};

struct FusePhasePass : Phase<mlir::kf::impl::FusePhaseBase<FusePhasePass>> {
  void build(OpPassManager &passes, TargetAttrInterface target) override {
    buildFusePipeline(passes, target);
  }
};

struct ProgramPhasePass
    : Phase<mlir::kf::impl::ProgramPhaseBase<ProgramPhasePass>> {
  using Phase::Phase;
  void build(OpPassManager &passes, TargetAttrInterface target) override {
    buildProgramPipeline(passes, target, maxTokens);
  }
};

struct SchedulePhasePass
    : Phase<mlir::kf::impl::SchedulePhaseBase<SchedulePhasePass>> {
  void build(OpPassManager &passes, TargetAttrInterface target) override {
    buildSchedulePipeline(passes, target);
  }
};

struct LowerPhasePass : Phase<mlir::kf::impl::LowerPhaseBase<LowerPhasePass>> {
  void build(OpPassManager &passes, TargetAttrInterface target) override {
    buildLowerPipeline(passes, target);
  }
};

struct CompilePhasesPass
    : Phase<mlir::kf::impl::CompilePhasesBase<CompilePhasesPass>> {
  using Phase::Phase;
  void build(OpPassManager &passes, TargetAttrInterface target) override {
    buildCheckPipeline(passes);
    buildFusePipeline(passes, target);
    buildProgramPipeline(passes, target, maxTokens);
    buildSchedulePipeline(passes, target);
    buildLowerPipeline(passes, target);
  }
};

} // namespace
