//===- MmaLines.cpp - Lines of weights for matrix units -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPUMatmulEmitter.h"
#include "MmaCodeLines.h"

#include "kf/Conversion/KernelLoops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::kf;
using ::kf::FragmentTile;

namespace {

/// Bytes that a lane has of a unit's tile.
constexpr int64_t laneBytes = 16;

//===----------------------------------------------------------------------===//
// Line by line
//===----------------------------------------------------------------------===//

/// Rows of the weight are lines of a stage, or lie side by side in it, as in
/// memory. Blocks are dequantized on the way, whatever their order in memory.
class PlainLines : public MmaLines {
public:
  PlainLines(GPUEmitter &e, MatmulOp op, MmaFragment &product, Value columns)
      : staging(e,
                MmaOperand(e, op.getW(), stagedTypeOf(op),
                           /*mayBeTurned=*/!op.getGlu() &&
                               llvm::isPowerOf2_64(e.shape.mma->lines)),
                e.shape.mma->lines, e.shape.mma->rowBytes(),
                [&](Value line) -> MmaStaging::Line {
                  auto [column, group] = product.columnOf(line);
                  SmallVector<Value> row = {column};
                  if (op.getGlu())
                    row.insert(row.begin(), group);
                  return {row, e.isLess(column, columns)};
                }) {
    staging.findTiles(product.firstLine(), 2 * e.shape.mma->lineTiles(),
                      MmaStaging::Factor::Lines);
  }

  void copy(const MmaStep &step) override { staging.copy(step.stage, step.k); }
  SmallVector<Value> load(const MmaStep &step, int64_t unit,
                          int64_t sixteen) override {
    return staging.load(step.stage, unit, sixteen);
  }

private:
  MmaStaging staging;
};

//===----------------------------------------------------------------------===//
// 16-bit floats with #kf.fragments
//===----------------------------------------------------------------------===//

/// A stage has [units][steps of 16] tiles, in which every lane's words lie side
/// by side.
class FragmentLines : public MmaLines {
public:
  /// The tile's first column is `column` of `argument`.
  FragmentLines(GPUEmitter &e, MatmulOp op, MmaFragment &product, Value columns,
                BlockArgument argument, Value column)
      : e(e), code(e), mma(*e.shape.mma) {
    const int64_t offset = mma.rowBytes();
    auto type = cast<RankedTensorType>(argument.getType());
    const FragmentTile tile = *getFragmentTile(type.getElementType());
    const int64_t groups = op.getGlu() ? 2 : 1;
    const int64_t ofBlock = FragmentTile::rows / groups;
    blockTiles = tile.tilesOf(type.getShape().back());
    tileBytes = tile.bytes;
    const int64_t unitTiles = mma.step / tile.columns;
    const int64_t blocks =
        FragmentTile::rowBlocks(groups, type.getShape().end()[-2]);
    Value first = arith::DivUIOp::create(e.b, e.loc, column, e.index(ofBlock));
    Value from = code.pointerTo(e.bufferOf(argument));

    const int64_t perUnit = unitTiles * tile.bytes / laneBytes;
    const int64_t all = mma.lines / MmaShape::unitLines * perUnit;
    const bool isWhole = getConstantIntValue(columns) == e.shape.columns;
    for (int64_t begin = 0; begin < all; begin += e.shape.threadCount) {
      Value number = e.add(e.thread, e.index(begin));
      Value block = e.add(first, e.div(number, perUnit));
      Value inUnit =
          arith::RemUIOp::create(e.b, e.loc, number, e.index(perUnit));
      Chunk chunk;
      if (begin + e.shape.threadCount > all)
        chunk.exists = e.isLess(number, e.index(all));
      if (!isWhole)
        chunk.isThere = e.isLess(block, e.index(blocks));
      chunk.tile = e.div(inUnit, tile.bytes / laneBytes);
      chunk.from = code.advance(
          from, e.add(e.mul(block, e.index(blockTiles * tile.bytes)),
                      e.mul(inUnit, e.index(laneBytes))));
      chunk.offset = e.add(e.mul(number, e.index(laneBytes)), e.index(offset));
      chunks.push_back(chunk);
    }
    Value unit = e.div(product.firstLine(), MmaShape::unitLines);
    own = e.add(e.add(e.mul(unit, e.index(unitTiles * tile.bytes)),
                      e.mul(product.lane, e.index(laneBytes))),
                e.index(offset));
  }

  void copy(const MmaStep &step) override {
    for (const Chunk &chunk : chunks) {
      auto copy = [&] { copyChunk(chunk, step.stage, step.k); };
      if (chunk.exists)
        e.ifThen(chunk.exists, copy);
      else
        copy();
    }
  }

  SmallVector<Value> load(const MmaStep &step, int64_t unit,
                          int64_t sixteen) override {
    int64_t tile = unit * (mma.step / MmaShape::unitStep) + sixteen;
    auto type = VectorType::get({4}, e.b.getI32Type());
    Value loaded = LLVM::LoadOp::create(
        e.b, e.loc, type,
        code.advance(code.advance(step.stage, own), tile * tileBytes),
        laneBytes);
    SmallVector<Value> words;
    for (int64_t word = 0; word < 4; ++word)
      words.push_back(vector::ExtractOp::create(e.b, e.loc, loaded, word));
    return words;
  }

private:
  /// 16 bytes that a thread copies.
  struct Chunk {
    Value from;    // pointer, for the first step
    Value offset;  // in the stage
    Value tile;    // of its unit
    Value isThere; // i1: false past the last row block; null: all are
    Value exists;  // i1: false for threads without one; null: all have it
  };

  void copyChunk(const Chunk &chunk, Value stage, Value k) {
    OpBuilder &b = e.b;
    Value tile = e.div(k, MmaShape::unitStep);
    Value isThere = chunk.isThere;
    if (blockTiles % (mma.step / MmaShape::unitStep) != 0) {
      Value inBlock = e.isLess(e.add(tile, chunk.tile), e.index(blockTiles));
      if (isThere)
        inBlock = arith::AndIOp::create(b, e.loc, isThere, inBlock);
      isThere = inBlock;
    }
    auto bytes = [&](int64_t count) -> Value {
      return arith::ConstantOp::create(b, e.loc, b.getI32IntegerAttr(count));
    };
    code.copyAsync(code.advance(stage, chunk.offset),
                   code.advance(chunk.from, e.mul(tile, e.index(tileBytes))),
                   isThere ? e.select(isThere, bytes(laneBytes), bytes(0))
                           : bytes(laneBytes));
  }

  GPUEmitter &e;
  NvvmCode code;
  const MmaShape &mma;
  int64_t blockTiles = 0; // of K
  int64_t tileBytes = 0;
  SmallVector<Chunk> chunks;
  Value own; // where this lane's words of its warp's first tile lie in a stage
};

} // namespace

Type mlir::kf::factorOf(MatmulOp op) {
  Type element = cast<RankedTensorType>(op.getX().getType()).getElementType();
  return element.isF32() ? BFloat16Type::get(op.getContext()) : element;
}

Type mlir::kf::stagedTypeOf(MatmulOp op) {
  return WideFactors::are(op.getX().getType(), op.getW().getType())
             ? Float32Type::get(op.getContext())
             : factorOf(op);
}

std::unique_ptr<MmaLines> mlir::kf::createMmaLines(GPUEmitter &e, MatmulOp op,
                                                   MmaFragment &product,
                                                   Value columns, Value ring) {
  auto type = cast<RankedTensorType>(op.getW().getType());
  if (hasFragments(type)) {
    auto [argument, column] = findWeightRows(e, op);
    if (isa<QuantType, Float8E4M3FNType>(type.getElementType()))
      return createMmaCodeLines(e, product, argument, column, ring);
    return std::make_unique<FragmentLines>(e, op, product, columns, argument,
                                           column);
  }
  return std::make_unique<PlainLines>(e, op, product, columns);
}
