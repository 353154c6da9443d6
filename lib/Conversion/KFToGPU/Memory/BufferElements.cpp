//===- BufferElements.cpp - Elements of buffers ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between what buffers hold and what code computes with: 16-bit floats, and
// rows of blocks in the layout of their file.
//
//===----------------------------------------------------------------------===//

#include "../../Common/BlockReader.h"
#include "../GPUEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

Value GPUEmitter::loadBuffer(Value buffer, Value place, Type element) {
  return widen(memref::LoadOp::create(b, loc, buffer, place), element);
}

void GPUEmitter::storeBuffer(Value value, Value buffer, Value place,
                             Type element) {
  memref::StoreOp::create(b, loc, narrow(value, element), buffer, place);
}

Value GPUEmitter::widen(Value stored, Type element) {
  if (element.isInteger(1))
    return arith::TruncIOp::create(b, loc, element, stored);
  if (element.isF16())
    return arith::ExtFOp::create(b, loc, b.getF32Type(), stored);
  if (isa<Float8E4M3FNType>(element))
    return widenFloat8(stored);
  if (!element.isBF16())
    return stored;
  Value bits = arith::ExtUIOp::create(b, loc, b.getI32Type(), stored);
  bits = arith::ShLIOp::create(b, loc, bits, word(16));
  return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
}

Value GPUEmitter::narrow(Value value, Type element) {
  if (element.isInteger(1))
    return arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  if (element.isF16())
    return arith::TruncFOp::create(b, loc, element, value);
  if (!element.isBF16())
    return value;
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), value);
  Value high = arith::ShRUIOp::create(b, loc, bits, word(16));
  // Half of the last bit that stays, less where that bit is even.
  Value odd = arith::AndIOp::create(b, loc, high, word(1));
  Value half = arith::AddIOp::create(b, loc, odd, word(0x7fff));
  Value rounded = arith::ShRUIOp::create(
      b, loc, arith::AddIOp::create(b, loc, bits, half), word(16));
  Value magnitude = arith::AndIOp::create(b, loc, bits, word(0x7fffffff));
  Value isNan = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt,
                                      magnitude, word(0x7f800000));
  Value quiet = arith::OrIOp::create(b, loc, high, word(0x40));
  return arith::TruncIOp::create(b, loc, b.getI16Type(),
                                 select(isNan, quiet, rounded));
}

Value GPUEmitter::loadHalf(Value buffer, Value place) {
  auto byte = [&](Value at) -> Value {
    return arith::ExtUIOp::create(b, loc, b.getI32Type(),
                                  memref::LoadOp::create(b, loc, buffer, at));
  };
  Value low = byte(place), high = byte(add(place, index(1)));
  Value bits = arith::OrIOp::create(
      b, loc, low, arith::ShLIOp::create(b, loc, high, word(8)));
  Value half = arith::BitcastOp::create(
      b, loc, b.getF16Type(),
      arith::TruncIOp::create(b, loc, b.getI16Type(), bits));
  return widen(half, b.getF16Type());
}

void GPUEmitter::storeHalf(Value value, Value buffer, Value place) {
  Value half = narrow(value, b.getF16Type());
  Value bits = arith::BitcastOp::create(b, loc, b.getI16Type(), half);
  Value eight = arith::ConstantOp::create(b, loc, b.getI16IntegerAttr(8));
  Value low = arith::TruncIOp::create(b, loc, b.getI8Type(), bits);
  Value high = arith::TruncIOp::create(
      b, loc, b.getI8Type(), arith::ShRUIOp::create(b, loc, bits, eight));
  memref::StoreOp::create(b, loc, low, buffer, place);
  memref::StoreOp::create(b, loc, high, buffer, add(place, index(1)));
}

std::pair<Value, Value> GPUEmitter::loadWords(Value tensor, Value place) {
  while (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>()) {
    place = add(place, index(slice.getMixedOffsets()[0]));
    tensor = slice.getSource();
  }
  Value buffer = bufferOf(cast<BlockArgument>(tensor));
  Value low = mul(place, index(2));
  return {memref::LoadOp::create(b, loc, buffer, low),
          memref::LoadOp::create(b, loc, buffer, add(low, index(1)))};
}

Value GPUEmitter::constantTable(MemRefType type, DenseElementsAttr data) {
  std::string &name = tables[data];
  if (name.empty()) {
    name = (kernel.getSymName() + "_table_" + Twine(tables.size() - 1)).str();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(function);
    memref::GlobalOp::create(b, loc, name, b.getStringAttr("private"), type,
                             data, /*constant=*/true, IntegerAttr());
  }
  return memref::GetGlobalOp::create(b, loc, type, name);
}

/// The table is four words in the code, a byte an entry.
Value GPUEmitter::lookUp(const int8_t *table, Value code) {
  Value entry;
  for (int64_t i = 3; i >= 0; --i) {
    uint32_t packed = 0;
    for (int64_t k = 0; k < 4; ++k)
      packed |= uint32_t(uint8_t(table[4 * i + k])) << (8 * k);
    Value isBefore = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                           code, word(4 * i + 4));
    Value here = word(packed);
    entry = entry ? select(isBefore, here, entry) : here;
  }
  // The byte to the top, and down again with its sign.
  Value last = arith::AndIOp::create(b, loc, code, word(3));
  Value up = arith::ShLIOp::create(
      b, loc, arith::SubIOp::create(b, loc, word(3), last), word(3));
  Value byte = arith::ShRSIOp::create(
      b, loc, arith::ShLIOp::create(b, loc, entry, up), word(24));
  return arith::SIToFPOp::create(b, loc, b.getF32Type(), byte);
}

//===----------------------------------------------------------------------===//
// Rows of blocks
//===----------------------------------------------------------------------===//

namespace {

/// Reads one element of the block that begins at byte `base` of a buffer.
class FlatBlockReader : public BlockReader {
public:
  FlatBlockReader(GPUEmitter &e, const ::kf::BlockFormat &format, Value buffer,
                  Value base, Value element)
      : BlockReader(e, format, element, /*width=*/0), gpu(e), buffer(buffer),
        base(base) {}

private:
  Value byte(Value offset) override {
    Value value = memref::LoadOp::create(b, loc, buffer, e.add(base, offset));
    return arith::ExtUIOp::create(b, loc, b.getI32Type(), value);
  }
  Value bytes(Value offset) override { return byte(offset); }
  Value half(int64_t offset) override {
    return gpu.loadHalf(buffer, e.add(base, e.index(offset)));
  }
  Value word(int64_t) override {
    llvm_unreachable("one element never asks for words");
  }
  Value lookUp(const int8_t *table, Value code) override {
    return gpu.lookUp(table, code);
  }

  GPUEmitter &gpu;
  Value buffer, base;
};

} // namespace

Value GPUEmitter::loadBlocks(BlockArgument argument,
                             const ::kf::BlockFormat &format,
                             ValueRange indices) {
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(argument.getType()).getShape();
  Value column = indices.back();
  Value block = arith::DivUIOp::create(b, loc, column, index(format.elements));
  Value element =
      arith::RemUIOp::create(b, loc, column, index(format.elements));
  Value base = mul(block, index(format.bytes));
  if (indices.size() > 1) {
    int64_t rowBytes = shape.back() / format.elements * format.bytes;
    Value row = linearIndex(indices.drop_back(), shape.drop_back());
    base = add(mul(row, index(rowBytes)), base);
  }
  return FlatBlockReader(*this, format, bufferOf(argument), base, element)
      .read();
}
