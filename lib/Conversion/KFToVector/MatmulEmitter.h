//===- MatmulEmitter.h - Register-blocked matrix products -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What matmuls share whatever their weight is stored as. Rows of x are computed
// once for a workgroup into scratch (normalized, converted or rounded on the
// way); the packed weight is read panel by panel. Where several register tiles
// share a panel that has to be converted, that is done once, into scratch. A
// register tile holds rows x panel of the result while it runs over all of K
// (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication",
// 2008).
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOVECTOR_MATMULEMITTER_H
#define KF_LIB_CONVERSION_KFTOVECTOR_MATMULEMITTER_H

#include "KernelEmitter.h"

namespace mlir::kf {

/// Bytes of a panel that are prefetched ahead of those that are multiplied: as
/// many as memory's latency takes to read. More of them are no faster.
inline constexpr int64_t kPrefetchBytes = 4096;

class MatmulEmitter {
public:
  explicit MatmulEmitter(KernelEmitter &e)
      : e(e), b(e.b), loc(e.loc), op(e.find<MatmulOp>()) {}
  virtual ~MatmulEmitter() = default;

  LogicalResult emit();

protected:
  /// Takes what else the schedule and the weight's layout say.
  virtual void readLayout(LayoutAttr) {}
  /// Computes the workgroup's rows of x, `most` or fewer, into scratch.
  virtual LogicalResult computeRows(int64_t most) = 0;
  /// Whether unpackPanel() converts anything.
  virtual bool canUnpack() const = 0;
  /// Converts panel `p` for the calls of sumTile() that follow; where `unpacks`
  /// alone.
  virtual void unpackPanel(Value p) = 0;
  /// Sums over K of `tileRows` rows from `firstRow` on and panel `p` of the
  /// weight: vectors of `lanes` columns, by row, group and column.
  virtual SmallVector<Value> sumTile(Value p, Value firstRow) = 0;
  /// Computes `panels` panels of the result, from panel `firstPanel` of the
  /// weight on, by the functions above.
  virtual void computePanels(Value firstPanel, Value panels);

  /// While panel `p` is multiplied with the rows from `firstRow` on, which
  /// takes `steps` steps: prefetches step `step`'s share of the panel behind it
  /// into a cache that holds panels.
  void prefetchNext(Value p, Value firstRow, Value step, int64_t steps);

  /// Bias, gate, elementwise consumers, and the store of row `row` of panel `p`
  /// of the result, whose sums `sumOf` yields by group and vector.
  void storeRow(Value row, Value p,
                function_ref<Value(int64_t group, int64_t vector)> sumOf);
  /// Computes row `row` of x in floats, piece by piece; of codes, times their
  /// scales.
  LogicalResult emitRow(Value row, KernelEmitter::StoreFn store);
  /// Columns of the kernel's whole product.
  int64_t wholeColumns();
  LogicalResult fail(const Twine &message);
  /// Elements between rows in scratch, `perLine` in a line of the cache: rows
  /// of a register tile do not share sets of the nearest one.
  int64_t rowStride(int64_t perLine) const;
  /// Vectors of the result that a row of the tile has.
  int64_t vectorsPerRow() const { return groups * panel / lanes; }

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  MatmulOp op;
  int64_t tileRows = 0, panel = 0, lanes = 0, groups = 1, extent = 0;
  int64_t mostTiles = 0; // of rows, of a workgroup
  bool unpacks = false;  // panels, once for several register tiles
  /// Whether a workgroup reads what is packed once, from memory.
  bool readsOnce = false;
  Value rows;    // of the workgroup tile
  Value weights; // panels; see KernelEmitter's storageType

private:
  LogicalResult check();
  void prefetchTile(Value firstRow, Value p);
  void storeTile(Value firstRow, Value p, ArrayRef<Value> sums);
  Value columnMask(Value column);
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOVECTOR_MATMULEMITTER_H
