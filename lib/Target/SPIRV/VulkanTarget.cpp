//===- VulkanTarget.cpp - A Vulkan device as a target ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/SPIRV/VulkanTarget.h"

#include "kf/Target/Common/GpuSchedules.h"
#include "kf/Target/SPIRV/Codegen.h"

#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

struct VulkanTargetModel
    : TargetAttrInterface::ExternalModel<VulkanTargetModel, VulkanTargetAttr> {
  StringRef getDevice(Attribute) const { return "vulkan"; }
  bool isInterpreted(Attribute) const { return false; }
  void addDivisionPasses(Attribute, OpPassManager &, int64_t) const {}
  FusionRules getFusionRules(Attribute, int64_t) const { return {}; }
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
  void addLoweringPasses(Attribute target, OpPassManager &passes) const {
    auto vulkan = cast<VulkanTargetAttr>(target);
    SmallVector<std::string> types;
    for (Type type : vulkan.getTypes())
      types.push_back(debugString(type));
    buildSpirvCodegenPipeline(passes, types, vulkan.getDenormPreserve());
  }
  LogicalResult serialize(Attribute, ModuleOp module,
                          ::kf::Executable &executable,
                          ::kf::CancelFlag) const {
    return serializeForVulkan(module, executable);
  }
  std::string getIdentity(Attribute) const { return ""; }

private:
  static GpuLimits limitsOf(Attribute target) {
    auto vulkan = cast<VulkanTargetAttr>(target);
    GpuLimits limits;
    limits.name = "Vulkan";
    limits.threads = vulkan.getThreads();
    limits.memory = vulkan.getMemory();
    limits.indexBits = 32;
    limits.integers.emplace();
    for (Type type : vulkan.getTypes())
      if (type.isInteger())
        limits.integers->push_back(type.getIntOrFloatBitWidth());
    return limits;
  }
};

} // namespace

void mlir::kf::registerVulkanTarget(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KFDialect *) {
    VulkanTargetAttr::attachInterface<VulkanTargetModel>(*context);
  });
}

llvm::Expected<TargetAttrInterface>
mlir::kf::createVulkanTarget(MLIRContext *context, StringRef chip, int64_t) {
  if (!chip.empty())
    return llvm::createStringError(
        "code for Vulkan is made from what a device reports, and there is no "
        "chip '" +
        chip + "'; write #kf.vulkan_target<...>");
  return cast<TargetAttrInterface>(Attribute(VulkanTargetAttr::get(
      context, /*threads=*/256, /*memory=*/16384, /*subgroup=*/4,
      /*types=*/ArrayRef<Type>(), /*denorm_preserve=*/false)));
}
