//===- ExpandFloat16.cpp - Conversions of half-precision floats -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/SPIRV/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::kf {
#define GEN_PASS_DEF_EXPANDFLOAT16
#include "kf/Target/SPIRV/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;
using arith::CmpIPredicate;

namespace {

/// Integer code on scalars.
class Bits {
public:
  explicit Bits(Operation *op) : b(op->getLoc(), op) {}

  /// The bits of the f16 that is nearest to `x`, even ones of two, in an i16.
  Value round(Value x) {
    Value bits = arith::BitcastOp::create(b, b.getI32Type(), x);
    Value sign = both(right(bits, 16), number(0x8000));
    Value magnitude = both(bits, number(0x7fffffff));
    // A normal number: half of the last bit that stays is added, less where
    // that bit is even; what is too large for f16 ends as an infinity.
    Value odd = both(right(magnitude, 13), number(1));
    Value normal = right(add(add(magnitude, odd), number(0xfff)), 13);
    normal = arith::SubIOp::create(b, normal, number(112 << 10));
    normal = select(CmpIPredicate::ult, normal, 0x7c00, normal, number(0x7c00));
    // A subnormal one: 0.5 has the last bit where the f16 has its own.
    Value half = arith::ConstantOp::create(b, b.getF32FloatAttr(0.5));
    Value sum = arith::AddFOp::create(
        b, arith::BitcastOp::create(b, b.getF32Type(), magnitude), half);
    Value small = arith::SubIOp::create(
        b, arith::BitcastOp::create(b, b.getI32Type(), sum),
        number(0x3f000000));
    Value nan =
        either(number(0x7e00), both(right(magnitude, 13), number(0x1ff)));
    Value result =
        select(CmpIPredicate::ult, magnitude, 0x38800000, small, normal);
    result = select(CmpIPredicate::ugt, magnitude, 0x7f800000, nan, result);
    return arith::TruncIOp::create(b, b.getI16Type(), either(result, sign));
  }

  /// The f32 of the f16 whose bits are in i16 `half`.
  Value extend(Value half) {
    Value bits = arith::ExtUIOp::create(b, b.getI32Type(), half);
    Value sign = left(both(bits, number(0x8000)), 16);
    Value magnitude = both(bits, number(0x7fff));
    Value shifted = left(magnitude, 13);
    Value normal = add(shifted, number(112 << 23));
    Value infinite = either(shifted, number(0x7f800000));
    // A subnormal number counts steps of 2^-24.
    Value steps = arith::MulFOp::create(
        b, arith::SIToFPOp::create(b, b.getF32Type(), magnitude),
        arith::ConstantOp::create(b, b.getF32FloatAttr(0x1p-24f)));
    Value small = arith::BitcastOp::create(b, b.getI32Type(), steps);
    Value result = select(CmpIPredicate::ult, magnitude, 0x400, small, normal);
    result = select(CmpIPredicate::uge, magnitude, 0x7c00, infinite, result);
    return arith::BitcastOp::create(b, b.getF32Type(), either(result, sign));
  }

  ImplicitLocOpBuilder b;

private:
  Value number(int64_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value right(Value x, int64_t by) {
    return arith::ShRUIOp::create(b, x, number(by));
  }
  Value left(Value x, int64_t by) {
    return arith::ShLIOp::create(b, x, number(by));
  }
  Value select(CmpIPredicate predicate, Value x, int64_t y, Value yes,
               Value no) {
    Value condition = arith::CmpIOp::create(b, predicate, x, number(y));
    return arith::SelectOp::create(b, condition, yes, no);
  }
};

struct ExpandFloat16Pass
    : mlir::kf::impl::ExpandFloat16Base<ExpandFloat16Pass> {
  using ExpandFloat16Base::ExpandFloat16Base;

  void runOnOperation() override {
    getOperation().walk([&](gpu::GPUFuncOp function) { expand(function); });
  }

private:
  void expand(gpu::GPUFuncOp function) {
    function.walk([&](Operation *op) {
      if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
        convertThroughF32(op);
    });
    function.walk([&](arith::TruncFOp op) {
      if (!op.getType().isF16() || !op.getIn().getType().isF32())
        return;
      Bits bits(op);
      op.replaceAllUsesWith(
          arith::BitcastOp::create(bits.b, op.getType(), bits.round(op.getIn()))
              .getResult());
      op.erase();
    });
    if (hasFloat16)
      return;
    function.walk([&](arith::ExtFOp op) {
      if (!op.getIn().getType().isF16() || !op.getType().isF32())
        return;
      Bits bits(op);
      Value half =
          arith::BitcastOp::create(bits.b, bits.b.getI16Type(), op.getIn());
      op.replaceAllUsesWith(bits.extend(half));
      op.erase();
    });
    // What is left only moves f16s.
    auto convert = [&](Value value) {
      value.setType(asInteger(value.getType()));
    };
    llvm::for_each(function.getArguments(), convert);
    function.walk([&](Operation *op) {
      llvm::for_each(op->getResults(), convert);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          llvm::for_each(block.getArguments(), convert);
      if (auto constant = dyn_cast<arith::ConstantOp>(op))
        if (auto value = dyn_cast<FloatAttr>(constant.getValue());
            value && value.getType().isF16())
          constant.setValueAttr(
              IntegerAttr::get(IntegerType::get(&getContext(), 16),
                               value.getValue().bitcastToAPInt()));
      if (auto cast = dyn_cast<arith::BitcastOp>(op);
          cast && cast.getIn().getType() == cast.getType()) {
        cast.replaceAllUsesWith(cast.getIn());
        cast.erase();
      }
    });
    SmallVector<Type> inputs =
        llvm::map_to_vector(function.getFunctionType().getInputs(), asInteger);
    function.setFunctionType(FunctionType::get(&getContext(), inputs, {}));
  }

  /// Integers become f16 by way of f32, whose rounding is expanded.
  static void convertThroughF32(Operation *op) {
    Value result = op->getResult(0);
    Type narrow = result.getType();
    if (!narrow.isF16())
      return;
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    result.setType(b.getF32Type());
    auto rounded = arith::TruncFOp::create(b, op->getLoc(), narrow, result);
    result.replaceAllUsesExcept(rounded, rounded);
  }

  static Type asInteger(Type type) {
    if (type.isF16())
      return IntegerType::get(type.getContext(), 16);
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref || !memref.getElementType().isF16())
      return type;
    return MemRefType::Builder(memref).setElementType(
        asInteger(memref.getElementType()));
  }
};

} // namespace
