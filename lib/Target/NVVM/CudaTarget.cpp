//===- CudaTarget.cpp - An NVIDIA GPU as a target -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/NVVM/CudaTarget.h"

#include "kf/Target/Common/GpuSchedules.h"
#include "kf/Target/NVVM/Codegen.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

struct CudaTargetModel
    : TargetAttrInterface::ExternalModel<CudaTargetModel, CudaTargetAttr> {
  StringRef getDevice(Attribute) const { return "cuda"; }
  bool isInterpreted(Attribute) const { return false; }
  FusionRules getFusionRules(Attribute, int64_t) const { return {}; }
  void addDivisionPasses(Attribute, OpPassManager &, int64_t) const {}
  LayoutAttr getWeightLayout(Attribute, RankedTensorType) const { return {}; }
  KVCacheType getCacheLayout(Attribute, KVCacheType cache) const {
    return cache.withKeyBlock(1);
  }
  ScheduleAttrInterface selectSchedule(Attribute target, KernelOp kernel,
                                       int64_t rows) const {
    return selectGpuSchedule(kernel, limitsOf(target), rows);
  }
  LogicalResult verifySchedule(Attribute target, KernelOp kernel,
                               int64_t rows) const {
    return verifyGpuSchedule(kernel, limitsOf(target), rows);
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
  std::string getIdentity(Attribute) const { return ""; }

private:
  static GpuLimits limitsOf(Attribute target) {
    GpuLimits limits;
    limits.name = "CUDA";
    limits.threads = 256; // registers of a multiprocessor for several blocks
    // More has to be asked for at each launch.
    limits.memory = std::min(cast<CudaTargetAttr>(target).getMemory(),
                             kCudaStaticSharedBytes);
    limits.indexBits = 64;
    return limits;
  }
};

} // namespace

void mlir::kf::registerCudaTarget(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KFDialect *) {
    CudaTargetAttr::attachInterface<CudaTargetModel>(*context);
  });
}

llvm::Expected<TargetAttrInterface>
mlir::kf::createCudaTarget(MLIRContext *context, StringRef chip, int64_t) {
  if (chip.empty())
    chip = "sm_80";
  if (llvm::Error error = checkCudaChip(chip))
    return std::move(error);
  return cast<TargetAttrInterface>(
      Attribute(CudaTargetAttr::get(context, chip, /*multiprocessors=*/0,
                                    /*memory=*/kCudaStaticSharedBytes)));
}
