//===- CompleteVCE.cpp - Capabilities of SPIR-V modules -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/SPIRV/Passes.h"

#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"

namespace mlir::kf {
#define GEN_PASS_DEF_COMPLETEVCE
#include "kf/Target/SPIRV/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

struct CompleteVCEPass : mlir::kf::impl::CompleteVCEBase<CompleteVCEPass> {
  void runOnOperation() override {
    spirv::ModuleOp module = getOperation();
    std::optional<spirv::VerCapExtAttr> found = module.getVceTriple();
    if (!found || !multipliesBF16(module))
      return;
    auto capabilities = llvm::to_vector(found->getCapabilities());
    capabilities.push_back(spirv::Capability::BFloat16CooperativeMatrixKHR);
    module.setVceTripleAttr(spirv::VerCapExtAttr::get(
        found->getVersion(), capabilities,
        llvm::to_vector(found->getExtensions()), &getContext()));
  }

private:
  static bool multipliesBF16(spirv::ModuleOp module) {
    bool found = false;
    module.walk([&](spirv::KHRCooperativeMatrixMulAddOp op) {
      found |= cast<spirv::CooperativeMatrixType>(op.getA().getType())
                   .getElementType()
                   .isBF16();
    });
    return found;
  }
};

} // namespace
