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

#include "mlir/AsmParser/AsmParser.h"
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
    auto has = [](ArrayRef<Type> types, auto isIt) {
      return llvm::any_of(types, isIt);
    };
    auto isHalf = [](Type type) { return type.isF16(); };
    machine.hasHalves =
        has(target.getTypes(), isHalf) &&
        has(target.getTypes(), [](Type type) { return type.isInteger(16); });
    // Rows are rounded to f16, and what threads make of codes is, too, by
    // scales that they have from one another.
    if (machine.hasHalves && target.getShuffle() &&
        has(target.getMatrices(), isHalf)) {
      machine.subgroupThreads = target.getSubgroup();
      machine.units.push_back(MatrixUnit::CoopF16);
      if (has(target.getMatrices(), [](Type type) { return type.isBF16(); }))
        machine.units.push_back(MatrixUnit::CoopBF16);
    }
    if (target.getMultiprocessors() > 0)
      machine.multiprocessors = target.getMultiprocessors();
    return machine;
  }
};

/// Devices that code can be made for without one at hand.
struct KnownDevice {
  StringLiteral name;
  StringLiteral target; ///< what is between its #kf.vulkan_target's brackets
};

constexpr KnownDevice knownDevices[] = {
    // Mesa 22.3 of Debian 12 on a CPU with vectors of 256 bits, as it reports.
    // It has f16, without keeping subnormal numbers.
    {"lavapipe", "threads = 1024, memory = 32768, subgroup = 8, "
                 "arithmetic = true, shuffle = true, "
                 "types = [i8, i16, i64], int8_dot = true"},
    // Radeon RX 7900 XTX. Not of a device at hand: what Mesa's RADV sets in
    // radv_physical_device.c for GFX11, with AMD's number of compute units.
    {"rdna3", "threads = 1024, memory = 65536, subgroup = 64, "
              "arithmetic = true, shuffle = true, "
              "types = [f16, i8, i16, i64], denorm_preserve = true, "
              "int8_dot = true, matrices = [f16, i8], multiprocessors = 96"},
    // Arc A770. Not of a device at hand: what Mesa's ANV sets in
    // anv_physical_device.c for DG2, with Intel's number of Xe cores, which it
    // does not report. Its matrices are of 8 x 16.
    {"arc", "threads = 1024, memory = 65536, subgroup = 32, "
            "arithmetic = true, shuffle = true, types = [f16, i8, i16, i64], "
            "denorm_preserve = true, int8_dot = true, multiprocessors = 32"},
    // Driver 580, as it reports.
    {"h200", "threads = 1024, memory = 49152, subgroup = 32, "
             "arithmetic = true, shuffle = true, "
             "types = [f16, i8, i16, i64], denorm_preserve = true, "
             "int8_dot = true, matrices = [f16, bf16, i8], "
             "multiprocessors = 132"},
};

llvm::Expected<Attribute> createVulkanTarget(MLIRContext *context,
                                             StringRef chip, int64_t) {
  // The least that a device has.
  if (chip.empty())
    return VulkanTargetAttr::get(
        context, /*threads=*/256, /*memory=*/16384, /*subgroup=*/4,
        /*arithmetic=*/false, /*shuffle=*/false, /*types=*/ArrayRef<Type>(),
        /*denorm_preserve=*/false, /*int8_dot=*/false,
        /*matrices=*/ArrayRef<Type>(), /*multiprocessors=*/0);
  std::string names;
  for (const KnownDevice &device : knownDevices) {
    if (device.name == chip)
      return parseAttribute(("#kf.vulkan_target<" + device.target + ">").str(),
                            context);
    names += (names.empty() ? "" : ", ") + device.name.str();
  }
  return llvm::createStringError(
      "vulkan target: there is no chip '" + chip + "'; known are " + names +
      "; leave it out, or give kf-set-target what a device reports, "
      "#kf.vulkan_target<...>");
}

} // namespace

const TargetEntry mlir::kf::vulkanTarget = {
    "vulkan", registerTargetModel<VulkanTargetAttr, VulkanTargetModel>,
    createVulkanTarget};
