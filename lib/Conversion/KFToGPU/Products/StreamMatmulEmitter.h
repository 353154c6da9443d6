//===- StreamMatmulEmitter.h - Products of few rows on matrix units -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_STREAMMATMULEMITTER_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_STREAMMATMULEMITTER_H

#include "../Units/RowRange.h"
#include "ExpertPlaces.h"
#include "PackedMatmulEmitter.h"
#include "StreamBlocks.h"

#include <memory>

namespace mlir::kf {

/// Products by `#kf.stream`; see StreamMatmulEmitter.cpp.
class StreamMatmulEmitter : public PackedMatmulEmitter {
public:
  explicit StreamMatmulEmitter(GPUEmitter &emitter)
      : PackedMatmulEmitter(emitter), stream(*emitter.shape.stream),
        tileBytes(stream.tileBytes) {}

private:
  /// x is scaled by this for f16 where it is split, so that what a model has
  /// fits, and what rounding leaves once more, so that it is no subnormal
  /// number.
  double halfScale() const { return StreamBlocks::xScaleOf(stream); }
  static constexpr double restScale = 0x1p11;

  void prepareInput() override;
  void emitProduct() override;
  void emitRows();
  void emitTile();
  void findRange();
  Value loadX(Value row, Value k) override;

  //===--- Rows with experts: StreamExperts.cpp ---------------------------===//

  void emitExperts();
  Value finishElement(Value row, Value column, ValueRange sums) override;
  SmallVector<Value> resultIndices(Value row, Value column) override;

  //===--- The weight -----------------------------------------------------===//

  /// What a warp copies next: the step's number of all, and in its share; the
  /// round; the first of the row blocks; and where its first tile begins, in
  /// bytes from `source` on.
  struct Cursor {
    Value number, step, round, block, offset;
  };

  int64_t slotBytes() const {
    return stream.warpBlocks * stream.tiles * tileBytes;
  }
  Cursor after(const Cursor &cursor);
  void startCopies(const Cursor &cursor, Value slot);

  //===--- Products -------------------------------------------------------===//

  SmallVector<Value>
  repeat(Value count, ValueRange state,
         function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void emitPasses(const Cursor &cursor);
  SmallVector<Value> emitShare(Value round, ValueRange state);
  SmallVector<Value> emitStep(Value step, ValueRange values);
  void multiplyPlain(ArrayRef<Value> tiles, Value firstPair,
                     MutableArrayRef<Value> sums);
  void multiplyFloat8(ArrayRef<Value> tiles, Value firstPair,
                      MutableArrayRef<Value> sums);
  void multiplySingle(ArrayRef<Value> tiles, Value firstPair,
                      MutableArrayRef<Value> sums);
  void multiplyPair(function_ref<SmallVector<Value>(int64_t, int64_t)> leftOf,
                    Value pair, MutableArrayRef<Value> sums);
  Value columnOf(int64_t number);
  SmallVector<Value> wordsOf(Value vector);

  //===--- Rows of x: StreamRows.cpp --------------------------------------===//

  static constexpr int64_t perRun = 8;
  /// What a lane splits at a time: 8 columns of a row of x, of a pair of tiles;
  /// where the weight has blocks, of half `half` of a pair, and of the one
  /// StreamBlocks::pairsApart behind, so that lanes read what lies side by
  /// side.
  struct XRun {
    Value row, pair, inPair, half; ///< place in workgroup memory
    Value line;                    ///< of squares
    SmallVector<Value> values;
    Value squares;
  };

  /// Whether elements are split when they are multiplied, and not before.
  bool isSingle() const { return takesRows(stream.unit, RowForm::F32); }
  void stageX(Value round, Value slice);
  int64_t columnInPair(int64_t number) const;
  XRun loadRun(Value number, int64_t runs, Value round, Value slice);
  Value loadColumn(Value row, Value k, Value scale, Value &squaresOfRun);
  void storeRun(const XRun &run);
  void orderWords(MutableArrayRef<Value> words);
  void storeWords(ArrayRef<Value> words, Value place);
  void storeBlockRun(const XRun &run);
  void storePairRun(const XRun &run);
  std::pair<Value, Value> split(Value first, Value second);
  std::pair<Value, Value> widen(Value rounded);
  void storeSquares(const XRun &run);
  void emitScales();
  Value addLanes(Value sum, int64_t count);

  //===--- Sums -----------------------------------------------------------===//

  Value sumPlace(Value block, Value ofShare, Value term, Value row, Value line);
  void forSums(function_ref<void(int64_t, Value, Value, Value)> body);
  void storeSums(Value block, Value ofShare, ArrayRef<Value> sums);
  void storeElements();
  Value sumOf(Value block, Value row, Value line);

  const StreamShape &stream;
  const int64_t tileBytes;
  StreamOperands operands;                // of blocks
  std::optional<StreamBlocks> blockTiles; // where the weight has blocks
  RmsNormOp norm;                         // where sums are scaled
  ExpertMatmulOp experts;                 // null: it is a matmul
  std::unique_ptr<ExpertPlaces> places;   // where rows have experts
  bool isFloat8 = false;

  std::optional<RowRange> range; // of rows that become f16
  bool isScaled = false;         // whether they are scaled
  Value xMemory, ring, sumMemory, squares, scales;
  Value sumsOfX;              // a pointer: of blocks of integers
  Value passes;               // how often warps take row blocks
  Value total;                // a warp's steps for them
  Value share, ownBlock;      // of this warp, in the first round and pass
  Value ringOfWarp;           // bytes to its first slot
  Value ringPointer;          // to this lane's part of it
  SmallVector<Value> xOfLane; // in a pair's vectors, by column tile
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_STREAMMATMULEMITTER_H
