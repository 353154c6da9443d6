//===- Codegen.cpp - kf kernels to SPIR-V ---------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/SPIRV/Codegen.h"

#include "kf/Conversion/Passes.h"
#include "kf/Dialect/KF/IR/Machine.h"
#include "kf/Target/SPIRV/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Dialect/SPIRV/Transforms/Passes.h"
#include "mlir/Target/SPIRV/Serialization.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::kf;

void mlir::kf::buildSpirvCodegenPipeline(OpPassManager &passes,
                                         ArrayRef<std::string> types,
                                         bool denormPreserve) {
  passes.addPass(createConvertKFToGPU());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createExpandBits());
  ExpandFloat16Options floats;
  floats.hasFloat16 =
      llvm::is_contained(types, "f16") && llvm::is_contained(types, "i16");
  passes.addPass(createExpandFloat16(floats));
  ConvertGPUToSpirvOptions conversion;
  conversion.types.assign(types.begin(), types.end());
  conversion.denormPreserve = denormPreserve;
  passes.addPass(createConvertGPUToSpirv(conversion));
  OpPassManager &modules = passes.nest<spirv::ModuleOp>();
  modules.addPass(spirv::createSPIRVLowerABIAttributesPass());
  modules.addPass(createCanonicalizerPass());
  modules.addPass(createCSEPass());
  modules.addPass(spirv::createSPIRVUpdateVCEPass());
  modules.addPass(createCompleteVCE());
}

/// The module whose entry point is `name`, and its workgroup size.
static spirv::ModuleOp findKernel(ModuleOp module, StringRef name,
                                  std::array<uint32_t, 3> &size) {
  for (auto candidate : module.getOps<spirv::ModuleOp>())
    for (auto mode : candidate.getOps<spirv::ExecutionModeOp>())
      if (mode.getFn() == name &&
          mode.getExecutionMode() == spirv::ExecutionMode::LocalSize) {
        for (auto [dim, value] : llvm::enumerate(mode.getValues()))
          size[dim] = cast<IntegerAttr>(value).getInt();
        return candidate;
      }
  return {};
}

/// Bytes of a scalar, or of vectors, arrays and structs of scalars, without
/// padding.
static uint64_t byteSize(Type type) {
  if (auto array = dyn_cast<spirv::ArrayType>(type))
    return array.getNumElements() * byteSize(array.getElementType());
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * byteSize(vector.getElementType());
  uint64_t bytes = 0;
  if (auto structure = dyn_cast<spirv::StructType>(type)) {
    for (Type element : structure.getElementTypes())
      bytes += byteSize(element);
    return bytes;
  }
  return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

static uint64_t workgroupBytes(spirv::ModuleOp module) {
  uint64_t bytes = 0;
  for (auto variable : module.getOps<spirv::GlobalVariableOp>()) {
    auto pointer = cast<spirv::PointerType>(variable.getType());
    if (pointer.getStorageClass() == spirv::StorageClass::Workgroup)
      bytes += byteSize(pointer.getPointeeType());
  }
  return bytes;
}

/// Whether subgroups multiply matrices in `module`.
static bool multipliesMatrices(spirv::ModuleOp module) {
  auto needs = module.getVceTriple();
  return needs && llvm::is_contained(needs->getCapabilities(),
                                     spirv::Capability::CooperativeMatrixKHR);
}

LogicalResult mlir::kf::serializeForVulkan(ModuleOp module,
                                           ::kf::Executable &executable) {
  executable.binary.clear();
  for (::kf::KernelSpec &kernel : executable.kernels) {
    spirv::ModuleOp found =
        findKernel(module, kernel.name, kernel.workgroupSize);
    if (!found)
      return module.emitError("vulkan target: kernel @")
             << kernel.name << " is not lowered to SPIR-V";
    kernel.scratchBytes = workgroupBytes(found);
    if (multipliesMatrices(found))
      kernel.subgroupThreads = getMachine(module).subgroupThreads;
    SmallVector<uint32_t> words;
    if (failed(spirv::serialize(found, words)))
      return failure();
    uint64_t bytes = words.size() * sizeof(uint32_t);
    for (int shift = 0; shift < 64; shift += 8)
      executable.binary.push_back(static_cast<char>(bytes >> shift));
    for (uint32_t word : words)
      for (int shift = 0; shift < 32; shift += 8)
        executable.binary.push_back(static_cast<char>(word >> shift));
  }
  return success();
}
