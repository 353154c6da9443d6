//===- VulkanTarget.cpp - A Vulkan device as a target ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/GpuTarget.h"
#include "kf/Target/SPIRV/Codegen.h"
#include "kf/Target/TargetEntry.h"

#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

struct VulkanTargetModel : GpuTargetModel<VulkanTargetModel, VulkanTargetAttr> {
  StringRef getDevice(Attribute) const { return "vulkan"; }
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

  static MachineDescription describe(VulkanTargetAttr target) {
    MachineDescription machine;
    machine.name = "Vulkan";
    machine.threads = target.getThreads();
    machine.memory = target.getMemory();
    machine.indexBits = 32;
    machine.integers.emplace();
    for (Type type : target.getTypes())
      if (type.isInteger())
        machine.integers->push_back(type.getIntOrFloatBitWidth());
    machine.sharesRegisters = false;
    return machine;
  }
};

llvm::Expected<Attribute> createVulkanTarget(MLIRContext *context,
                                             StringRef chip, int64_t) {
  if (!chip.empty())
    return llvm::createStringError(
        "vulkan target: there is no chip '" + chip +
        "'; leave it out, or give kf-set-target what a device reports, "
        "#kf.vulkan_target<...>");
  return VulkanTargetAttr::get(context, /*threads=*/256, /*memory=*/16384,
                               /*subgroup=*/4, /*types=*/ArrayRef<Type>(),
                               /*denorm_preserve=*/false);
}

} // namespace

const TargetEntry mlir::kf::vulkanTarget = {
    "vulkan", registerTargetModel<VulkanTargetAttr, VulkanTargetModel>,
    createVulkanTarget};
