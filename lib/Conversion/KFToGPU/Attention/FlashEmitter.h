//===- FlashEmitter.h - Online-softmax attention ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_ATTENTION_FLASHEMITTER_H
#define KF_LIB_CONVERSION_KFTOGPU_ATTENTION_FLASHEMITTER_H

#include "AttentionRows.h"

namespace mlir::kf {

/// Workgroup memory from element number `first` on.
struct FlashMemory {
  FlashMemory() = default;
  FlashMemory(Value memory, int64_t first = 0) : memory(memory), first(first) {}

  Value memory;
  int64_t first = 0;
};

/// Attention by `#kf.flash`.
class FlashEmitter {
public:
  /// Memory for `count` elements of a workgroup.
  using MemoryFn = function_ref<FlashMemory(int64_t count, Type element)>;

  explicit FlashEmitter(AttentionRows &rows);

  /// The kernel.
  void emit();

  /// Says where what threads share goes; then computes the rows from
  /// `firstRow` of the run on, as many as the shape has. All threads must come
  /// to both.
  void allocate(MemoryFn memory);
  void numberThread();
  void emitRows();
  /// The same of `count` rows from there on, or of those that there are: what
  /// matrix units have computed is computed again.
  void emitRows(int64_t count);

private:
  //===--- Rows ----------------------------------------------------------===//

  void findRange();
  void stageQueries(Value first);
  Value load(const FlashMemory &from, Value place);
  void store(Value value, const FlashMemory &to, Value place);
  Value placeIn(const FlashMemory &memory, Value place);
  Value placeOf(Value row, Value offset, int64_t extent) {
    return e.add(e.mul(row, e.index(extent)), offset);
  }

  //===--- Keys ----------------------------------------------------------===//

  /// What a thread sums up of the values: [rows][columnsOfThread], and each
  /// row's weights.
  int64_t valueSums() const { return shape.rows * shape.columnsOfThread; }

  void visitKeys();
  void locateKeys(Value key);
  void sumProducts();
  SmallVector<Value> addProducts(ArrayRef<CacheRow> keyRows, Value first,
                                 ValueRange sums);
  void addColumn(ArrayRef<CacheRow> keyRows, ArrayRef<Value> scales,
                 Value first, Value at, MutableArrayRef<Value> acc);
  Value sees(Value row, Value key, Value number);
  void forScores(function_ref<void(Value place, Value row, Value number)> body);
  void emitScores(Value key);
  void emitWeights(Value key);

  //===--- Values --------------------------------------------------------===//

  SmallVector<Value> sumValues(Value key, ValueRange sums);
  Value columnOf(int64_t i) {
    return e.add(firstColumn, e.index(i * shape.columns));
  }
  bool coversColumns() const { return run.dim % shape.columnsOfPass() == 0; }
  void addValue(Value number, MutableArrayRef<Value> acc);
  void forColumns(int64_t r, const AttentionRows::Row &row,
                  function_ref<void(int64_t number, Value column)> body);
  void writeResult(ArrayRef<Value> sums);
  void writePart(ArrayRef<Value> sums);
  SmallVector<Value> addGroups(ArrayRef<Value> sums);

  AttentionRows &run;
  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  const FlashShape &shape;
  CacheBuffer &cache;
  KeyWindow &window;
  SmallVector<Value> positionOf;    // of the block's rows, i32
  Value firstSeen, endKey;          // keys that any of them sees
  Value firstKey;                   // where their first tile begins
  Value share, slot, column, group; // this thread's
  Value firstColumn;                // of this thread in this pass
  Value firstPlace;                 // of the tile of keys in its page
  Value keysOfHead, valuesOfHead;   // where the page's begin
  // Workgroup memory.
  FlashMemory queries;                    // [rows][queryColumns]
  FlashMemory partials;                   // [rows][keys][shares + 1]
  FlashMemory scores, weights;            // [rows][keys]
  FlashMemory maxima, newMaxima, factors; // [rows]
  FlashMemory positions;                  // [rows] of i32
};

/// Attention by `#kf.flash_mma`, and on cooperative matrices.
void emitFlashMma(AttentionRows &rows);
void emitFlashCoop(AttentionRows &rows);

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_ATTENTION_FLASHEMITTER_H
