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

#ifndef KF_LIB_CONVERSION_KFTOGPU_MMAFRAGMENT_H
#define KF_LIB_CONVERSION_KFTOGPU_MMAFRAGMENT_H

#include "NvvmCode.h"

namespace mlir::kf {

/// A lane's sums are SSA values: [lineUnits][rowUnits][4].
class MmaFragment {
public:
  explicit MmaFragment(GPUEmitter &e);

  SmallVector<Value> zeros();
  /// Adds the products of one step of 16 to `sums`. `lines` and `rows` are the
  /// words of the units along lines and rows: 4 and 2 each.
  void multiplyAdd(Type element, ArrayRef<SmallVector<Value>> lines,
                   ArrayRef<SmallVector<Value>> rows,
                   MutableArrayRef<Value> sums);

  /// The column of the product that line `line` (a tile's, below
  /// MmaShape::lines) belongs to, and its group.
  std::pair<Value, Value> columnOf(Value line);
  /// The first row, and the first line, of this warp.
  Value firstRow() { return warpRow; }
  Value firstLine() { return warpLine; }

  /// Calls `body` for the sums of each element of this lane, one a group, with
  /// its column in the tile; they are in `rowBody`'s code, which is called for
  /// each row.
  LogicalResult forElements(
      ValueRange sums,
      function_ref<LogicalResult(Value row, function_ref<LogicalResult()>)>
          forRow,
      function_ref<LogicalResult(Value row, Value column, ValueRange)> body);

  Value lane; ///< of its warp

private:
  GPUEmitter &e;
  NvvmCode code;
  const MmaShape &shape;
  int64_t groups;
  Value warpRow, warpLine;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_MMAFRAGMENT_H
