//===- VectorMatmulEmitter.h - Products in vector registers -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `panels = unpacked` converts a panel once for all register tiles, into
// scratch. A register tile holds rows x panel of the result while it runs over
// all of K (Goto and van de Geijn, "Anatomy of
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
    Value number; // of the workgroup's, in their order
  };

  /// Converts panel `p`, which is not of f32, for the calls of sumTile() that
  /// follow; where unpacks() alone.
  virtual void unpackPanel(Value p) = 0;
  /// Sums over K of the rows of `tile` and panel `p` of the weight: vectors of
  /// `lanes` columns, by row, group and column.
  virtual SmallVector<Value> sumTile(Value p, RegisterTile tile) = 0;
  /// Computes panel `p` of the workgroup tile from panel `weightPanel` of the
  /// weight.
  virtual void computePanel(Value weightPanel, Value p);

  /// Whether panels are converted, once for many register tiles.
  bool unpacks() const { return e.schedule.getPanels() == PanelUse::Unpacked; }
  /// Whether all register tiles are multiplied with a part of the panel before
  /// the next part is read.
  bool sharesParts() const {
    return e.schedule.getPanels() == PanelUse::Shared;
  }
  /// Whether a workgroup reads what is packed once, from memory.
  bool readsOnce() const {
    return unpacks() || sharesParts() || mostTiles <= 1;
  }
  /// Whether groups of floats are summed up one after the other.
  bool takesGroupsInTurn() const {
    return e.schedule.getGroups() == GroupOrder::InTurn;
  }
  /// The sums of `tile`, by row, of which `sumsOf` has those of a group, by
  /// row.
  SmallVector<Value>
  sumInTurn(RegisterTile tile,
            function_ref<SmallVector<Value>(int64_t group)> sumsOf);
  /// Whether prefetchMeanwhile() is called: where a panel is read for several
  /// tiles.
  virtual bool prefetchesMeanwhile() const;
  /// Whether lines of the weight are asked for by the CPU's prefetchers alone,
  /// and those of results that would be asked for by the way not at all.
  bool isLeftToHardware() const {
    return e.schedule.getPrefetch() == PrefetchKind::Hardware;
  }
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

  /// Whether forEvenTiles() divides rows.
  bool dividesEvenly() const {
    return e.schedule.getRowTiles() == RowDivision::Even;
  }
  /// How many register tiles have 1, 2, ... rows, in the order of these.
  using TileCounts = SmallVector<Value>;
  /// Divides rows into as few register tiles as there can be, of which some
  /// have one row more than the others: each takes the panel apart, so that a
  /// last one of few rows would cost nearly as much as the others.
  TileCounts countEvenTiles(Value rows);
  /// Calls `body` for the tiles of `counts` from row `first` on, which have
  /// `least` rows or more.
  void forEvenTiles(const TileCounts &counts, Value first, int64_t least,
                    function_ref<void(RegisterTile)> body);

  /// Of dividesEvenly(): of all rows.
  TileCounts evenTiles;

private:
  void computePanels(Value firstPanel, Value panels) override;
  void forTiles(function_ref<void(RegisterTile)> body);
  void prefetchNext(Value p, RegisterTile tile, Value step, int64_t steps);
  Value shareOfTiles(int64_t count);
  void prefetchTile(RegisterTile tile, Value step, int64_t steps);
  void storeTile(RegisterTile tile, Value p, ArrayRef<Value> sums);

  Value resultPanel; // of the workgroup tile, that is computed
  Value tiles;       // of its rows, whole or not, that read a panel in turn
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOVECTOR_VECTORMATMULEMITTER_H
