//===- GPUEmitter.h - Code of one tiled kernel for a GPU --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tiled kf.kernel becomes a gpu.func whose workgroup computes one tile.
// Buffers are flat memrefs, so that no dynamic shape reaches the target: of
// their elements, but i16 for bf16 and i8 for i1 and for blocks, which not
// every target has types for. A KV cache is one of its elements, too.
// Threads share the work of a tile; what they must agree on (statistics of a
// row, tiles of a matrix product) goes through workgroup memory.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KFTOGPU_GPUEMITTER_H
#define KF_CONVERSION_KFTOGPU_GPUEMITTER_H

#include "../Common/TileEmitter.h"
#include "kf/Conversion/KernelShape.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mlir::kf {

class GPUEmitter : public TileEmitter {
public:
  using TileEmitter::TileEmitter;

  /// Replaces the kernel by a gpu.module of its name; a diagnostic on failure.
  LogicalResult emit();

  KernelShape shape;
  const MachineDescription machine = getMachine(kernel);
  Value thread; ///< number of this thread in its workgroup
  Value threadX, threadY;
  /// Number of this workgroup in its cluster, along which the parts of a tile
  /// lie; null where there is none.
  Value part;

  /// Unsigned arithmetic of an index and a constant, and a constant of i32, of
  /// whose bits `value` has 32.
  Value div(Value x, int64_t by);
  Value rem(Value x, int64_t by);
  Value scaled(Value x, int64_t by) { return mul(x, index(by)); }
  Value word(int64_t value);
  /// Bits of an i32: those of a mask, and all moved right, or left where
  /// `right` is negative.
  Value masked(Value word, int64_t mask);
  Value shifted(Value word, int64_t right);

  Value loadScalar(unsigned slot) override;
  /// Stores to the kernel's result number `number` at tile-local `indices`; of
  /// kf.round_half, what f16 cannot hold to both of its results.
  void storeResult(Value value, ValueRange indices, unsigned number = 0);
  /// The same of several columns of the first result, from `indices` on, which
  /// lie at a multiple of as many elements.
  void storeResults(ArrayRef<Value> values, ValueRange indices);
  /// The tile of the kernel's first result, or what it is rounded from, which
  /// storeResult does; null where there is none.
  Value unroundedResult();

  //===--------------------------------------------------------------------===//
  // Buffers
  //===--------------------------------------------------------------------===//

  /// The flat memref of an argument of the kernel: a tensor's or a cache's.
  Value bufferOf(BlockArgument argument) { return buffers.lookup(argument); }
  /// The place of the element at `indices` of a tensor of `shape`, whose first
  /// extent does not matter, in its buffer.
  Value linearIndex(ValueRange indices, ArrayRef<int64_t> shape);
  /// The element at `place` of a buffer of `element`s, and the other way.
  Value loadBuffer(Value buffer, Value place, Type element);
  void storeBuffer(Value value, Value buffer, Value place, Type element);
  Type narrowType(Type element) override {
    return element.isBF16() ? b.getI16Type() : element;
  }
  /// What code computes with, f32 for floats and integers as they are, of what
  /// a buffer of `element`s holds; and the other way, rounding to nearest even.
  Value widen(Value stored, Type element) override;
  Value narrow(Value value, Type element) override;
  /// The low and the high word (i32) of an element of `tensor`, an argument of
  /// i64 or a slice of one, in a kernel of kf.sample: there is no arithmetic on
  /// it that needs a type of 64 bits.
  std::pair<Value, Value> loadWords(Value tensor, Value place);
  /// The half-precision number, in f32, whose two bytes begin at `place` of a
  /// buffer of i8; and the other way, rounding to nearest even.
  Value loadHalf(Value buffer, Value place);
  void storeHalf(Value value, Value buffer, Value place);
  /// The entry of a table of 16 at an i32, in f32.
  Value lookUp(const int8_t *table, Value code);
  /// A constant of the module: one for all that ask for the same.
  Value constantTable(MemRefType type, DenseElementsAttr data);
  /// The element at `indices` of an argument with `#kf.fragments`.
  Value loadFragments(BlockArgument argument, ValueRange indices);
  /// The element at `indices` of an argument of rows of blocks, in f32.
  Value loadBlocks(BlockArgument argument, const ::kf::BlockFormat &format,
                   ValueRange indices);

  //===--------------------------------------------------------------------===//
  // Threads
  //===--------------------------------------------------------------------===//

  /// Lets ptxas use as many registers as each of `workgroups` of a
  /// multiprocessor can have: it spills some for the sake of another workgroup
  /// otherwise.
  void useAllRegisters(int64_t workgroups = 1);
  /// Waits for the kernels before this one, and lets the one behind it begin,
  /// where kernels begin early (KernelShape::beginsEarly); a second call does
  /// nothing. All threads must come to the first, outside of loops and
  /// branches: before, they may read weights and scalars, but nothing that
  /// another kernel of the program writes, and write nothing but workgroup
  /// memory. A kernel whose emitter does not call this waits first of all.
  void waitForInputs();
  /// Uninitialized workgroup memory of `count` elements.
  Value workgroupMemory(int64_t count, Type element);
  /// The same of bytes, at a multiple of 16.
  Value workgroupBytes(int64_t count);
  void barrier();
  /// Calls `body` for thread 0 alone.
  void onFirstThread(function_ref<void()> body);
  /// Calls `body` for this thread's share of [0, size): of what the workgroup
  /// has, or, in a cluster, of what all of its workgroups have.
  void forThreads(Value size, function_ref<void(Value)> body);
  void forThreadsOfTile(Value size, function_ref<void(Value)> body);
  /// Numbers of this thread that it visits together. Where there are not as
  /// many, a number is another one, whose `isInside` is false.
  struct Batch {
    SmallVector<Value> numbers;
    SmallVector<Value> isInside; ///< null: for certain
  };
  /// Calls `body` for all of this thread's share of [0, size), `shape.batch`
  /// numbers at a time, with what it has returned before.
  SmallVector<Value>
  forBatches(Value size, ValueRange start,
             function_ref<SmallVector<Value>(const Batch &, ValueRange)> body);
  /// Whether a thread's share of [0, size) is one batch.
  bool isOneBatch(Value size);
  Batch wholeBatch(Value size);
  using CombineFn = function_ref<Value(Value, Value)>;
  /// Combines `element(i)` for i in [0, size), from `neutral` on, among all
  /// threads; each gets the result. All threads must come here.
  Value reduce(Value size, Value neutral, CombineFn combine,
               function_ref<Value(Value)> element);
  /// Combines all threads' `own`, which `neutral` does not change; each gets
  /// the result. All threads must come here.
  Value combineThreads(Value own, Value neutral, CombineFn combine);
  /// Whether the code is for NVIDIA GPUs, and threads are whole warps.
  bool hasWarps();

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  /// Makes the elements of row `row` (indices but the last) of `tensor`
  /// loadable: norms and softmax in it have their statistics computed, heads
  /// are rotated. All threads must come here.
  void prepareRow(Value tensor, ValueRange row);
  /// Calls `body` for a row whose `size` columns threads share. Where a thread
  /// has no more than a batch, what `prepareRow` computes statistics of is read
  /// once.
  void withRow(Value size, function_ref<void()> body);
  Value reduceRow(Value size, vector::CombiningKind kind,
                  function_ref<Value(Value, unsigned)> element) override;
  /// Makes the op's elements loadable, as its input's are.
  void defineRope(RopeOp op);
  /// Makes the op's elements loadable, as those of its parts are.
  void defineCombine(AttentionCombineOp op);

protected:
  /// A thread computes its elements of reductions, of products of batches and
  /// of experts, and of what gradients sum up, alone.
  bool isElementLoop(Operation *op) override {
    return isa<ReduceOp, BatchMatmulOp, ExpertMatmulOp, MatmulWgradOp,
               ScatterAddOp>(op);
  }

private:
  void createFunction();
  void emitThreadIds();
  RoundHalfOp roundHalfResult();
  Value placeOfResult(ValueRange indices, unsigned number);
  void keepOutlier(Value value, Value place);
  void beginWithLast(SmallVector<Value> &groups);
  void formCluster(unsigned dim, int64_t size);
  LoadFn argumentLoad(BlockArgument argument);
  Batch batchFrom(Value first, int64_t count, Value size);
  Value combineWarps(Value own, Value neutral, Value memory, CombineFn combine);
  void holdRow(Value tensor, ValueRange row);
  void defineHeld(Value tensor, ArrayRef<Value> columns,
                  ArrayRef<Value> values);

  gpu::GPUFuncOp function;
  DenseMap<Value, Value> buffers; // of tensor and cache arguments
  SmallVector<Value> results;     // their buffers
  Value scalars;
  bool hasWaited = false;
  std::optional<Batch> rowBatch;           // of withRow, where it is one
  DenseMap<Type, Value> partials;          // workgroup memory of `reduce`
  DenseMap<Attribute, std::string> tables; // names of the module's constants
};

/// The kinds of kernels; each emits the whole tile.
void emitGPUMatmul(GPUEmitter &emitter);
void emitGPUAttention(GPUEmitter &emitter);
void emitGPUBatchAttention(GPUEmitter &emitter);
void emitGPUAppend(GPUEmitter &emitter);
void emitGPUDelta(GPUEmitter &emitter);
void emitGPUArgmax(GPUEmitter &emitter);
void emitGPUSample(GPUEmitter &emitter);
void emitGPUQuantizeRows(GPUEmitter &emitter);
void emitGPURows(GPUEmitter &emitter);
/// Of a kernel of `op` (or null), and nothing but rounding behind it.
bool isGPURotation(GPUEmitter &emitter, RopeOp op);
void emitGPURotation(GPUEmitter &emitter, RopeOp op);

} // namespace mlir::kf

#endif // KF_CONVERSION_KFTOGPU_GPUEMITTER_H
