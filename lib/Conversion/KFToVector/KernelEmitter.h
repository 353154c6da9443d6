//===- KernelEmitter.h - Vector code of one tiled kernel --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tiled kf.kernel becomes a func.func on memrefs that computes one workgroup.
// Tensor values of the kernel have no storage of their own: whoever needs
// elements asks for them (`load`), and elementwise producers, views and
// conversions are computed on the way. Only what a reduction or a matrix
// product reads many times is materialized, row by row, in scratch memory.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KFTOVECTOR_KERNELEMITTER_H
#define KF_CONVERSION_KFTOVECTOR_KERNELEMITTER_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::kf {

class KernelEmitter {
public:
  /// Yields `width` f32 elements of a tensor from `indices` on along the last
  /// dimension: a vector, or a scalar when `width` is 0. Lanes where `mask` is
  /// false are not read.
  using LoadFn = std::function<Value(ValueRange indices, unsigned width,
                                     Value mask)>;
  /// Takes `width` f32 elements of a row from column `column` on.
  using StoreFn = std::function<void(Value column, unsigned width, Value values)>;

  KernelEmitter(KernelOp kernel, RewriterBase &rewriter);

  /// Replaces the kernel by a function; a diagnostic on failure.
  LogicalResult emit();

  //===--------------------------------------------------------------------===//
  // The kernel
  //===--------------------------------------------------------------------===//

  KernelOp kernel;
  ScheduleAttr schedule;
  scf::ForallOp forall;
  /// Lanes of a vector register in f32 elements.
  unsigned lanes;

  /// The op of the tile of type OpTy, or null.
  template <typename OpTy> OpTy find() {
    auto ops = forall.getBody()->getOps<OpTy>();
    return ops.empty() ? OpTy() : *ops.begin();
  }
  /// The tile's result; null when the kernel has none.
  Value tileResult();
  /// Where the tile's result goes in the kernel's: one index a dimension.
  SmallVector<Value> tileOffsets();
  /// Sizes of a tile value, dimension by dimension.
  SmallVector<Value> sizesOf(Value tensor);
  /// The memref of the kernel argument that `tensor` is, or is a slice of; and
  /// the slice's offsets in it.
  Value sourceMemref(Value tensor, SmallVectorImpl<Value> &offsets);
  Value memrefOf(BlockArgument argument) { return memrefs.lookup(argument); }
  Value capacity();
  /// The memref of the kernel's result.
  Value resultStorage() { return resultMemref; }

  //===--------------------------------------------------------------------===//
  // Elements
  //===--------------------------------------------------------------------===//

  /// Elements of `tensor`; see LoadFn. Only for values that `isLoadable`.
  Value load(Value tensor, ValueRange indices, unsigned width,
             Value mask = Value());
  /// Whether elements can be had one by one: arguments, views, elementwise ops
  /// and whatever has been defined.
  bool isLoadable(Value tensor);
  /// Says how elements of `tensor` are had from now on.
  void define(Value tensor, LoadFn fn) { defined[tensor] = std::move(fn); }

  /// Stores f32 elements to a memref of any float type, rounding as needed.
  void store(Value values, Value memref, ValueRange indices,
             Value mask = Value());
  /// Stores to the kernel's result at tile-local `indices`.
  void storeResult(Value values, ValueRange indices, Value mask = Value());
  /// Reads `width` elements (0: one scalar) of a memref as f32.
  Value loadMemref(Value memref, ValueRange indices, unsigned width,
                   Value mask = Value());

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  /// Computes row `row` (indices but the last) of `tensor` piece by piece.
  LogicalResult emitRow(Value tensor, ValueRange row, StoreFn store);
  /// Computes what the rotary ops share among the heads of token `token`.
  void beginToken(Value token);

  //===--------------------------------------------------------------------===//
  // Building blocks
  //===--------------------------------------------------------------------===//

  RewriterBase &b;
  Location loc;

  Value index(int64_t value);
  Value index(OpFoldResult value);
  Value f32(double value);
  Value add(Value lhs, Value rhs);
  Value sub(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  Value ceilDiv(Value lhs, int64_t rhs);
  Value splat(Value scalar, unsigned width);
  VectorType vectorType(unsigned width, Type element = Type());
  /// Uninitialized scratch of f32 (or `element`).
  Value scratch(ArrayRef<int64_t> shape, Type element = Type());
  scf::ForOp loop(Value lower, Value upper, Value step, ValueRange inits,
                  function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void loop(Value upper, function_ref<void(Value)> body);
  void ifThen(Value condition, function_ref<void()> body);
  /// Calls `body` for consecutive pieces that cover [0, size): whole vectors in
  /// a loop, then smaller powers of two (single elements if `size` is dynamic).
  void forPieces(Value size, function_ref<void(Value, unsigned)> body);
  /// The same pieces of a static size, without loops.
  void forPiecesStatic(int64_t size,
                       function_ref<void(int64_t, unsigned)> body);
  /// Reduces `body`'s vectors over [0, size) to a scalar.
  Value reducePieces(Value size, bool maximum,
                     function_ref<Value(Value, unsigned)> body);
  Value activate(ActivationKind kind, Value x);
  /// sin and cos of `angle`, to about 1e-7 for angles up to 1e6.
  std::pair<Value, Value> sinCos(Value angle);

private:
  LogicalResult createFunction();
  void emitPrologue();
  void emitWorkgroupIndices(Value workgroup);
  LoadFn argumentLoad(BlockArgument argument);
  Value loadProducer(Operation *op, ValueRange indices, unsigned width,
                     Value mask);
  LogicalResult emitRmsNorm(RmsNormOp op, ValueRange row, StoreFn store);
  LogicalResult emitLayerNorm(LayerNormOp op, ValueRange row, StoreFn store);
  LogicalResult emitSoftmax(SoftmaxOp op, ValueRange row, StoreFn store);
  LogicalResult emitRope(RopeOp op, ValueRange row, StoreFn store);
  LogicalResult materializeRow(Value tensor, ValueRange row);
  Value frequencies(RopeOp op);

  func::FuncOp function;
  IRMapping indexMap;                  // index values of the kernel
  DenseMap<Value, Value> memrefs;      // tensor and cache arguments
  DenseMap<Value, LoadFn> defined;     // tensor values with elements at hand
  DenseMap<Operation *, std::pair<Value, Value>> rotations; // cos, sin rows
  Value resultMemref, scalars, scratchBase;
  int64_t scratchBytes = 0;
};

/// The kinds of kernels; each emits the whole tile.
LogicalResult emitMatmulKernel(KernelEmitter &emitter);
LogicalResult emitAttentionKernel(KernelEmitter &emitter);
LogicalResult emitAppendKernel(KernelEmitter &emitter);
LogicalResult emitArgmaxKernel(KernelEmitter &emitter);
LogicalResult emitPackKernel(KernelEmitter &emitter);
LogicalResult emitRowKernel(KernelEmitter &emitter);

} // namespace mlir::kf

#endif // KF_CONVERSION_KFTOVECTOR_KERNELEMITTER_H
