//===- RowRange.h - Rows past the range of f16 ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix units multiply numbers of f16, and rows may have larger ones. Nearly
// none has, so that nothing is looked for before they are multiplied: a number
// that is too large is infinite, and so are the sums that it is part of, or not
// a number. Then the rows are multiplied once more, by code of its own, each
// scaled by a power of two that brings its largest element into the range; sums
// are multiplied by the inverse.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_UNITS_ROWRANGE_H
#define KF_LIB_CONVERSION_KFTOGPU_UNITS_ROWRANGE_H

#include "WarpOps.h"

namespace mlir::kf {

class RowRange {
public:
  /// For `rows` rows that a workgroup multiplies, or none where none is to be
  /// scaled; allocates rowRangeBytes().
  RowRange(GPUEmitter &emitter, int64_t rows);

  /// Says that nothing is noted yet; seen behind the next barrier.
  void reset();
  /// Notes whatever of `sums` is infinite or not a number: for this workgroup,
  /// or for all of its cluster.
  void check(ValueRange sums);
  void checkForCluster(ValueRange sums);
  /// `results` (f32), or what `again` gives where something was noted, which
  /// multiplies rows that it scales: with another value for the thread's
  /// number, which what it takes of registers should come from. All threads
  /// must come here; after checkForCluster(), behind a barrier of the cluster.
  SmallVector<Value> unlessNoted(ValueRange results,
                                 function_ref<SmallVector<Value>()> again);

  /// Finds the largest magnitude of each of `rows` rows, of `extent` elements
  /// in f32. All threads must come here.
  void find(Value rows, int64_t extent,
            function_ref<Value(Value row, Value column)> element);
  /// check() and find() where threads are no warps of NVIDIA's, and compilers
  /// may take it that numbers are finite. `elements` gives some of row `row`,
  /// of which number `part` of `parts` has its own.
  void checkBits(ValueRange sums);
  void findByThreads(
      Value rows, int64_t parts,
      function_ref<SmallVector<Value>(Value row, Value part)> elements);
  /// Whether something was noted (i1); behind a barrier.
  Value isNoted();

  /// 2^-s, by which elements of a row are multiplied, and 2^s, by which its
  /// sums are; both 1 where nothing was found.
  Value scaleOf(Value row);
  Value inverseOf(Value row);

private:
  void noteIfOdd(ValueRange sums, function_ref<void()> note);
  Value exponentOf(Value row);

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  int64_t rows;
  Value largest; // [rows], bits of magnitudes
  Value flag;    // whether something was noted
};

/// Rows that kf.round_half made, of a product.
class OutlierRows {
public:
  /// Null operands where `op` has no outliers.
  OutlierRows(GPUEmitter &emitter, MatmulOp op);

  bool exist() const { return static_cast<bool>(outliers); }
  /// The element (f32) at `indices`.
  Value load(ValueRange indices);
  /// The same, which was rounded to `rounded` (f32), where there are outliers.
  Value replace(Value rounded, ValueRange indices);
  /// Two elements from `column` on of row `row`, of which `word` holds the
  /// rounded ones: multiplied by `scale`, as f16.
  Value rescale(Value word, ValueRange row, Value column, Value scale);

private:
  GPUEmitter &e;
  WarpOps code;
  Value rounded, outliers;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_UNITS_ROWRANGE_H
