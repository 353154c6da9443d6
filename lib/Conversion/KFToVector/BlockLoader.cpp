//===- BlockLoader.cpp - Elements of rows of blocks -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Block-quantized tensors in the layout of their file, as embedding tables are.
//
//===----------------------------------------------------------------------===//

#include "../Common/BlockReader.h"
#include "KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;
using Format = ::kf::BlockFormat;

namespace {

/// Reads row `row` (indices but the last) of a memref of rows of bytes, from
/// byte `base` on.
class RowBlockReader : public BlockReader {
public:
  RowBlockReader(KernelEmitter &e, const Format &format, Value memref,
                 ValueRange row, Value base, Value element, unsigned width)
      : BlockReader(e, format, element, width), kernel(e), memref(memref),
        row(row), base(base) {}

private:
  Value byte(Value offset) override {
    Value value = memref::LoadOp::create(b, loc, memref,
                                         indicesAt(row, e.add(base, offset)));
    return arith::ExtUIOp::create(b, loc, b.getI32Type(), value);
  }
  Value bytes(Value offset) override {
    return arith::ExtUIOp::create(b, loc, typeOf(b.getI32Type()),
                                  packed(offset, width));
  }
  Value half(int64_t offset) override {
    return arith::ExtFOp::create(b, loc, b.getF32Type(),
                                 as(b.getF16Type(), offset, 2));
  }
  Value word(int64_t offset) override { return as(b.getI32Type(), offset, 4); }
  Value lookUp(const int8_t *table, Value codes) override {
    return kernel.lookUp(table, codes);
  }

  Value packed(Value offset, int64_t count) {
    return vector::LoadOp::create(b, loc, e.vectorType(count, b.getI8Type()),
                                  memref, indicesAt(row, e.add(base, offset)));
  }
  /// `count` bytes as one scalar.
  Value as(Type type, int64_t offset, int64_t count) {
    Value one = vector::BitCastOp::create(b, loc, e.vectorType(1, type),
                                          packed(e.index(offset), count));
    return vector::ExtractOp::create(b, loc, one, int64_t(0));
  }

  KernelEmitter &kernel;
  Value memref;
  ValueRange row;
  Value base;
};

} // namespace

Value KernelEmitter::lookUp(const int8_t *table, Value codes) {
  SmallVector<float> values(table, table + 16);
  auto type = RankedTensorType::get({16}, b.getF32Type());
  Value memref = constant(
      "kf_block_table", DenseElementsAttr::get(type, ArrayRef<float>(values)));
  auto codeType = cast<VectorType>(codes.getType());
  Value all = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(codeType.clone(b.getI1Type()), true));
  Value zeros = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(codeType.clone(b.getF32Type())));
  return vector::GatherOp::create(b, loc, cast<VectorType>(zeros.getType()),
                                  memref, ValueRange{index(0)}, codes, all,
                                  zeros);
}

Value KernelEmitter::loadBlocks(BlockArgument argument, const Format &format,
                                ValueRange indices, unsigned width,
                                Value mask) {
  Value column = indices.back();
  unsigned count = std::max(width, 1u);
  if (mask) {
    // Lanes past the row read its end instead.
    int64_t last =
        cast<RankedTensorType>(argument.getType()).getShape().back() - count;
    column = select(isLess(column, index(last)), column, index(last));
  }
  Value block = arith::DivUIOp::create(b, loc, column, index(format.elements));
  Value element =
      arith::RemUIOp::create(b, loc, column, index(format.elements));
  Value base = mul(block, index(format.bytes));
  Value values = RowBlockReader(*this, format, memrefOf(argument),
                                indices.drop_back(), base, element, count)
                     .read();
  return width ? values
               : vector::ExtractOp::create(b, loc, values, int64_t(0))
                     .getResult();
}
