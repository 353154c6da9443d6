//===- VectorMatmulEmitter.h - Products in vector registers -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where several register tiles share a panel that has to be converted, that is
// done once, into scratch. A register tile holds rows x panel of the result
// while it runs over all of K (Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication", 2008).
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOVECTOR_VECTORMATMULEMITTER_H
#define KF_LIB_CONVERSION_KFTOVECTOR_VECTORMATMULEMITTER_H

#include "MatmulEmitter.h"

namespace mlir::kf {

class VectorMatmulEmitter : public MatmulEmitter {
public:
  using MatmulEmitter::MatmulEmitter;

protected:
  /// Rows [first, first + rows) of the workgroup tile, whose sums are in
  /// registers at a time.
  struct RegisterTile {
    Value first;
    int64_t rows;
  };

  /// Whether unpackPanel() converts anything.
  virtual bool canUnpack() const = 0;
  /// Converts panel `p` for the calls of sumTile() that follow; where unpacks()
  /// alone.
  virtual void unpackPanel(Value p) = 0;
  /// Sums over K of the rows of `tile` and panel `p` of the weight: vectors of
  /// `lanes` columns, by row, group and column.
  virtual SmallVector<Value> sumTile(Value p, RegisterTile tile) = 0;

  /// Whether panels are converted, once for several register tiles.
  bool unpacks() const;
  /// Whether a workgroup reads what is packed once, from memory.
  bool readsOnce() const { return unpacks() || mostTiles <= 1; }
  /// Whether groups of a row of x are summed up one after the other, so that
  /// memory is read from one end to the other; rows of a register tile share
  /// what is loaded of x.
  bool takesGroupsInTurn() const { return tileRows == 1 && mostTiles <= 1; }
  /// Whether prefetchMeanwhile() is called: where a panel is read for several
  /// tiles.
  virtual bool prefetchesMeanwhile() const { return mostTiles > 1; }
  /// Whether it prefetches what a register tile writes, too; else that is asked
  /// for at once, before.
  virtual bool prefetchesTileByTheWay() const { return true; }
  /// How lines that a workgroup reads once are prefetched.
  ArrayRef<WeightPrefetch> prefetches() const;

  /// While panel `p` is multiplied with the rows of `tile`, which takes `steps`
  /// steps: prefetches step `step`'s share of what comes next.
  void prefetchMeanwhile(Value p, RegisterTile tile, Value step, int64_t steps);
  /// Elements between rows in scratch, `perLine` in a line of the cache: rows
  /// of a register tile do not share sets of the nearest one.
  int64_t rowStride(int64_t perLine) const;

private:
  void computePanels(Value firstPanel, Value panels) override;
  void forTiles(function_ref<void(RegisterTile)> body);
  void prefetchNext(Value p, RegisterTile tile, Value step, int64_t steps);
  Value shareOfTiles(int64_t count);
  void prefetchTile(RegisterTile tile, Value step, int64_t steps);
  void storeTile(RegisterTile tile, Value p, ArrayRef<Value> sums);

  Value resultPanel; // of the workgroup tile, that is computed
  Value tiles;       // of its rows, whole or not
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOVECTOR_VECTORMATMULEMITTER_H
