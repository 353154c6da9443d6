//===- LaneTiles.h - What a thread has of a packed tile ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements of a weight with `#kf.fragments`, in f32, as plain arithmetic makes
// them of the words that a lane has of a tile (FragmentTile). They come in
// units of 16 columns, of which a lane has four in each of its rows g and
// g + 8.
//
// Codes of blocks become floats by their bits alone: c bits below the exponent
// of 2^c are 2^c + code. Of fewer than 6 bits they stay so, and what is above
// is taken off with the minimum, times the sum of what of x went with them;
// others lose 2^c at once, for it would take too many bits of the sum.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_LANETILES_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_LANETILES_H

#include "../GPUEmitter.h"

#include "runtime/core/FragmentTile.h"

namespace mlir::kf {

/// Whether LaneTiles::addendOf() is for blocks of `format`.
bool needsSumsOfX(const ::kf::BlockFormat &format);

class LaneTiles {
public:
  /// Of elements of type `element` for lane 4 `group` + `inGroup`. `table` is
  /// workgroup memory for a format's, f32; null where it has none.
  LaneTiles(GPUEmitter &emitter, Type element, Value group, Value inGroup,
            Value table);

  /// What is read of a tile: vectors of four i32. Of blocks, it is of a part,
  /// which is number `part` of its tile's.
  struct Tile {
    SmallVector<Value, 4> codes, high, scales, minimums, blocks;
    Value part;

    /// All vectors, in this order.
    void forVectors(function_ref<void(Value &)> body);
  };
  /// Reads tile number `number` of `buffer`, whose elements are such vectors;
  /// of blocks, its part number `part`.
  Tile load(Value buffer, Value number, Value part);

  /// Column number `i`, 0 to 3, in a unit of elements of type `element`.
  static Value columnOf(GPUEmitter &e, Type element, Value inGroup, int64_t i);
  /// Parts of a tile; of others than blocks, there are none.
  bool hasBlocks() const { return format != nullptr; }
  int64_t parts() const { return 8 / getPartSpans(*format); }
  /// Units in which a row's elements are scaled alike.
  int64_t unitsOfScale() const { return format->subBlock < 32 ? 1 : 2; }

  /// Four elements of row g + 8 `row`, of unit `unit` of `tiles`, which lie one
  /// after the other; of blocks, of one part, before they are scaled.
  SmallVector<Value> elementsOf(ArrayRef<Tile> tiles, int64_t unit,
                                int64_t row);
  /// By what sums of products with these are multiplied, and sums of x.
  struct Scale {
    Value factor, addend; ///< null: nothing is added
  };
  Scale scaleOf(const Tile &tile, int64_t unit, int64_t row);
  /// Whether it takes so many operations that lanes, which have the same rows
  /// in common, had better have a part's scales from one another.
  bool hasSharedScales() const {
    return format && scaling.integers != 0 && !scaling.areExponents;
  }
  /// Those of a part, which are of unitsOfScale() units each, are divided among
  /// the four lanes of a group, each of which has so many: of row `row`, number
  /// `i` is number i / 2 of lane `row` + i % 2 * 2.
  int64_t scalesOfLane() const;
  Scale ownScaleOf(const Tile &tile, int64_t number);

  /// Workgroup memory with the table of a format that has one, which threads
  /// fill: to be read behind the next barrier. Null for other elements.
  static Value makeTable(GPUEmitter &e, Type element);

private:
  Value codeBits(const Tile &tile, int64_t unit, int64_t row, int64_t j);
  Value elementOfCode(const Tile &tile, int64_t unit, int64_t row, int64_t j);
  Scale scaleOfInteger(Value word, int64_t bit, int64_t number,
                       function_ref<Value()> block, function_ref<Value()> rest);
  Value restOf(const Tile &tile);
  Scale scaleBy(Value factor, Value minimum);
  Value vectorAt(Value place);
  Value wordAt(ArrayRef<Value> vectors, int64_t number);
  Value wordOf(Value vector, int64_t first, int64_t stride, int64_t count,
               Value number);
  Value half(Value word, int64_t number);
  Value field(Value word, int64_t bit, int64_t mask);
  Value field(Value word, int64_t bit, int64_t mask, Value more, int64_t at);

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  Type element;
  const ::kf::BlockFormat *format = nullptr; // of blocks
  ::kf::FragmentScales scaling;              // of these
  ::kf::FragmentTile tile;
  Value group, inGroup, table;
  Value buffer;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_LANETILES_H
