//===- MmaStaging.cpp - Operands of matrix units --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MmaStaging.h"

#include "../Units/WarpOps.h"

#include "kf/Conversion/KernelLoops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::kf;

/// Of a chunk.
static constexpr int64_t chunkBytes = 16;
/// Lines of a tile, and columns that are multiplied at once.
static constexpr int64_t tileLines = 8, sixteenColumns = 16;
/// Columns of them that a lane has of a line of f32, side by side. Which of the
/// unit's columns they stand for does not matter, as both factors agree.
static constexpr int64_t laneColumns = 4;

//===----------------------------------------------------------------------===//
// Where it lies
//===----------------------------------------------------------------------===//

MmaOperand::MmaOperand(GPUEmitter &e, Value tensor, Type element,
                       bool mayBeTurned)
    : extent(cast<RankedTensorType>(tensor.getType()).getShape().back()), e(e),
      code(e), tensor(tensor), element(element) {
  if (cast<RankedTensorType>(tensor.getType()).getElementType() == element)
    findPlace(mayBeTurned);
}

int64_t MmaOperand::elementBytes() const {
  return element.getIntOrFloatBitWidth() / 8;
}

/// Whether the offset of a slice is a multiple of `count`: a number, or where a
/// workgroup's tile begins.
static bool isMultipleOf(OpFoldResult offset, int64_t count) {
  if (std::optional<int64_t> number = getConstantIntValue(offset))
    return *number % count == 0;
  auto argument = dyn_cast<BlockArgument>(cast<Value>(offset));
  auto forall =
      argument ? dyn_cast<scf::ForallOp>(argument.getOwner()->getParentOp())
               : scf::ForallOp();
  if (!forall || argument.getArgNumber() >= forall.getRank())
    return false;
  const size_t dim = argument.getArgNumber();
  auto begin = getConstantIntValue(forall.getMixedLowerBound()[dim]),
       step = getConstantIntValue(forall.getMixedStep()[dim]);
  return begin && step && *begin % count == 0 && *step % count == 0;
}

/// Through slices with strides of 1, of an argument or of a reshape of one, or
/// of what transposes a matrix.
void MmaOperand::findPlace(bool mayBeTurned) {
  Value source = tensor;
  SmallVector<Value> first(cast<RankedTensorType>(tensor.getType()).getRank(),
                           e.index(0));
  bool isTurned = false;
  auto isWhole = [&](ArrayRef<int64_t> sizes) {
    return sizes.back() % chunkElements() == 0;
  };
  while (true) {
    if (auto slice = source.getDefiningOp<tensor::ExtractSliceOp>()) {
      if (!slice.hasUnitStride() ||
          slice.getSourceType().getRank() != slice.getType().getRank())
        return;
      for (auto [at, mixed] : llvm::zip_equal(first, slice.getMixedOffsets()))
        at = e.add(at, e.index(mixed));
      source = slice.getSource();
    } else if (auto transpose = source.getDefiningOp<TransposeOp>();
               transpose && mayBeTurned && !isTurned && first.size() == 2 &&
               transpose.getPermutation() == ArrayRef<int64_t>{1, 0}) {
      // Rows past an edge are whole chunks, too.
      if (!isWhole(
              cast<RankedTensorType>(transpose.getX().getType()).getShape()))
        return;
      isTurned = true;
      std::swap(first[0], first[1]);
      source = transpose.getX();
    } else {
      break;
    }
  }
  if (!isTurned && extent % chunkElements() != 0)
    return;
  // Chunks begin where as many bytes do.
  bool wasTurned = false;
  for (Value at = tensor; at != source;
       at = at.getDefiningOp()->getOperand(0)) {
    auto slice = at.getDefiningOp<tensor::ExtractSliceOp>();
    wasTurned |= !slice;
    const size_t last = first.size() - (isTurned && !wasTurned ? 2 : 1);
    if (slice && !isMultipleOf(slice.getMixedOffsets()[last], chunkElements()))
      return;
  }
  auto type = cast<RankedTensorType>(source.getType());
  if (!isWhole(type.getShape()))
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
  turned = isTurned;
}

Value MmaOperand::rowPointer(ValueRange indices) {
  SmallVector<Value> position(offsets);
  for (auto [number, at] : llvm::enumerate(indices)) {
    Value &place = position[turned ? position.size() - 1 - number : number];
    place = e.add(place, at);
  }
  return code.advance(
      buffer, e.mul(e.linearIndex(position, shape), e.index(elementBytes())));
}

int64_t MmaOperand::columnBytes() const {
  return elementBytes() * (turned ? shape.back() : 1);
}

Value MmaOperand::loadBits(ValueRange indices) {
  Value rounded = e.narrow(e.load(tensor, indices, 0), element);
  if (rounded.getType().isInteger())
    return rounded;
  return arith::BitcastOp::create(
      e.b, e.loc, e.b.getIntegerType(element.getIntOrFloatBitWidth()), rounded);
}

bool MmaOperand::isTransposed() const { return isTransposedInMemory(tensor); }

//===----------------------------------------------------------------------===//
// To shared memory
//===----------------------------------------------------------------------===//

MmaStaging::MmaStaging(GPUEmitter &e, MmaOperand source, int64_t count,
                       int64_t offset, function_ref<Line(Value)> line)
    : e(e), code(e), shape(*e.shape.mma), operand(std::move(source)),
      offset(offset), lines(count) {
  const int64_t perRow = chunksOfRow(), threads = e.shape.threadCount,
                perChunk = operand.chunkElements();
  const int64_t rows = operand.isTurned() ? shape.step : count;
  const int64_t all = rows * perRow;
  // Neighbouring threads take what lies side by side in memory.
  const bool isAcross = operand.isTransposed() && !operand.isTurned();
  Value inTurn = e.index(isAcross ? rows : perRow);
  for (int64_t begin = 0; begin < all; begin += threads) {
    Value number = e.add(e.thread, e.index(begin));
    Value at = arith::DivUIOp::create(e.b, e.loc, number, inTurn);
    Value chunk = arith::RemUIOp::create(e.b, e.loc, number, inTurn);
    if (isAcross)
      std::swap(at, chunk);
    Chunk own;
    if (begin + threads > all)
      own.exists = e.isLess(number, e.index(all));
    Value inRow = e.mul(chunk, e.index(perChunk));
    own.line = line(operand.isTurned() ? inRow : at);
    own.column = operand.isTurned() ? at : inRow;
    own.offset = e.add(swizzle(at, chunk), e.index(offset));
    if (operand.isInPlace())
      own.from =
          code.advance(operand.rowPointer(own.line.row),
                       e.mul(own.column, e.index(operand.columnBytes())));
    chunks.push_back(std::move(own));
  }
}

int64_t MmaStaging::chunksOfRow() const {
  return (operand.isTurned() ? lines : shape.step) / operand.chunkElements();
}

/// The byte where chunk `chunk` of row `row` begins. Memory has eight banks of
/// 16 bytes. Of 16 bits, eight rows of a chunk are read at a time, and eight
/// banks hold 8 / chunksOfRow() rows. Of f32, those are two rows of four
/// chunks, or, of columns, two chunks of every fourth row.
Value MmaStaging::swizzle(Value row, Value chunk) {
  OpBuilder &b = e.b;
  auto bits = [&](Value number, int64_t first, int64_t count) -> Value {
    Value shifted = first == 0 ? number : e.div(number, int64_t(1) << first);
    return arith::AndIOp::create(b, e.loc, shifted,
                                 e.index((int64_t(1) << count) - 1));
  };
  Value turn;
  if (!isWide()) {
    const int64_t width = std::min<int64_t>(chunksOfRow(), 8);
    turn = bits(row, static_cast<int64_t>(llvm::Log2_64(8 / width)),
                static_cast<int64_t>(llvm::Log2_64(width)));
  } else if (operand.isTurned()) {
    turn = e.mul(bits(row, 2, 2), e.index(2));
  } else if (chunksOfRow() >= 8) {
    turn = e.mul(bits(row, 0, 1), e.index(4));
  } else {
    turn = e.index(0);
  }
  Value number = e.add(e.mul(row, e.index(chunksOfRow())), chunk);
  Value place = arith::XOrIOp::create(b, e.loc, number, turn);
  return e.mul(place, e.index(chunkBytes));
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
  const int64_t perLine = chunksOfRow();
  Value all = e.index(lines * perLine), threads = e.index(e.shape.threadCount);
  e.loop(warp.sameNumber(e.thread), all, threads, {},
         [&](Value number, ValueRange) -> SmallVector<Value> {
           Value line = e.div(number, perLine), chunk = e.rem(number, perLine);
           Value pointer = code.advance(
               stage, e.add(swizzle(line, chunk), e.index(offset)));
           Value scale = range.scaleOf(line);
           Value column = e.add(k, e.scaled(chunk, operand.chunkElements()));
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
  code.copyAsync(
      code.advance(stage, chunk.offset),
      code.advance(chunk.from, e.mul(k, e.index(operand.columnBytes()))),
      e.select(isThere, bytes(chunkBytes), bytes(0)));
}

void MmaStaging::copyElements(const Chunk &chunk, Value stage, Value k) {
  OpBuilder &b = e.b;
  const int64_t count = operand.chunkElements();
  auto bit = b.getIntegerType(8 * operand.elementBytes());
  auto type = VectorType::get({count}, bit);
  Value first = e.add(k, chunk.column), extent = e.index(operand.extent);
  // Of whole chunks there are all elements, or none.
  const bool isWhole = operand.extent % count == 0;
  Value zero = arith::ConstantOp::create(b, e.loc, b.getIntegerAttr(bit, 0));
  auto zeros = [&]() -> Value {
    return arith::ConstantOp::create(b, e.loc, b.getZeroAttr(type));
  };
  auto load = [&](Value column) {
    return operand.loadBits(indicesAt(chunk.line.row, column));
  };
  auto elements = [&] {
    Value all = zeros();
    for (int64_t i = 0; i < count; ++i) {
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

void MmaStaging::findTiles(Value first, int64_t count, Factor which) {
  factor = which;
  tiles = count;
  places.clear();
  const bool isTurned = operand.isTurned();
  auto push = [&](Value row, Value chunk, Value bytes = {}) {
    Value place = e.add(swizzle(row, chunk), e.index(offset));
    places.push_back(bytes ? e.add(place, bytes) : place);
  };
  Value lane = e.rem(e.thread, MmaShape::warp);
  if (isWide()) {
    // A lane has four columns of a line in each tile.
    Value line = e.add(first, e.div(lane, laneColumns));
    Value own = e.rem(lane, laneColumns);
    const int64_t perChunk = operand.chunkElements();
    if (!isTurned) {
      for (int64_t at = 0; at < shape.step; at += sixteenColumns)
        push(line, e.add(own, e.index(at / perChunk)));
      return;
    }
    Value bytes = e.mul(e.rem(line, perChunk), e.index(4));
    for (int64_t tile = 0; tile < count; ++tile)
      for (int64_t i = 0; i < (hasEvenColumns() ? 1 : laneColumns); ++i)
        push(e.add(e.mul(own, e.index(laneColumns)), e.index(i)),
             e.div(e.add(line, e.index(tile * tileLines)), perChunk), bytes);
    return;
  }
  // A lane says where a row of one of four matrices begins: of two tiles, and
  // both halves of 16 columns.
  Value matrix = e.div(lane, tileLines), inTile = e.rem(lane, tileLines);
  Value low = e.rem(matrix, 2), high = e.div(matrix, 2);
  const bool areRows = factor == Factor::Rows;
  Value tile = areRows ? high : low, half = areRows ? low : high;
  if (!isTurned) {
    Value line = e.add(e.add(first, e.mul(tile, e.index(tileLines))), inTile);
    for (int64_t at = 0; at < shape.step; at += sixteenColumns)
      push(line, e.add(half, e.index(at / tileLines)));
    return;
  }
  Value column = e.add(e.mul(half, e.index(tileLines)), inTile);
  for (int64_t at = 0; at < count; at += 2)
    push(column, e.add(e.add(e.div(first, tileLines), tile), e.index(at)));
}

SmallVector<Value> MmaStaging::load(Value stage, int64_t pair,
                                    int64_t sixteen) {
  const int64_t rowBytes = chunksOfRow() * chunkBytes, tile = 2 * pair;
  const int64_t count = std::min<int64_t>(tiles - tile, 2);
  if (!isWide()) {
    if (operand.isTurned())
      return code.loadMatrices(
          code.advance(code.advance(stage, places[pair]),
                       sixteen * sixteenColumns * rowBytes),
          2 * count, /*isTransposed=*/true);
    return code.loadMatrices(code.advance(code.advance(stage, places[sixteen]),
                                          tile * tileLines * rowBytes),
                             2 * count);
  }
  WarpOps warp(e);
  Type element = BFloat16Type::get(e.b.getContext());
  SmallVector<Value> rounded(2 * count), rest(2 * count);
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<Value> columns = loadColumns(stage, tile + i, sixteen);
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t word =
          factor == Factor::Rows ? 2 * i + half : count * half + i;
      std::tie(rounded[word], rest[word]) =
          warp.splitAll(element, columns[2 * half], columns[2 * half + 1]);
    }
  }
  llvm::append_range(rounded, rest);
  return rounded;
}

/// The four columns of f32 that this lane has of a tile.
SmallVector<Value> MmaStaging::loadColumns(Value stage, int64_t tile,
                                           int64_t sixteen) {
  OpBuilder &b = e.b;
  const int64_t rowBytes = chunksOfRow() * chunkBytes;
  SmallVector<Value> columns;
  if (!operand.isTurned()) {
    Value all = LLVM::LoadOp::create(
        b, e.loc, VectorType::get({laneColumns}, b.getF32Type()),
        code.advance(code.advance(stage, places[sixteen]),
                     tile * tileLines * rowBytes),
        chunkBytes);
    for (int64_t i = 0; i < laneColumns; ++i)
      columns.push_back(vector::ExtractOp::create(b, e.loc, all, i));
    return columns;
  }
  for (int64_t i = 0; i < laneColumns; ++i) {
    const bool isEven = hasEvenColumns();
    Value place = places[isEven ? tile : tile * laneColumns + i];
    const int64_t rows = sixteen * sixteenColumns + (isEven ? i : 0);
    columns.push_back(LLVM::LoadOp::create(
        b, e.loc, b.getF32Type(),
        code.advance(code.advance(stage, place), rows * rowBytes)));
  }
  return columns;
}
