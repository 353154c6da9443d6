//===- FlashMmaEmitter.h - Attention on matrix units ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_ATTENTION_FLASHMMAEMITTER_H
#define KF_LIB_CONVERSION_KFTOGPU_ATTENTION_FLASHMMAEMITTER_H

#include "../Products/MmaStaging.h"
#include "../Units/WarpOps.h"
#include "FlashEmitter.h"

namespace mlir::kf {

/// Attention by `#kf.flash_mma`; see FlashMmaEmitter.cpp.
class FlashMmaEmitter {
public:
  explicit FlashMmaEmitter(AttentionRows &rows);

  /// The kernel.
  void emit();

private:
  using Row = AttentionRows::Row;
  using Registers = SmallVector<Value>;

  //===--- Setup ----------------------------------------------------------===//

  void allocate();
  void numberThread();
  void forgetThread();
  Value viewOf(Type type, int64_t byte, int64_t count);
  Value load(Value from, Value at);
  void store(Value value, Value to, Value at);
  Value toIndex(Value value);
  Value maximum(Value lhs, Value rhs);

  //===--- A block of rows ------------------------------------------------===//

  void emitBlock();
  void stageQueries();
  void stageRounded(Value parts);
  void readRounded();
  double scoreScale();
  double stagedScale();
  Registers queryFragment(int64_t step, int64_t term);
  Registers readQueries(int64_t step, int64_t term, bool isVolatile);
  void findRange();
  void keepQueries();

  //===--- Keys -----------------------------------------------------------===//

  /// Of the lane's rows: the largest score and its part of the sum of weights;
  /// and the units' sums, four for each 8 columns.
  struct Sums {
    Registers maxima, totals, values;

    Registers all() const {
      Registers list(maxima);
      llvm::append_range(list, totals);
      llvm::append_range(list, values);
      return list;
    }
  };
  Sums sumsOf(ValueRange list);
  Sums noSums();
  Value keysAt(Value position);
  Sums visitKeys();
  void findWhole(Value key);
  void visitBlock(Value key, Value keys, Sums &sums);
  Value pointerTo(Value start, Value row, Value column);
  Registers multiplyKeys(Value start, ArrayRef<Value> scales);
  Value ofRow(ArrayRef<Value> sums, int64_t r, int64_t n);
  Registers loadKeys(Value start, int64_t i, int64_t j);
  void hide(Registers &scores, Value key);
  Registers unlessWhole(ArrayRef<Value> values, function_ref<Registers()> body);
  Registers weigh(ArrayRef<Value> scores, Sums &sums);
  Registers weigh(ArrayRef<Value> scores, Sums &sums, Registers &factors);
  void rescale(Sums &sums, ArrayRef<Value> factors);
  void forScoresOf(int64_t r, function_ref<void(int64_t)> body);

  //===--- Values ---------------------------------------------------------===//

  int64_t valueBytes() const { return shape.valueColumns() * elementBytes; }
  /// Registers of what a lane reads of a row at once.
  int64_t valueRegisters() const {
    return std::max<int64_t>(valueBytes() / 4, 1);
  }
  int64_t valuesOfRow() const {
    return shape.headDim / (8 * shape.valueColumns());
  }
  Registers loadValues(Value start, int64_t first, int64_t h);
  void addValues(function_ref<Registers(int64_t h)> rowsAt,
                 ArrayRef<Value> scales, ArrayRef<Value> weights, Value key,
                 Sums &sums);
  Registers dropUnseen(ArrayRef<Value> parts, Value key);
  SmallVector<Registers> splitWeights(ArrayRef<Value> weights);
  Value pairOf(ArrayRef<Value> rows, int64_t j, int64_t row);

  //===--- Blocks of the cache --------------------------------------------===//

  Value withoutSign(Value codes);
  Value packCodes(Value first, int64_t firstByte, Value second,
                  int64_t secondByte);
  Registers loadScales(Value head, Value first);

  //===--- Through workgroup memory ---------------------------------------===//

  /// 16 bytes of the cache that a thread copies of each block of keys, and of
  /// values.
  struct Copy {
    Value exists;                // null: it does
    Value row, column, from, to; // of the block; bytes from its beginnings
    Value toSecond;              // of codes: where the second half goes
    Value isColumn;              // whether the row has it; null: it does
  };
  /// What of a block is on its way: of blocks of codes, their words and scales.
  struct Flight {
    Registers words, scales; // [keys, values][copies][...]
    Registers stages;        // where keys, and values, go: bytes
  };
  void prepareStages();
  void prepareCopies();
  Flight beginCopies(Value key, Value keys, Value stage);
  void beginCopies(Flight &flight, bool isValue, Value key, Value keys,
                   Value stage);
  void endGroup();
  void endCopies(const Flight &flight);
  Value placeOf(Value row, Value chunk);
  void storeCodes(ArrayRef<Value> codes, Value scale, Value to, Value toSecond);
  Sums visitStages();
  Registers multiplyStage(Value stage);
  void addStage(Value stage, ArrayRef<Value> weights, Sums &sums);
  Registers packWeights(ArrayRef<Value> weights);

  //===--- By warpgroups --------------------------------------------------===//

  Registers beginScores(Value stage);
  void beginValues(Value stage, ArrayRef<Value> weights, Sums &sums);
  Sums visitAhead();

  //===--- Results --------------------------------------------------------===//

  void forValues(const Sums &sums, int64_t r,
                 function_ref<void(Value sum, Value column)> body);
  Value totalOf(const Sums &sums, int64_t r);
  Value isFirst(Value number);
  Value isFirstPlace();
  void check(Value sum);
  Value inverseOf(Value total, Value position);
  void storePart(Value maximum, Value total, const Row &row);
  void storeValue(Value sum, const Row &row, Value column, Value factor);
  void writeRows(const Sums &sums);
  /// What warps, or a workgroup of a cluster, have found, in memory:
  /// [rows][columns], [rows], [rows].
  struct PartSums {
    Value values, maxima, totals;
  };
  PartSums sumsFrom(int64_t byte, int64_t rows);
  PartSums partSums();
  /// What all warps have found of an element, and of its row.
  struct WarpsSum {
    Value maximum, total, value;
  };
  void storeSums(const Sums &sums, const PartSums &ofWarps);
  WarpsSum addWarps(const PartSums &ofWarps, Value local, Value column);
  void combineWarps(const Sums &sums);
  void combineParts();
  void computeAgain();

  AttentionRows &run;
  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  WarpOps warp;
  FlashEmitter spare;
  const FlashMmaShape &shape;
  Type element;         // of fragments
  int64_t rowsOfLane;   // that its scores and sums are of
  int64_t elementBytes; // of the cache
  // This thread's: g and t of the banner, and the numbers of its warp.
  Value lane, group, place, rowWarp, keyWarp;
  Value cacheStart, queryStart;      // pointers to the cache, to its fragments
  SmallVector<Row> rowsHere;         // of the lane
  Registers positions;               // of these rows, i32
  Value lowest, highest;             // positions of the warp's rows
  Value firstSeen, endKey;           // keys that any of them sees
  Value firstKey;                    // where the warp's first block begins
  SmallVector<Registers> queries;    // fragments by step, where they are kept
  Value isWhole;                     // all rows see all keys of the block
  SmallVector<Copy> copies;          // of this thread
  Value keyLines, valueLines;        // rows of a stage that the lane points to
  std::optional<MmaOperand> rounded; // queries that fragments are read from
  // Workgroup memory.
  Value stages;          // a pointer to both
  Value memory;          // bytes: queries, sums of warps, what `spare` needs
  int64_t partStart = 0; // in it, what the cluster reads, in bytes
  Value flag;            // whether the block is computed again
  Value ranges;          // [warps][2]: lowest and highest positions
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_ATTENTION_FLASHMMAEMITTER_H
