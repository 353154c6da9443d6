//===- Registration.cpp - Everything that a kf tool registers -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/Registration.h"

#include "kf/Conversion/Passes.h"
#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Pipelines/Pipelines.h"
#include "kf/Target/LLVMCPU/Passes.h"
#include "kf/Target/NVVM/Passes.h"
#include "kf/Target/SPIRV/Passes.h"
#include "kf/Transforms/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void mlir::kf::registerDialects(DialectRegistry &registry) {
  registry
      .insert<KFDialect, affine::AffineDialect, arith::ArithDialect,
              cf::ControlFlowDialect, func::FuncDialect, gpu::GPUDialect,
              LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
              NVVM::NVVMDialect, scf::SCFDialect, spirv::SPIRVDialect,
              tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
  registerTilingInterfaceExternalModels(registry);
}

/// The upstream passes that the pipelines run, and two that tidy up.
static void registerUpstreamPasses() {
  auto add = [](std::unique_ptr<Pass> (*create)()) { registerPass(create); };
  add([] { return createCanonicalizerPass(); });
  add([] { return createCSEPass(); });
  add([] { return createSymbolDCEPass(); });
  add([] { return createStripDebugInfoPass(); });
  add([] { return memref::createExpandStridedMetadataPass(); });
  add([] { return createLowerAffinePass(); });
  add([] { return createSCFToControlFlowPass(); });
  add([] { return createConvertVectorToLLVMPass(); });
  add([] { return createConvertMathToLLVMPass(); });
  add([] { return createFinalizeMemRefToLLVMConversionPass(); });
  add([] { return createArithToLLVMConversionPass(); });
  add([] { return createConvertIndexToLLVMPass(); });
  add([] { return createConvertControlFlowToLLVMPass(); });
  add([] { return createConvertFuncToLLVMPass(); });
  add([] { return createUBToLLVMConversionPass(); });
  add([] { return createReconcileUnrealizedCastsPass(); });
}

void mlir::kf::registerPasses() {
  registerKFConversionPasses();
  registerKFLLVMCPUPasses();
  registerKFNVVMPasses();
  registerKFSPIRVPasses();
  registerKFTransformsPasses();
  registerPipelines();
  registerUpstreamPasses();
}
