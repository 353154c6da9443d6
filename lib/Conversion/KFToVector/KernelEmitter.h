//===- KernelEmitter.h - Vector code of one tiled kernel --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tiled kf.kernel becomes a func.func on memrefs that computes one workgroup.
// Only what a reduction or a matrix product reads many times is materialized,
// row by row, in scratch memory; everything else is computed on the way.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KFTOVECTOR_KERNELEMITTER_H
#define KF_CONVERSION_KFTOVECTOR_KERNELEMITTER_H

#include "../Common/TileEmitter.h"
#include "kf/Conversion/VectorLimits.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::kf {

class KernelEmitter : public TileEmitter {
public:
  /// Takes `width` elements of a row from column `column` on, of type
  /// computeType().
  using StoreFn =
      std::function<void(Value column, unsigned width, Value values)>;

  KernelEmitter(KernelOp kernel, RewriterBase &rewriter, CodeBudget &budget)
      : TileEmitter(kernel, rewriter, budget),
        schedule(
            dyn_cast_if_present<VectorScheduleAttr>(kernel.getScheduleAttr())),
        lanes(schedule ? schedule.getLanes() : 1) {}

  /// Replaces the kernel by a function; a diagnostic on failure.
  LogicalResult emit();

  VectorScheduleAttr schedule;
  /// Lanes of a vector register in f32 elements.
  unsigned lanes;

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  /// What `tensor` is, or is a slice of with strides of 1 and all dimensions,
  /// and the slice's offsets in it.
  Value sourceOf(Value tensor, SmallVectorImpl<Value> &offsets);
  /// The same of a kernel argument: its memref; null for others.
  Value sourceMemref(Value tensor, SmallVectorImpl<Value> &offsets);
  Value memrefOf(BlockArgument argument) { return memrefs.lookup(argument); }
  Value loadScalar(unsigned slot) override;
  /// The memref of the kernel's result number `number`.
  Value resultStorage(unsigned number = 0) { return resultMemrefs[number]; }
  /// Stores elements as they are computed to a memref of their type, rounding
  /// as needed, or i1 to one of i8.
  void store(Value values, Value memref, ValueRange indices,
             Value mask = Value());
  /// Stores to the kernel's result number `number` at tile-local `indices`.
  void storeResult(Value values, ValueRange indices, Value mask = Value(),
                   unsigned number = 0);
  /// Reads `width` elements (0: one scalar) of a memref as f32.
  Value loadMemref(Value memref, ValueRange indices, unsigned width,
                   Value mask = Value());
  /// loadMemref() of a memref that holds a tensor of `element`; without
  /// indices, the one of rank 0.
  Value loadStored(Type element, Value memref, ValueRange indices,
                   unsigned width, Value mask = Value());
  /// Reads elements of an argument of rows of blocks as f32; the first column
  /// of a vector is a multiple of `width`, which is a power of two up to 16.
  Value loadBlocks(BlockArgument argument, const ::kf::BlockFormat &format,
                   ValueRange indices, unsigned width, Value mask);
  /// A constant memref of the module that holds `values`: a new one called
  /// `name`, or that with a number where the name is taken, or one of these.
  Value constant(const Twine &name, DenseElementsAttr values);
  /// The entries of a table of 16 at a vector of i32 codes, as f32.
  Value lookUp(const int8_t *table, Value codes);
  /// Uninitialized scratch of f32 (or `element`). emit() fails in the end if
  /// there is more than maxScratchBytes.
  Value scratch(ArrayRef<int64_t> shape, Type element = Type());

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  /// Computes row `row` (indices but the last) of `tensor` piece by piece.
  void emitRow(Value tensor, ValueRange row, StoreFn store);
  /// Computes what elements of row `row` of `tensor` need to be loaded, which
  /// they can be until the next row; undefine(tensor) after the last.
  void prepareRow(Value tensor, ValueRange row);
  /// Computes all rows of the tile of a product whose x is loadable.
  void emitBatchMatmulTile(BatchMatmulOp op);
  /// Computes what the rotary ops share among the heads of token `token`.
  void beginToken(Value token);

  //===--------------------------------------------------------------------===//
  // Building blocks
  //===--------------------------------------------------------------------===//

  /// 0, 1, 2 ..., an i32 for each lane.
  Value laneNumbers();
  /// Calls `body` for consecutive pieces that cover [0, size): whole vectors in
  /// a loop, then smaller powers of two (single elements if `size` is dynamic).
  void forPieces(Value size, function_ref<void(Value, unsigned)> body);
  /// The same pieces of a static size, without loops.
  void forPiecesStatic(int64_t size,
                       function_ref<void(int64_t, unsigned)> body);
  Value reduceRow(Value size, vector::CombiningKind kind,
                  function_ref<Value(Value, unsigned)> body) override;
  /// reduceRow() of any kind and elements, from `neutral` on; without it, of
  /// ADD or MAXIMUMF of f32.
  Value reducePieces(Value size, vector::CombiningKind kind,
                     function_ref<Value(Value, unsigned)> body, Value neutral);

private:
  LogicalResult checkWeight();
  void createFunction();
  void emitMatmul();
  void emitWorkgroupIndices(Value workgroup);
  LoadFn argumentLoad(BlockArgument argument);
  void prepareInput(Operation *op, ValueRange row);
  void defineNormalized(Operation *op, ValueRange row);
  void emitRope(RopeOp op, ValueRange row, StoreFn store);
  void emitReduce(ReduceOp op, ValueRange row, StoreFn store);
  void emitBatchMatmul(BatchMatmulOp op, ValueRange row, StoreFn store);
  /// (row - first, column, lanes, elements from there on)
  using StoreRowFn = function_ref<void(int64_t, Value, unsigned, Value)>;
  void multiplyRows(BatchMatmulOp op, ValueRange first, int64_t rows,
                    StoreRowFn store);
  Value loadList(DenseElementsAttr list, Value linear, unsigned width,
                 Value mask) override;
  void materializeRow(Value tensor, ValueRange row);
  Value frequencies(RopeOp op);

  func::FuncOp function;
  DenseMap<Value, Value> memrefs; // tensor and cache arguments
  DenseMap<Operation *, std::pair<Value, Value>> rotations; // cos, sin rows
  SmallVector<Value> resultMemrefs;
  Value scalars, scratchBase;
  int64_t scratchBytes = 0;
};

/// The kinds of kernels; each emits the whole tile.
void emitMatmulKernel(KernelEmitter &emitter);
void emitBlockMatmulKernel(KernelEmitter &emitter);
void emitInt8MatmulKernel(KernelEmitter &emitter,
                          const ::kf::BlockFormat &format);
void emitTileMatmulKernel(KernelEmitter &emitter);
void emitAttentionKernel(KernelEmitter &emitter);
void emitCombineKernel(KernelEmitter &emitter);
void emitQuantizeRowsKernel(KernelEmitter &emitter);
void emitAppendKernel(KernelEmitter &emitter);
void emitDeltaKernel(KernelEmitter &emitter);
void emitArgmaxKernel(KernelEmitter &emitter);
void emitSampleKernel(KernelEmitter &emitter);
void emitPackKernel(KernelEmitter &emitter);
void emitWgradKernel(KernelEmitter &emitter);
void emitScatterKernel(KernelEmitter &emitter);
void emitRowKernel(KernelEmitter &emitter);

} // namespace mlir::kf

#endif // KF_CONVERSION_KFTOVECTOR_KERNELEMITTER_H
