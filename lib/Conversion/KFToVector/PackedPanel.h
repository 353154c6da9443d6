//===- PackedPanel.h - Fields of a packed panel of blocks -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads panels of ::kf::PackedBlock, a row of the weight to a lane. Codes come
// four to a 32-bit lane, for four neighbouring k (a quad). 32 k are a unit.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOVECTOR_PACKEDPANEL_H
#define KF_LIB_CONVERSION_KFTOVECTOR_PACKEDPANEL_H

#include "KernelEmitter.h"
#include "WeightPrefetch.h"

#include <map>

namespace mlir::kf {

class PackedPanel {
public:
  /// Elements that share a scale of x; every sub-block divides it.
  static constexpr int64_t unit = ::kf::PackedBlock::unit;
  static constexpr int64_t quadsPerUnit = unit / 4;

  PackedPanel(KernelEmitter &e, const ::kf::BlockFormat &format)
      : format(format), packed(format), e(e), b(e.b), loc(e.loc) {}

  /// The weight's memref, the panel's width, K, and how each line is
  /// prefetched.
  void bind(Value memref, int64_t width, int64_t k,
            ArrayRef<WeightPrefetch> ahead) {
    weights = memref;
    panel = width;
    extent = k;
    prefetches = ahead;
  }

  /// What the functions below read: vectors [first, first + count) of those of
  /// all groups of the panel, from group `group` on; null: from the first on.
  struct Vectors {
    int64_t first, count;
    Value group = Value();
  };
  /// Blocks [first, end) of a row; an end that is null is the row's.
  struct Blocks {
    Value first, end;
  };
  /// Calls `body` for each unit of panel `p`, in its order, with its number in
  /// the row and what the body before yielded.
  SmallVector<Value>
  forUnits(Value p, Vectors vectors, ValueRange inits,
           function_ref<SmallVector<Value>(Value unit, ValueRange state)> body,
           Blocks range = {});
  /// Goes to unit `number` of a row of panel `p`, which the functions below
  /// read then as in a body.
  void moveTo(Value p, Vectors vectors, Value number);

  /// In the body: d * scale and m * min of sub-block `sub` of the unit.
  std::pair<SmallVector<Value>, SmallVector<Value>> scales(int64_t sub);
  /// In the body: codes of a quad of the unit.
  SmallVector<Value> codes(int64_t quad);
  /// Code `j` of a quad, without a sign, in lanes of 32 bits.
  Value code(Value quad, int64_t j);

  int64_t subBlocksPerUnit() const { return unit / format.subBlock; }
  int64_t quadsPerSubBlock() const { return format.subBlock / 4; }
  bool hasMins() const { return format.minOffset >= 0; }

  VectorType intType() { return e.vectorType(e.lanes, b.getI32Type()); }
  Value splatInt(int32_t value);
  Value toFloat(Value integers);

  const ::kf::BlockFormat &format;
  const ::kf::PackedBlock packed;

private:
  void startBlock(Value number);
  void startUnit(Value number);
  Value groupOf(int64_t v);
  Value loadRow(int64_t v, Value column, int64_t offset, int64_t size);
  Value loadOfUnit(int64_t v, int64_t offset, int64_t number, int64_t size);
  Value loadHalves(int64_t v, int64_t offset);
  Value loadScales(int64_t v);
  void prefetch(Value column, int64_t bytes);
  Value loadFields(int64_t v, int64_t offset, int64_t bits, int64_t quad);

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  Value weights;
  int64_t panel = 0, extent = 0;
  ArrayRef<WeightPrefetch> prefetches;
  Vectors vectors = {};
  Value panelIndex, blockIndex, unitIndex;
  SmallVector<Value> d, m; // of the current block
  /// Chunks of planes of the current unit: (vector, plane, chunk).
  std::map<std::tuple<int64_t, int64_t, int64_t>, Value> loaded;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOVECTOR_PACKEDPANEL_H
