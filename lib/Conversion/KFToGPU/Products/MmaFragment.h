//===- MmaFragment.h - A product's tile on matrix units ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which lane has which sums of a workgroup's tile. The tile that a unit
// computes has lines of the weight as rows and rows of x as columns, so that a
// lane's sums are of two lines, 8 apart: of gate and up, where there are both.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMAFRAGMENT_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMAFRAGMENT_H

#include "../Units/RowRange.h"
#include "MmaSums.h"

namespace mlir::kf {

/// A lane's sums are SSA values: [lineTiles][rowTiles][4].
class MmaFragment {
public:
  explicit MmaFragment(GPUEmitter &e);
  /// Finds this thread's part of the tile, anew from another value for its
  /// number.
  void numberThread();

  SmallVector<Value> zeros();
  /// Adds the products of one step of 16 to `sums`. `lines` and `rows` are the
  /// words of the units along lines and rows: [lineTiles][4], [rowTiles][2].
  void multiplyAdd(Type element, ArrayRef<Value> lines, ArrayRef<Value> rows,
                   MutableArrayRef<Value> sums);

  /// The column of the product that line `line` (a tile's, below
  /// MmaShape::lines) belongs to, and its group.
  std::pair<Value, Value> columnOf(Value line);
  /// The first row, and the first line, of this warp.
  Value firstRow() { return warpRow; }
  Value firstLine() { return warpLine; }

  /// Writes the sums of `count` units of rows of each warp, from number `first`
  /// on, to workgroup memory: [warps along rows][count][8][MmaSums::stride()]
  /// of f32.
  void storeSums(ValueRange sums, Value memory, int64_t first, int64_t count);
  /// Takes what `range` has scaled rows by out of `sums`.
  void unscaleSums(MutableArrayRef<Value> sums, RowRange &range);
  /// Those of `count` elements in row `row` of that memory, from `column` of
  /// the tile on, which is a multiple of `count`, 1 or 4: [groups][count]; and
  /// the row of the tile that they are in.
  SmallVector<Value> loadSums(Value memory, Value row, Value column,
                              int64_t count);
  Value tileRow(Value row, int64_t first, int64_t count);

  Value lane; ///< of its warp

private:
  GPUEmitter &e;
  NvvmCode code;
  const MmaShape &shape;
  MmaSums layout{shape};
  int64_t groups;
  Value warpRow, warpLine;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMAFRAGMENT_H
