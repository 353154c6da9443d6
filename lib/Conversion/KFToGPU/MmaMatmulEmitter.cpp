//===- MmaMatmulEmitter.cpp - Products on matrix units --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The workgroup walks along K. Shared memory is a ring of stages, each with a
// step of its rows of x and of its lines of the weight: while one is
// multiplied, those behind it are copied. Warps have their own parts of the
// tile, whose sums stay in registers until the end. Lines and rows past an edge
// are zeros, whose sums are not stored.
//
//===----------------------------------------------------------------------===//

#include "MatmulEmitter.h"
#include "MmaFragment.h"
#include "MmaStaging.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class MmaMatmulEmitter : public GPUMatmulEmitter {
public:
  explicit MmaMatmulEmitter(GPUEmitter &e)
      : GPUMatmulEmitter(e), mma(*e.shape.mma), code(e), product(e) {}

private:
  LogicalResult emitProduct() override {
    ring = code.workgroupBytes(mma.stages * mma.stageBytes());
    MmaStaging x(e, MmaOperand(e, op.getX(), extent), mma.rows, /*offset=*/0,
                 [&](Value line) -> MmaStaging::Line {
                   return {{line}, e.isLess(line, rows)};
                 });
    MmaStaging w(e, MmaOperand(e, op.getW(), extent), mma.lines, mma.rowBytes(),
                 [&](Value line) -> MmaStaging::Line {
                   auto [column, group] = product.columnOf(line);
                   SmallVector<Value> row = {column};
                   if (shape.groups == 2)
                     row.insert(row.begin(), group);
                   return {row, e.isLess(column, columns)};
                 });
    findTiles(x, w);
    SmallVector<Value> sums = sumUp(x, w);
    return product.forElements(
        sums,
        [&](Value row, function_ref<LogicalResult()> elements) {
          LogicalResult stored = success();
          e.ifThen(e.isLess(row, rows), [&] { stored = elements(); });
          return stored;
        },
        [&](Value row, Value column, ValueRange own) {
          return storeColumn(row, column, own);
        });
  }

  /// The ring's stages, one after another.
  SmallVector<Value> sumUp(MmaStaging &x, MmaStaging &w) {
    auto copy = [&](Value at, Value k) {
      Value stage = code.advance(ring, at);
      x.copy(stage, k);
      w.copy(stage, k);
    };
    const int64_t ahead = mma.stages - 1;
    for (int64_t i = 0; i < ahead; ++i) {
      if (i * mma.step < extent)
        copy(e.index(i * mma.stageBytes()), e.index(i * mma.step));
      code.commitCopies();
    }
    SmallVector<Value> carried = product.zeros();
    carried.push_back(e.index(0));
    carried.push_back(e.index(ahead * mma.stageBytes()));
    auto steps = e.loop(
        e.index(0), e.index(extent), e.index(mma.step), carried,
        [&](Value k, ValueRange args) {
          SmallVector<Value> sums(args.drop_back(2));
          Value read = args.end()[-2], write = args.end()[-1];
          code.waitForCopies(ahead - 1);
          // All have what they copied, and have left the stage that is next.
          e.barrier();
          Value next = e.add(k, e.index(ahead * mma.step));
          e.ifThen(e.isLess(next, e.index(extent)), [&] { copy(write, next); });
          code.commitCopies();
          Value stage = code.advance(ring, read);
          for (int64_t step = 0; step < mma.step / MmaShape::unitStep; ++step)
            addStep(stage, step, sums);
          sums.push_back(nextStage(read));
          sums.push_back(nextStage(write));
          return sums;
        });
    return SmallVector<Value>(steps.getResults().drop_back(2));
  }

  Value nextStage(Value at) {
    Value next = e.add(at, e.index(mma.stageBytes()));
    Value isInside = e.isLess(next, e.index(mma.stages * mma.stageBytes()));
    return e.select(isInside, next, e.index(0));
  }

  /// Where this lane's part of the first tiles of each step lies in a stage.
  void findTiles(MmaStaging &x, MmaStaging &w) {
    auto number = arith::DivUIOp::create(b, loc, product.lane, e.index(8));
    Value low = arith::RemUIOp::create(b, loc, number, e.index(2));
    Value high = arith::DivUIOp::create(b, loc, number, e.index(2));
    auto first = [&](Value base, Value tile) {
      return e.add(base, e.mul(tile, e.index(8)));
    };
    for (int64_t step = 0; step < mma.step / MmaShape::unitStep; ++step) {
      // Of lines, tiles 0 to 3 are: lines 0 to 7, 8 to 15, and both for the
      // second half of the step.
      lineTiles.push_back(
          w.matrixOffset(first(product.firstLine(), low), high, step));
      // Of rows: both halves of the step, of two units.
      rowTiles.push_back(
          x.matrixOffset(first(product.firstRow(), high), low, step));
    }
    lineBytes = x.lineBytes();
  }

  /// Adds the products of step number `step` of a stage.
  void addStep(Value stage, int64_t step, MutableArrayRef<Value> sums) {
    SmallVector<SmallVector<Value>> lines, rowWords;
    Value rowTile = code.advance(stage, rowTiles[step]);
    Value lineTile = code.advance(stage, lineTiles[step]);
    for (int64_t j = 0; j < mma.rowUnits(); j += 2) {
      Value at = code.advance(rowTile, j * MmaShape::unitRows * lineBytes);
      // Of the last one alone, lanes of the upper half say nothing.
      int64_t units = std::min<int64_t>(mma.rowUnits() - j, 2);
      SmallVector<Value> words = code.loadMatrices(at, 2 * units);
      for (int64_t unit = 0; unit < units; ++unit)
        rowWords.push_back({words[2 * unit], words[2 * unit + 1]});
    }
    for (int64_t i = 0; i < mma.lineUnits(); ++i)
      lines.push_back(code.loadMatrices(
          code.advance(lineTile, i * MmaShape::unitLines * lineBytes), 4));
    Type element = cast<RankedTensorType>(op.getX().getType()).getElementType();
    product.multiplyAdd(element, lines, rowWords, sums);
  }

  /// Stores an element of a row that there is.
  LogicalResult storeColumn(Value row, Value column, ValueRange sums) {
    if (getConstantIntValue(columns) == shape.columns)
      return storeInside(row, column, sums);
    LogicalResult stored = success();
    e.ifThen(e.isLess(column, columns),
             [&] { stored = storeInside(row, column, sums); });
    return stored;
  }

  const MmaShape &mma;
  NvvmCode code;
  MmaFragment product;
  Value ring;                             // pointer to the stages
  SmallVector<Value> lineTiles, rowTiles; // [step], bytes in a stage
  int64_t lineBytes = 0;
};

} // namespace

LogicalResult mlir::kf::emitMmaMatmul(GPUEmitter &emitter) {
  return MmaMatmulEmitter(emitter).emit();
}
