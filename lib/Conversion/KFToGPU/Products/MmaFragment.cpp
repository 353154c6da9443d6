//===- MmaFragment.cpp - A product's tile on matrix units -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MmaFragment.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::kf;

/// Lines between a lane's two in a unit: half of its lines.
static constexpr int64_t halfLines = MmaShape::unitLines / 2;

MmaFragment::MmaFragment(GPUEmitter &e)
    : e(e), code(e), shape(*e.shape.mma), groups(e.shape.groups) {
  numberThread();
}

void MmaFragment::numberThread() {
  lane = e.rem(e.thread, MmaShape::warp);
  Value warp = e.div(e.thread, MmaShape::warp);
  warpRow = e.mul(e.rem(warp, shape.rowWarps),
                  e.index(shape.rowTiles() * MmaShape::unitRows));
  warpLine = e.mul(e.div(warp, shape.rowWarps),
                   e.index(shape.lineTiles() * MmaShape::unitLines));
}

SmallVector<Value> MmaFragment::zeros() {
  return SmallVector<Value>(shape.sums(), e.f32(0.0));
}

void MmaFragment::multiplyAdd(Type element, ArrayRef<Value> lines,
                              ArrayRef<Value> rows,
                              MutableArrayRef<Value> sums) {
  for (int64_t i = 0; i < shape.lineTiles(); ++i)
    for (int64_t j = 0; j < shape.rowTiles(); ++j) {
      MutableArrayRef<Value> own =
          sums.slice(4 * (i * shape.rowTiles() + j), 4);
      llvm::copy(code.multiplyAdd(element, lines.slice(4 * i, 4),
                                  rows.slice(2 * j, 2), own),
                 own.begin());
    }
}

std::pair<Value, Value> MmaFragment::columnOf(Value line) {
  if (groups == 1)
    return {line, e.index(0)};
  Value unit =
      arith::DivUIOp::create(e.b, e.loc, line, e.index(MmaShape::unitLines));
  Value inUnit =
      arith::RemUIOp::create(e.b, e.loc, line, e.index(MmaShape::unitLines));
  Value column =
      e.add(e.mul(unit, e.index(halfLines)),
            arith::RemUIOp::create(e.b, e.loc, inUnit, e.index(halfLines)));
  return {column,
          arith::DivUIOp::create(e.b, e.loc, inUnit, e.index(halfLines))};
}

void MmaFragment::storeSums(ValueRange sums, Value memory, int64_t first,
                            int64_t count) {
  // Sum 2h + i of a unit is that of line lane / 4 + 8h and row 2 (lane % 4) +
  // i.
  Value line =
      e.add(warpLine, arith::DivUIOp::create(e.b, e.loc, lane, e.index(4)));
  Value row =
      e.mul(arith::RemUIOp::create(e.b, e.loc, lane, e.index(4)), e.index(2));
  Value warp = arith::DivUIOp::create(
      e.b, e.loc, warpRow, e.index(shape.rowTiles() * MmaShape::unitRows));
  row = e.add(row, e.mul(warp, e.index(count * MmaShape::unitRows)));
  Value own = code.advance(
      memory,
      e.mul(e.add(e.mul(row, e.index(layout.stride())), line), e.index(4)));
  for (int64_t j = 0; j < count; ++j)
    for (int64_t i = 0; i < shape.lineTiles(); ++i)
      for (int64_t number = 0; number < 4; ++number) {
        int64_t place =
            (j * MmaShape::unitRows + number % 2) * layout.stride() +
            i * MmaShape::unitLines + number / 2 * halfLines;
        Value sum = sums[4 * (i * shape.rowTiles() + first + j) + number];
        LLVM::StoreOp::create(e.b, e.loc, sum, code.advance(own, 4 * place));
      }
}

void MmaFragment::unscaleSums(MutableArrayRef<Value> sums, RowRange &range) {
  Value first = e.add(warpRow, e.scaled(e.rem(lane, 4), 2));
  for (int64_t j = 0; j < shape.rowTiles(); ++j)
    for (int64_t row = 0; row < 2; ++row) {
      Value inverse =
          range.inverseOf(e.add(first, e.index(j * MmaShape::unitRows + row)));
      for (int64_t i = 0; i < shape.lineTiles(); ++i)
        for (int64_t half = 0; half < 2; ++half) {
          Value &sum = sums[4 * (i * shape.rowTiles() + j) + 2 * half + row];
          sum = e.mul(sum, inverse);
        }
    }
}

SmallVector<Value> MmaFragment::loadSums(Value memory, Value row, Value column,
                                         int64_t count) {
  SmallVector<Value> lines = {column};
  if (groups == 2) {
    Value unit = arith::DivUIOp::create(e.b, e.loc, column, e.index(halfLines));
    lines[0] = e.add(column, e.mul(unit, e.index(halfLines)));
    lines.push_back(e.add(lines[0], e.index(halfLines)));
  }
  Value begin = e.mul(row, e.index(layout.stride()));
  SmallVector<Value> sums;
  for (Value line : lines) {
    Value from = code.advance(memory, e.mul(e.add(begin, line), e.index(4)));
    if (count == 1) {
      sums.push_back(LLVM::LoadOp::create(e.b, e.loc, e.b.getF32Type(), from));
      continue;
    }
    auto type = VectorType::get({count}, e.b.getF32Type());
    Value all = LLVM::LoadOp::create(e.b, e.loc, type, from, 4 * count);
    for (int64_t i = 0; i < count; ++i)
      sums.push_back(vector::ExtractOp::create(e.b, e.loc, all, i));
  }
  return sums;
}

Value MmaFragment::tileRow(Value row, int64_t first, int64_t count) {
  const int64_t atOnce = count * MmaShape::unitRows;
  Value warp = arith::DivUIOp::create(e.b, e.loc, row, e.index(atOnce));
  Value inWarp = arith::RemUIOp::create(e.b, e.loc, row, e.index(atOnce));
  Value begin = e.mul(warp, e.index(shape.rowTiles() * MmaShape::unitRows));
  return e.add(e.add(begin, inWarp), e.index(first * MmaShape::unitRows));
}
