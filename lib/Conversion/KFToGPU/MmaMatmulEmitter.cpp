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
#include "MmaLines.h"

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
    lines = createMmaLines(e, op, product, columns, mma.rowBytes());
    findTiles(x);
    SmallVector<Value> sums = sumUp(x);
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
  SmallVector<Value> sumUp(MmaStaging &x) {
    auto copy = [&](Value at, Value k) {
      Value stage = code.advance(ring, at);
      x.copy(stage, k);
      lines->copy(stage, k);
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

  /// Where this lane's part of the first rows of each step lies in a stage.
  void findTiles(MmaStaging &x) {
    // Tiles 0 to 3 are both halves of the step, of two units.
    Value tile = arith::DivUIOp::create(b, loc, product.lane, e.index(8));
    Value half = arith::RemUIOp::create(b, loc, tile, e.index(2));
    Value unit = arith::DivUIOp::create(b, loc, tile, e.index(2));
    Value row =
        e.add(product.firstRow(), e.mul(unit, e.index(MmaShape::unitRows)));
    for (int64_t step = 0; step < mma.step / MmaShape::unitStep; ++step)
      rowTiles.push_back(x.matrixOffset(row, half, step));
    lineBytes = x.lineBytes();
  }

  /// Adds the products of step number `step` of a stage.
  void addStep(Value stage, int64_t step, MutableArrayRef<Value> sums) {
    SmallVector<SmallVector<Value>> lineWords, rowWords;
    Value rowTile = code.advance(stage, rowTiles[step]);
    for (int64_t j = 0; j < mma.rowUnits(); j += 2) {
      Value at = code.advance(rowTile, j * MmaShape::unitRows * lineBytes);
      // Of the last one alone, lanes of the upper half say nothing.
      int64_t units = std::min<int64_t>(mma.rowUnits() - j, 2);
      SmallVector<Value> words = code.loadMatrices(at, 2 * units);
      for (int64_t unit = 0; unit < units; ++unit)
        rowWords.push_back({words[2 * unit], words[2 * unit + 1]});
    }
    for (int64_t i = 0; i < mma.lineUnits(); ++i)
      lineWords.push_back(lines->load(stage, i, step));
    Type element = cast<RankedTensorType>(op.getX().getType()).getElementType();
    product.multiplyAdd(element, lineWords, rowWords, sums);
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
  std::unique_ptr<MmaLines> lines;
  Value ring;                  // pointer to the stages
  SmallVector<Value> rowTiles; // [step], bytes in a stage
  int64_t lineBytes = 0;
};

} // namespace

LogicalResult mlir::kf::emitMmaMatmul(GPUEmitter &emitter) {
  return MmaMatmulEmitter(emitter).emit();
}
