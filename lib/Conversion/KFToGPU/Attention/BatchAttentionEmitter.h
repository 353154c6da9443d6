//===- BatchAttentionEmitter.h - Attention to tensors -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_ATTENTION_BATCHATTENTIONEMITTER_H
#define KF_LIB_CONVERSION_KFTOGPU_ATTENTION_BATCHATTENTIONEMITTER_H

#include "../Units/WarpOps.h"

namespace mlir::kf {

/// Attention to keys that are tensors, and its gradients; see
/// BatchAttentionEmitter.cpp.
class BatchAttentionEmitter {
public:
  explicit BatchAttentionEmitter(GPUEmitter &emitter);

  /// The kernel.
  void emit();

private:
  using Registers = SmallVector<Value>;

  /// A tensor [..., heads, rows, columns] of bf16, or [..., heads, rows] of
  /// f32.
  struct Rows {
    Value start; ///< a pointer
    int64_t heads = 1, rows = 1;
  };
  /// A block of others' rows.
  struct Block {
    Value first;                ///< the number of its first row
    Value head;                 ///< of the queries
    SmallVector<Value> tensors; ///< pointers to workgroup memory
  };

  //===--- Setup ----------------------------------------------------------===//

  Rows rowsOf(Value tensor);
  void numberThread();
  void findRange();

  //===--- Memory ---------------------------------------------------------===//

  Value headOf(const Rows &rows, Value head);
  void copyRows(Value to, Value from, Value first, int64_t count,
                int64_t limit);
  void stageOwn();
  Block blockAt(Value number, Value stage);
  void beginCopies(Value number);
  using BlockFn = function_ref<Registers(const Block &, ValueRange)>;
  Registers walk(ValueRange initial, BlockFn body);
  Value loadNumber(const Rows &rows, Value head, Value row);

  //===--- Products -------------------------------------------------------===//

  Registers ownFragment(int64_t tensor, int64_t step);
  void keepOwn();
  Registers multiplyRows(int64_t own, Value others);
  void addProducts(MutableArrayRef<Value> sums, ArrayRef<Value> factors,
                   Value others);

  //===--- Scores ---------------------------------------------------------===//

  void findMask();
  Registers loadMask(const Block &block);
  Value sees(int64_t r, int64_t number, const Block &block,
             ArrayRef<Value> mask);
  Registers scoresOf(const Block &block);
  Value combineRow(Value own, bool isMaximum);
  Registers weigh(ArrayRef<Value> scores, MutableArrayRef<Value> maxima,
                  MutableArrayRef<Value> totals, Registers &factors);

  //===--- The three kernels ----------------------------------------------===//

  void emitForward();
  void emitQueries();
  void emitKeys();
  void storeRows(ArrayRef<Value> sums, ArrayRef<Value> factors,
                 unsigned number);
  void storeNumber(Value value, int64_t r, unsigned number);
  SmallVector<Value> placeOf(int64_t r);

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  WarpOps warp;
  BatchAttentionInterface op;
  const BatchAttentionShape shape;
  const bool isOfKeys; ///< own rows are keys, others' are queries
  SmallVector<Rows> own, others;
  int64_t rank, queryHeads, keyHeads;
  Value batch, head, first; ///< of the workgroup's rows
  Value lane, group, place; ///< of the thread: lane 4 group + place
  Value warpNumber;
  Value memory;               ///< a pointer to workgroup memory
  Value leftLane, rightLane;  ///< bytes to what the lane points to
  SmallVector<Value> ownRows; ///< numbers of the lane's two, i32
  Value firstOther, blocks;   ///< of each head
  Value allBlocks, firstHead; ///< of all heads, from that of queries on
  SmallVector<SmallVector<Registers>> kept; ///< fragments by tensor and step
  // Of the mask: a pointer to what is of the batch, and bytes from one head,
  // query and key to the next.
  Value maskStart;
  int64_t maskHead = 0, maskQuery = 0, maskKey = 0;
  bool hasMaskPairs = false; ///< of two keys that are neighbours
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_ATTENTION_BATCHATTENTIONEMITTER_H
