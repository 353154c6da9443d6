//===- MmaStaging.cpp - Operands of matrix units --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MmaStaging.h"

#include "kf/Conversion/KernelLoops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::kf;

/// Of a chunk.
static constexpr int64_t chunkBytes = 16, chunkElements = 8;

//===----------------------------------------------------------------------===//
// Where it lies
//===----------------------------------------------------------------------===//

MmaOperand::MmaOperand(GPUEmitter &e, Value tensor, Type element,
                       std::optional<int64_t> rest)
    : extent(cast<RankedTensorType>(tensor.getType()).getShape().back()),
      rest(rest), e(e), code(e), tensor(tensor), element(element) {
  if (cast<RankedTensorType>(tensor.getType()).getElementType() == element &&
      extent % chunkElements == 0)
    findPlace();
}

/// Through slices with strides of 1, of an argument or of a reshape of one.
void MmaOperand::findPlace() {
  Value source = tensor;
  SmallVector<Value> first(cast<RankedTensorType>(tensor.getType()).getRank(),
                           e.index(0));
  while (auto slice = source.getDefiningOp<tensor::ExtractSliceOp>()) {
    std::optional<int64_t> column =
        getConstantIntValue(slice.getMixedOffsets().back());
    if (!slice.hasUnitStride() ||
        slice.getSourceType().getRank() != slice.getType().getRank() ||
        !column || *column % chunkElements != 0)
      return;
    for (auto [at, mixed] : llvm::zip_equal(first, slice.getMixedOffsets()))
      at = e.add(at, e.index(mixed));
    source = slice.getSource();
  }
  auto type = cast<RankedTensorType>(source.getType());
  if (type.getShape().back() % chunkElements != 0)
    return;
  if (auto collapse = source.getDefiningOp<tensor::CollapseShapeOp>())
    source = collapse.getSrc();
  else if (auto expand = source.getDefiningOp<tensor::ExpandShapeOp>())
    source = expand.getSrc();
  auto argument = dyn_cast<BlockArgument>(source);
  if (!argument || !e.bufferOf(argument))
    return;
  buffer = code.pointerTo(e.bufferOf(argument));
  offsets = std::move(first);
  shape = type.getShape();
}

Value MmaOperand::rowPointer(ValueRange indices) {
  SmallVector<Value> position;
  for (auto [offset, at] : llvm::zip(offsets, indices))
    position.push_back(e.add(offset, at));
  position.push_back(offsets.back());
  return code.advance(buffer,
                      e.mul(e.linearIndex(position, shape), e.index(2)));
}

Value MmaOperand::loadBits(ValueRange indices, Value isRest) {
  auto bitsOf = [&](Value value) -> Value {
    Value rounded = e.narrow(value, element);
    if (rounded.getType().isInteger())
      return rounded;
    return arith::BitcastOp::create(e.b, e.loc, e.b.getI16Type(), rounded);
  };
  Value value = e.load(tensor, indices, 0);
  if (!isRest)
    return bitsOf(value);
  // What rounding would make an infinity is cut off instead: two infinities
  // would add up to a NaN where a number is right.
  auto word = [&](uint32_t bits) -> Value {
    return arith::ConstantOp::create(
        e.b, e.loc, e.b.getI32IntegerAttr(static_cast<int32_t>(bits)));
  };
  Value bits = arith::BitcastOp::create(e.b, e.loc, e.b.getI32Type(), value);
  Value cut = arith::BitcastOp::create(
      e.b, e.loc, e.b.getF32Type(),
      arith::AndIOp::create(e.b, e.loc, bits, word(0xffff0000)));
  Value rounded = e.round(value, element);
  Value magnitude = arith::AndIOp::create(
      e.b, e.loc,
      arith::BitcastOp::create(e.b, e.loc, e.b.getI32Type(), rounded),
      word(0x7fffffff));
  Value overflows = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq,
                                          magnitude, word(0x7f800000));
  rounded = e.select(overflows, cut, rounded);
  Value left = e.sub(value, rounded);
  // Of an infinity, that is nothing.
  Value isNumber =
      arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::ORD, left, left);
  left = e.select(isNumber, left, e.f32(0.0));
  return bitsOf(e.select(isRest, left, rounded));
}

bool MmaOperand::isTransposed() const { return isTransposedInMemory(tensor); }

//===----------------------------------------------------------------------===//
// To shared memory
//===----------------------------------------------------------------------===//

MmaStaging::MmaStaging(GPUEmitter &e, MmaOperand source, int64_t count,
                       int64_t offset, function_ref<Line(Value)> line)
    : e(e), code(e), shape(*e.shape.mma), operand(std::move(source)),
      offset(offset), lines(count) {
  const int64_t all = count * chunksOfLine(), threads = e.shape.threadCount;
  // Neighbouring threads take what lies side by side.
  const bool isTransposed = operand.isTransposed();
  Value inTurn = e.index(isTransposed ? count : chunksOfLine());
  for (int64_t begin = 0; begin < all; begin += threads) {
    Value number = e.add(e.thread, e.index(begin));
    Value at = arith::DivUIOp::create(e.b, e.loc, number, inTurn);
    Value chunk = arith::RemUIOp::create(e.b, e.loc, number, inTurn);
    if (isTransposed)
      std::swap(at, chunk);
    Chunk own;
    if (begin + threads > all)
      own.exists = e.isLess(number, e.index(all));
    own.line = line(at);
    own.column = e.mul(chunk, e.index(chunkElements));
    own.offset = e.add(swizzle(at, chunk), e.index(offset));
    if (operand.isInPlace())
      own.from = code.advance(operand.rowPointer(own.line.row),
                              e.mul(chunk, e.index(chunkBytes)));
    chunks.push_back(std::move(own));
  }
}

int64_t MmaStaging::lineBytes() const { return 2 * shape.step; }
int64_t MmaStaging::chunksOfLine() const { return lineBytes() / chunkBytes; }

/// The byte where chunk `chunk` of line `line` begins. Eight banks of 16 bytes
/// hold 8 / chunksOfLine() lines.
Value MmaStaging::swizzle(Value line, Value chunk) {
  OpBuilder &b = e.b;
  const int64_t width = std::min<int64_t>(chunksOfLine(), 8);
  Value turn = arith::AndIOp::create(
      b, e.loc, arith::DivUIOp::create(b, e.loc, line, e.index(8 / width)),
      e.index(width - 1));
  Value place = arith::XOrIOp::create(b, e.loc, chunk, turn);
  return e.add(e.mul(line, e.index(lineBytes())),
               e.mul(place, e.index(chunkBytes)));
}

void MmaStaging::copy(Value stage, Value k) {
  for (const Chunk &chunk : chunks) {
    auto body = [&] {
      if (chunk.from)
        copyAsync(chunk, stage, k);
      else
        copyElements(chunk, stage, k);
    };
    if (chunk.exists)
      e.ifThen(chunk.exists, body);
    else
      body();
  }
}

/// In a loop, from a number that LLVM does not know, so that nothing of it
/// takes registers while stages are multiplied.
void MmaStaging::rescale(Value stage, Value k, OutlierRows &outliers,
                         RowRange &range) {
  WarpOps warp(e);
  const int64_t perLine = chunksOfLine();
  Value all = e.index(lines * perLine), threads = e.index(e.shape.threadCount);
  e.loop(warp.sameNumber(e.thread), all, threads, {},
         [&](Value number, ValueRange) -> SmallVector<Value> {
           Value line = e.div(number, perLine), chunk = e.rem(number, perLine);
           Value pointer = code.advance(
               stage, e.add(swizzle(line, chunk), e.index(offset)));
           Value scale = range.scaleOf(line);
           Value column = e.add(k, e.scaled(chunk, chunkElements));
           e.loop(e.index(chunkBytes / 4), [&](Value word) {
             Value place = code.advance(pointer, e.scaled(word, 4));
             Value pair = warp.loadRegisters(place, 4)[0];
             pair = outliers.rescale(pair, line,
                                     e.add(column, e.scaled(word, 2)), scale);
             LLVM::StoreOp::create(e.b, e.loc, pair, place);
           });
           return {};
         });
}

void MmaStaging::copyAsync(const Chunk &chunk, Value stage, Value k) {
  OpBuilder &b = e.b;
  Value isThere = chunk.line.isThere;
  if (operand.extent % (shape.step * shape.stepsOfTile()) != 0) {
    Value column = e.add(k, chunk.column);
    isThere = arith::AndIOp::create(b, e.loc, isThere,
                                    e.isLess(column, e.index(operand.extent)));
  }
  auto bytes = [&](int64_t count) -> Value {
    return arith::ConstantOp::create(b, e.loc, b.getI32IntegerAttr(count));
  };
  code.copyAsync(code.advance(stage, chunk.offset),
                 code.advance(chunk.from, e.mul(k, e.index(2))),
                 e.select(isThere, bytes(chunkBytes), bytes(0)));
}

void MmaStaging::copyElements(const Chunk &chunk, Value stage, Value k) {
  OpBuilder &b = e.b;
  auto type = VectorType::get({chunkElements}, b.getI16Type());
  Value first = e.add(k, chunk.column), extent = e.index(operand.extent),
        isRest;
  if (operand.rest) {
    static_assert(WideFactors::chunkColumns == chunkElements);
    Value number = e.div(first, chunkElements);
    isRest = arith::CmpIOp::create(b, e.loc, arith::CmpIPredicate::eq,
                                   e.rem(number, WideFactors::terms),
                                   e.index(*operand.rest));
    first = e.scaled(e.div(number, WideFactors::terms), chunkElements);
  }
  // Of whole chunks there are all elements, or none.
  const bool isWhole = operand.extent % chunkElements == 0;
  Value zero = arith::ConstantOp::create(b, e.loc, b.getI16IntegerAttr(0));
  auto zeros = [&]() -> Value {
    return arith::ConstantOp::create(b, e.loc, b.getZeroAttr(type));
  };
  auto load = [&](Value column) {
    return operand.loadBits(indicesAt(chunk.line.row, column), isRest);
  };
  auto elements = [&] {
    Value all = zeros();
    for (int64_t i = 0; i < chunkElements; ++i) {
      Value column = e.add(first, e.index(i));
      Value bits =
          isWhole ? load(column)
                  : e.ifElse(
                        e.isLess(column, extent), [&] { return load(column); },
                        [&] { return zero; });
      all = vector::InsertOp::create(b, e.loc, bits, all, i);
    }
    return all;
  };
  Value isThere = arith::AndIOp::create(b, e.loc, chunk.line.isThere,
                                        e.isLess(first, extent));
  LLVM::StoreOp::create(b, e.loc, e.ifElse(isThere, elements, zeros),
                        code.advance(stage, chunk.offset), chunkBytes);
}

//===----------------------------------------------------------------------===//
// To registers
//===----------------------------------------------------------------------===//

Value MmaStaging::matrixOffset(Value first, Value chunk, int64_t step) {
  Value inTile = arith::RemUIOp::create(e.b, e.loc, e.thread, e.index(8));
  return e.add(swizzle(e.add(first, inTile), e.add(chunk, e.index(2 * step))),
               e.index(offset));
}
