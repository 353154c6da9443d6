//===- KFToGPU.cpp - Tiled kernels to GPU functions -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Conversion/Passes.h"

#include "GPUEmitter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::kf {
#define GEN_PASS_DEF_CONVERTKFTOGPU
#include "kf/Conversion/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

struct ConvertKFToGPUPass
    : mlir::kf::impl::ConvertKFToGPUBase<ConvertKFToGPUPass> {
  void runOnOperation() override {
    CodeBudget budget;
    IRRewriter rewriter(&getContext(), &budget);
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (failed(GPUEmitter(kernel, rewriter, budget).emit()))
        return signalPassFailure();
    getOperation()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                            UnitAttr::get(&getContext()));
  }
};

} // namespace
