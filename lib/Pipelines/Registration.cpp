//===- Registration.cpp - Everything that a kf tool registers -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/Registration.h"

#include "kf/Conversion/Passes.h"
#include "kf/Pipelines/Passes.h"
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
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

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
  registerKFPipelinesPasses();
  registerKFNVVMPasses();
  registerKFSPIRVPasses();
  registerKFTransformsPasses();
  registerUpstreamPasses();
}
