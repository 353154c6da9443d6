//===- HalfTiles.h - Codes of a packed tile by pairs of f16 -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a thread has of a whole tile of blocks with `#kf.fragments`, taken apart
// two at a time. A mask leaves two codes in the halves of a word, which are
// subnormal numbers of f16 then: code c that begins with bit p of its half is
// c 2^(p - 24). Widened to f32 they are exact, so that one operation makes two
// codes, and one each of these a float. Integers that scale are made likewise.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_HALFTILES_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_HALFTILES_H

#include "LaneTiles.h"

#include <array>

namespace mlir::kf {

class HalfTiles {
public:
  /// Of lane 4 `group` + `inGroup`.
  HalfTiles(GPUEmitter &emitter, const ::kf::BlockFormat &format, Value group,
            Value inGroup);

  /// Reads tile number `number` of `buffer`, whose elements are vectors of four
  /// i32.
  LaneTiles::Tile load(Value buffer, Value number);

  /// Eight codes less their zero, times 2^(raised - 24) each.
  struct Codes {
    SmallVector<Value, 8> values;
    SmallVector<int, 8> raised;
  };
  /// Of 32 columns, number `span` of the tile, of row g + 8 `row`.
  Codes codesOf(const LaneTiles::Tile &tile, int64_t span, int64_t row);

  /// Columns that are scaled alike.
  int64_t scaleColumns() const { return format.subBlock; }
  /// By what sums of products with codes that are raised by 0 are multiplied,
  /// of rows g and g + 8, in columns `number` * scaleColumns() and on.
  std::array<Value, 2> factorsOf(const LaneTiles::Tile &tile, int64_t number);

  /// Minimums of a row are of as many columns as scales. Those of a tile are
  /// divided among the four lanes of a group, each of which has so many.
  int64_t minimumsOfLane() const;
  bool hasMinimums() const { return scaling.minOffset != 0; }
  /// Which number minimum `i` of this lane is of.
  Value numberOfMinimum(int64_t i);
  /// By what sums of x in these columns are multiplied, of rows g and g + 8.
  std::array<Value, 2> minimumsOf(const LaneTiles::Tile &tile, int64_t i);

private:
  Value pairOfCodes(const LaneTiles::Tile &tile, int64_t span, int64_t row,
                    int64_t pair, int &raised);
  std::array<Value, 2> halvesOf(Value word);
  Value wordAt(ArrayRef<Value> vectors, int64_t number);
  Value pick(ArrayRef<Value> words, Value number);
  Value blockWord(const LaneTiles::Tile &tile, int64_t row);

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  const ::kf::BlockFormat &format;
  const ::kf::FragmentScales scaling;
  const ::kf::FragmentTile tile;
  Value group, inGroup;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_HALFTILES_H
