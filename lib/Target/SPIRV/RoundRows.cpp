//===- RoundRows.cpp - Rows for cooperative matrices ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/RoundRows.h"

#include "kf/Conversion/KernelShape.h"
#include "kf/Target/Common/GpuSchedules.h"
#include "kf/Target/SPIRV/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::kf {
#define GEN_PASS_DEF_ROUNDSPIRVROWS
#include "kf/Target/SPIRV/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Whether it is a loaded weight, or rows of one, which will be packed.
bool isPacked(Value weight) {
  while (auto slice = weight.getDefiningOp<tensor::ExtractSliceOp>())
    weight = slice.getSource();
  return weight.getDefiningOp<WeightOp>() != nullptr;
}

struct RoundSpirvRowsPass
    : mlir::kf::impl::RoundSpirvRowsBase<RoundSpirvRowsPass> {
  using RoundSpirvRowsBase::RoundSpirvRowsBase;

  void runOnOperation() override {
    auto typeOf = [&](MatmulOp op) {
      Type type = getRoundedType(op);
      const bool fits =
          type && isPacked(op.getW()) && isForCoop(op, type) &&
          llvm::is_contained(matrices, type.isF16() ? "f16" : "bf16");
      return fits ? type : Type();
    };
    roundRows(getOperation(),
              {maxTokens, typeOf, [](MatmulOp) { return kGpuFewRows; }});
  }
};

} // namespace
