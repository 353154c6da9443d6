//===- MmaFragment.cpp - A product's tile on matrix units -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MmaFragment.h"

using namespace mlir;
using namespace mlir::kf;

/// Lines between a lane's two in a unit: half of its lines.
static constexpr int64_t halfLines = MmaShape::unitLines / 2;

MmaFragment::MmaFragment(GPUEmitter &e)
    : e(e), code(e), shape(*e.shape.mma), groups(e.shape.groups) {
  auto div = [&](Value x, int64_t by) -> Value {
    return arith::DivUIOp::create(e.b, e.loc, x, e.index(by));
  };
  auto rem = [&](Value x, int64_t by) -> Value {
    return arith::RemUIOp::create(e.b, e.loc, x, e.index(by));
  };
  lane = rem(e.thread, MmaShape::warp);
  Value warp = div(e.thread, MmaShape::warp);
  warpRow = e.mul(rem(warp, shape.rowWarps),
                  e.index(shape.rowUnits() * MmaShape::unitRows));
  warpLine = e.mul(div(warp, shape.rowWarps),
                   e.index(shape.lineUnits() * MmaShape::unitLines));
}

SmallVector<Value> MmaFragment::zeros() {
  return SmallVector<Value>(shape.sums(), e.f32(0.0));
}

void MmaFragment::multiplyAdd(Type element, ArrayRef<SmallVector<Value>> lines,
                              ArrayRef<SmallVector<Value>> rows,
                              MutableArrayRef<Value> sums) {
  for (auto [i, left] : llvm::enumerate(lines))
    for (auto [j, right] : llvm::enumerate(rows)) {
      MutableArrayRef<Value> own =
          sums.slice(4 * (i * shape.rowUnits() + j), 4);
      llvm::copy(code.multiplyAdd(element, left, right, own), own.begin());
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

LogicalResult MmaFragment::forElements(
    ValueRange sums,
    function_ref<LogicalResult(Value, function_ref<LogicalResult()>)> forRow,
    function_ref<LogicalResult(Value, Value, ValueRange)> body) {
  // Sum 2h + i of a unit is that of line lane / 4 + 8h and row 2 (lane % 4) +
  // i.
  Value line =
      e.add(warpLine, arith::DivUIOp::create(e.b, e.loc, lane, e.index(4)));
  Value two =
      e.mul(arith::RemUIOp::create(e.b, e.loc, lane, e.index(4)), e.index(2));
  SmallVector<Value> columns; // [lineUnits][2 / groups]
  for (int64_t i = 0; i < shape.lineUnits(); ++i)
    for (int64_t half = 0; half < 2 / groups; ++half)
      columns.push_back(columnOf(e.add(line, e.index(i * MmaShape::unitLines +
                                                     half * halfLines)))
                            .first);
  for (int64_t j = 0; j < shape.rowUnits(); ++j)
    for (int64_t ofTwo = 0; ofTwo < 2; ++ofTwo) {
      Value row =
          e.add(e.add(warpRow, two), e.index(j * MmaShape::unitRows + ofTwo));
      LogicalResult done = forRow(row, [&]() -> LogicalResult {
        for (auto [number, column] : llvm::enumerate(columns)) {
          int64_t i = number / (2 / groups), half = number % (2 / groups);
          ValueRange unit = sums.slice(4 * (i * shape.rowUnits() + j), 4);
          SmallVector<Value> own = {unit[2 * half + ofTwo]};
          if (groups == 2)
            own.push_back(unit[2 + ofTwo]);
          if (failed(body(row, column, own)))
            return failure();
        }
        return success();
      });
      if (failed(done))
        return failure();
    }
  return success();
}
