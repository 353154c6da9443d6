//===- CudaTarget.cpp - An NVIDIA GPU as a target -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/GpuTarget.h"
#include "kf/Target/NVVM/Codegen.h"
#include "kf/Target/NVVM/Passes.h"
#include "kf/Target/TargetEntry.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

struct CudaTargetModel : GpuTargetModel<CudaTargetModel, CudaTargetAttr> {
  StringRef getDevice(Attribute) const { return "cuda"; }
  FusionRules getFusionRules(Attribute) const {
    FusionRules rules = getGpuFusionRules();
    // Each row appends those of its sequence itself.
    rules.mostRowsOfAppend = kGpuFewRows;
    rules.sumsIntoExperts = true;
    return rules;
  }
  bool appendsInAttention(Attribute) const { return true; }
  void addDivisionPasses(Attribute, OpPassManager &passes,
                         int64_t maxTokens) const {
    passes.addNestedPass<func::FuncOp>(createSplitNvvmAttention({maxTokens}));
    passes.addNestedPass<func::FuncOp>(createFormNvvmProducts());
  }
  void addLoweringPasses(Attribute, OpPassManager &passes) const {
    buildNvvmCodegenPipeline(passes);
  }
  LogicalResult serialize(Attribute target, ModuleOp module,
                          ::kf::Executable &executable,
                          ::kf::CancelFlag cancelled) const {
    return serializeForCuda(module, executable,
                            cast<CudaTargetAttr>(target).getChip(), cancelled);
  }

  static MachineDescription describe(CudaTargetAttr target) {
    return describeCudaMachine(target);
  }
};

llvm::Expected<Attribute> createCudaTarget(MLIRContext *context, StringRef chip,
                                           int64_t) {
  // Code for the oldest chip runs on all later ones, some of which give a block
  // less shared memory.
  if (chip.empty())
    return CudaTargetAttr::get(context, "sm_80", /*multiprocessors=*/0,
                               getCudaSharedBytes("sm_86"));
  if (llvm::Error error = checkCudaChip(chip))
    return std::move(error);
  return CudaTargetAttr::get(context, chip, /*multiprocessors=*/0,
                             getCudaSharedBytes(chip));
}

} // namespace

const TargetEntry mlir::kf::cudaTarget = {
    "cuda", registerTargetModel<CudaTargetAttr, CudaTargetModel>,
    createCudaTarget};
