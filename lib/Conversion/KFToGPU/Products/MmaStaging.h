//===- MmaStaging.h - Operands of matrix units ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How 16-bit operands come to shared memory, and from there to the registers of
// matrix units. A stage has lines of MmaShape::step elements, in chunks of 16
// bytes. Chunks change places within their line by the line's number, so that
// the 8 lines of a unit's tile lie in different banks.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMASTAGING_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMASTAGING_H

#include "../Units/RowRange.h"

namespace mlir::kf {

/// Rows of 16-bit floats that lie in memory one after another, or that are
/// computed.
class MmaOperand {
public:
  /// `tensor` is loadable; its elements are rounded to `element`, f16 or bf16.
  /// Of one of WideFactors, term number `rest` is what that leaves.
  MmaOperand(GPUEmitter &e, Value tensor, Type element,
             std::optional<int64_t> rest = std::nullopt);

  /// Whether 16 bytes can be copied at once.
  bool isInPlace() const { return static_cast<bool>(buffer); }
  /// Where the row at `indices`, all but the last, begins.
  Value rowPointer(ValueRange indices);
  /// The bits (i16) of an element; where `isRest` (i1, or null: never), of what
  /// rounding leaves of it.
  Value loadBits(ValueRange indices, Value isRest = {});
  /// Whether neighbours in memory are elements of different rows.
  bool isTransposed() const;

  const int64_t extent; ///< its last dimension
  const std::optional<int64_t> rest;

private:
  void findPlace();

  GPUEmitter &e;
  NvvmCode code;
  Value tensor;
  Type element;
  Value buffer;               // pointer to it; null: elements one by one
  SmallVector<Value> offsets; // of the tensor in it
  ArrayRef<int64_t> shape;    // of what the buffer holds
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

  /// Where this lane's row of 8 elements for loadMatrices begins in a stage: in
  /// line `first` + its number in its tile, where `first` is a multiple of 8
  /// for each lane, and in the chunk `chunk` (0 or 1, each lane's) of step
  /// number `step` of 16 elements.
  Value matrixOffset(Value first, Value chunk, int64_t step);

  int64_t lineBytes() const;

private:
  /// Chunks of 16 bytes that a thread copies.
  struct Chunk {
    Line line;
    Value from;   // pointer to the operand's row, or null
    Value offset; // in the stage
    Value column; // of its first element
    Value exists; // i1: false for threads without one; null: all have it
  };

  int64_t chunksOfLine() const;
  Value swizzle(Value line, Value chunk);
  void copyAsync(const Chunk &chunk, Value stage, Value k);
  void copyElements(const Chunk &chunk, Value stage, Value k);

  GPUEmitter &e;
  NvvmCode code;
  const MmaShape &shape;
  MmaOperand operand;
  int64_t offset, lines;
  SmallVector<Chunk> chunks;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMASTAGING_H
