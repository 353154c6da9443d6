//===- ExpandBits.cpp - Arithmetic on numbers of one bit ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/SPIRV/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::kf {
#define GEN_PASS_DEF_EXPANDBITS
#include "kf/Target/SPIRV/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

bool isBit(Type type) { return type.isInteger(1); }

/// Whether `op` is arithmetic: logic, choices and conversions to other integers
/// are as they should be.
bool isArithmetic(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compare.getPredicate() != arith::CmpIPredicate::eq &&
           compare.getPredicate() != arith::CmpIPredicate::ne;
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::DivSIOp,
             arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::ShLIOp,
             arith::ShRSIOp, arith::ShRUIOp, arith::MaxSIOp, arith::MaxUIOp,
             arith::MinSIOp, arith::MinUIOp, arith::SIToFPOp, arith::FPToSIOp,
             arith::FPToUIOp>(op);
}

/// Whether operand `number` of `op` is 0 or -1, not 0 or 1.
bool isSigned(Operation *op, unsigned number) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compare.getPredicate() < arith::CmpIPredicate::ult;
  return isa<arith::DivSIOp, arith::RemSIOp, arith::MaxSIOp, arith::MinSIOp,
             arith::SIToFPOp>(op) ||
         (isa<arith::ShRSIOp>(op) && number == 0);
}

struct ExpandBitsPass : mlir::kf::impl::ExpandBitsBase<ExpandBitsPass> {
  void runOnOperation() override {
    getOperation().walk([](gpu::GPUFuncOp function) {
      function.walk([](Operation *op) {
        auto areBits = [](TypeRange types) {
          return llvm::any_of(types, isBit);
        };
        if (isArithmetic(op) &&
            (areBits(op->getOperandTypes()) ||
             (!isa<arith::CmpIOp>(op) && areBits(op->getResultTypes()))))
          computeInWords(op);
      });
    });
  }

private:
  /// The lowest bit of the result depends on no other ones of what is computed.
  static void computeInWords(Operation *op) {
    OpBuilder b(op);
    const Location loc = op->getLoc();
    const Type word = b.getI32Type();
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isBit(operand.get().getType()))
        continue;
      operand.set(
          isSigned(op, operand.getOperandNumber())
              ? Value(arith::ExtSIOp::create(b, loc, word, operand.get()))
              : arith::ExtUIOp::create(b, loc, word, operand.get()));
    }
    Value result = op->getResult(0);
    if (isa<arith::CmpIOp>(op) || !isBit(result.getType()))
      return;
    result.setType(word);
    b.setInsertionPointAfter(op);
    auto bit = arith::TruncIOp::create(b, loc, b.getI1Type(), result);
    result.replaceAllUsesExcept(bit, bit);
  }
};

} // namespace
