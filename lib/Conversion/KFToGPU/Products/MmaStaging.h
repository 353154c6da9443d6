//===- MmaStaging.h - Operands of matrix units ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How operands come to shared memory, and from there to the registers of matrix
// units: of 16 bits, or of f32, which are taken apart there (WideFactors). A
// stage has lines of MmaShape::step elements, in chunks of 16 bytes; or, of an
// operand whose neighbours in memory are of different lines, `step` columns of
// all lines, which units' words are made of on the way to registers. Chunks
// change places, so that what a warp reads at a time lies in different banks.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMASTAGING_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMASTAGING_H

#include "../Units/RowRange.h"

namespace mlir::kf {

/// Rows of floats that lie in memory one after another, or side by side, or
/// that are computed.
class MmaOperand {
public:
  /// `tensor` is loadable; its elements are rounded to `element`: f16 or bf16,
  /// or f32, which they are then. Rows may lie side by side where
  /// `mayBeTurned`.
  MmaOperand(GPUEmitter &e, Value tensor, Type element,
             bool mayBeTurned = false);

  /// Whether 16 bytes can be copied at once, ...
  bool isInPlace() const { return static_cast<bool>(buffer); }
  /// ... which are of as many rows.
  bool isTurned() const { return isInPlace() && turned; }
  /// Where the row at `indices`, all but the last, begins.
  Value rowPointer(ValueRange indices);
  /// Bytes between an element and the next one of its row.
  int64_t columnBytes() const;
  /// The bits of an element, an integer as wide as `element`.
  Value loadBits(ValueRange indices);
  /// Whether neighbours in memory are elements of different rows.
  bool isTransposed() const;
  int64_t elementBytes() const;
  /// Elements of 16 bytes.
  int64_t chunkElements() const { return 16 / elementBytes(); }

  const int64_t extent; ///< its last dimension

private:
  void findPlace(bool mayBeTurned);

  GPUEmitter &e;
  NvvmCode code;
  Value tensor;
  Type element;
  Value buffer;               // pointer to it; null: elements one by one
  SmallVector<Value> offsets; // of the tensor in it
  ArrayRef<int64_t> shape;    // of what the buffer holds
  bool turned = false;
};

/// The part of each stage that one operand has.
class MmaStaging {
public:
  /// Where a line of the stage comes from.
  struct Line {
    SmallVector<Value> row; ///< indices of the operand but the last
    Value isThere;          ///< i1: false for lines past an edge
  };

  /// `count` lines from byte `offset` of each stage on. `line` says which rows
  /// they are; it is asked here only.
  MmaStaging(GPUEmitter &e, MmaOperand operand, int64_t count, int64_t offset,
             function_ref<Line(Value)> line);

  /// Starts to fill the stage at `stage` with columns from `k` on; zeros behind
  /// the operand's. Those that are computed are there at the next barrier.
  void copy(Value stage, Value k);
  /// Scales what this thread has copied of a tile's rows, which lines are, in
  /// a stage of columns from `k` on that has arrived: as `range` says, of what
  /// `outliers` has as well.
  void rescale(Value stage, Value k, OutlierRows &outliers, RowRange &range);

  /// Which of a unit's factors an operand is: its lines, of which two tiles of
  /// 8 make one, or its rows, of which one does.
  enum class Factor : uint8_t { Lines, Rows };

  /// Finds what this warp is to load: `count` tiles of 8 lines from `first` on,
  /// a multiple of 8.
  void findTiles(Value first, int64_t count, Factor factor);
  /// The words of number `pair` of two of those tiles, or of the last one
  /// alone, of 16 columns, those of number `sixteen` of the step: [tiles][2] of
  /// rows, [2][tiles] of lines, of both halves of the columns. Of f32 what is
  /// rounded, and then, as many, what that leaves.
  SmallVector<Value> load(Value stage, int64_t pair, int64_t sixteen);

private:
  /// Chunks of 16 bytes that a thread copies.
  struct Chunk {
    Line line;
    Value from;   // pointer to what is copied of the columns from 0 on, or null
    Value offset; // in the stage
    Value column; // of its first element
    Value exists; // i1: false for threads without one; null: all have it
  };

  bool isWide() const { return operand.elementBytes() == 4; }
  /// Of what lies side by side in a stage: a line, or a column of all lines.
  int64_t chunksOfRow() const;
  Value swizzle(Value row, Value chunk);
  /// Whether the four columns that a lane has of f32 lie at the same distance
  /// from one another for each.
  bool hasEvenColumns() const { return chunksOfRow() >= 8; }
  SmallVector<Value> loadColumns(Value stage, int64_t tile, int64_t sixteen);
  void copyAsync(const Chunk &chunk, Value stage, Value k);
  void copyElements(const Chunk &chunk, Value stage, Value k);

  GPUEmitter &e;
  NvvmCode code;
  const MmaShape &shape;
  MmaOperand operand;
  int64_t offset, lines;
  SmallVector<Chunk> chunks;
  Factor factor = Factor::Lines;
  int64_t tiles = 0;
  /// Where this lane's part of tiles lies in a stage. Of lines, for each 16
  /// columns, of the first tile; of columns, of the first 16, for each pair of
  /// tiles, or, of f32, for each tile and, unless they are even, column.
  SmallVector<Value> places;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMASTAGING_H
