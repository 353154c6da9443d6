//===- TileEmitter.h - Elements of a tiled kernel's values ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the emitters of all targets share. A tiled kf.kernel becomes a function
// that computes one workgroup. Tensor values of the kernel have no storage of
// their own: whoever needs elements asks for them (`load`), and elementwise
// producers, views and conversions are computed on the way.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_COMMON_TILEEMITTER_H
#define KF_CONVERSION_COMMON_TILEEMITTER_H

#include "CodeBudget.h"

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

#include <functional>
#include <memory>

namespace mlir::kf {

class TileEmitter {
public:
  /// Yields `width` elements of a tensor, of type computeType(), from `indices`
  /// on along the last dimension: a vector, or a scalar when `width` is 0.
  /// Lanes where `mask` is false are not read.
  using LoadFn =
      std::function<Value(ValueRange indices, unsigned width, Value mask)>;

  /// `budget` listens to `rewriter`.
  TileEmitter(KernelOp kernel, RewriterBase &rewriter, CodeBudget &budget);
  virtual ~TileEmitter();

  //===--------------------------------------------------------------------===//
  // The kernel
  //===--------------------------------------------------------------------===//

  KernelOp kernel;
  scf::ForallOp forall;

  /// The op of the tile of type OpTy, or null.
  template <typename OpTy> OpTy find() {
    auto ops = forall.getBody()->getOps<OpTy>();
    return ops.empty() ? OpTy() : *ops.begin();
  }
  /// The tile's result number `number`; null when the kernel has none.
  Value tileResult(unsigned number = 0);
  /// Where that goes in the kernel's result: one index a dimension.
  SmallVector<Value> tileOffsets(unsigned number = 0);
  /// Sizes of a tile value, dimension by dimension.
  SmallVector<Value> sizesOf(Value tensor);
  /// A slot of the scalar buffer, as an index.
  virtual Value loadScalar(unsigned slot) = 0;
  /// The size of the step that `name` names; n_tokens where it is null.
  Value loadSize(StringAttr name);

  //===--------------------------------------------------------------------===//
  // Elements
  //===--------------------------------------------------------------------===//

  /// Elements of `tensor`; see LoadFn. Only for values that `isLoadable`. Once
  /// the budget is spent they are zeros, since nobody will run the code.
  Value load(Value tensor, ValueRange indices, unsigned width,
             Value mask = Value());
  /// Whether elements can be had one by one: arguments, views, elementwise ops
  /// and whatever has been defined.
  bool isLoadable(Value tensor);
  /// Says how elements of `tensor` are had from now on.
  void define(Value tensor, LoadFn fn) { defined[tensor] = std::move(fn); }
  /// Ends what define() said.
  void undefine(Value tensor) { defined.erase(tensor); }

  //===--------------------------------------------------------------------===//
  // Building blocks
  //===--------------------------------------------------------------------===//

  RewriterBase &b;
  Location loc;

  Value index(int64_t value);
  Value index(OpFoldResult value);
  Value f32(double value);
  /// Arithmetic on index or float values; constant indices fold.
  Value add(Value lhs, Value rhs);
  Value sub(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  Value ceilDiv(Value lhs, int64_t rhs);
  Value isLess(Value lhs, Value rhs);
  Value select(Value condition, Value yes, Value no);
  /// A vector of `width` times `scalar`; of width 0, `scalar`.
  Value splat(Value scalar, unsigned width);
  VectorType vectorType(unsigned width, Type element = Type());
  /// `element` itself where `width` is 0, else a vector of it.
  Type typeOfWidth(unsigned width, Type element);
  /// What elements of a tensor of `element` are computed in: f32 for f16, bf16,
  /// f8E4M3FN and blocks; others as they are.
  Type computeType(Type element);
  /// What a rounded element is in registers, from which and to which narrow()
  /// and widen() go: of 16-bit floats, their bits where a device lacks them.
  virtual Type narrowType(Type element) { return element; }
  /// `x`, computed for elements of type `element`, rounded to that type; and
  /// the other way.
  virtual Value narrow(Value x, Type element);
  virtual Value widen(Value x, Type element);
  /// The values, in f32, of codes of f8E4M3FN in i8.
  Value widenFloat8(Value codes);
  /// The scales, in f32, of bytes of ::kf::BlockScale::HalvedE8M0 in i32.
  Value widenHalvedE8M0(Value bytes);
  /// Rounds `x`, computed for elements of type `element`, to what that type
  /// can hold.
  Value round(Value x, Type element) {
    return computeType(element) == element ? x
                                           : widen(narrow(x, element), element);
  }
  scf::ForOp loop(Value lower, Value upper, Value step, ValueRange inits,
                  function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void loop(Value upper, function_ref<void(Value)> body);
  /// Calls `body` for every index into `sizes`, in nested loops, and `enter`,
  /// where given, with each index of the outermost.
  void forRows(ArrayRef<Value> sizes, function_ref<void(ValueRange)> body,
               function_ref<void(Value)> enter = nullptr,
               SmallVector<Value> row = {});
  void ifThen(Value condition, function_ref<void()> body);
  /// The value of the branch that is taken.
  Value ifElse(Value condition, function_ref<Value()> yes,
               function_ref<Value()> no);
  Value activate(ActivationKind kind, Value x);
  /// How many elements a reduction makes one of, as one that it computes with.
  Value countReduced(ReduceOp op);
  /// cap * tanh(x / cap).
  Value softcap(Value x, double cap);
  /// Combines the elements of a row of `size`, of which `element` gives some
  /// from a column on (LoadFn's width), to one f32: ADD, or MAXIMUMF, of which
  /// a NaN makes a NaN.
  virtual Value reduceRow(Value size, vector::CombiningKind kind,
                          function_ref<Value(Value, unsigned)> element) = 0;

protected:
  CodeBudget &budget;

  /// Elements of a constant that is a list, at `linear` in the order of its
  /// shape; what load() yields. By default a choice among all of them.
  virtual Value loadList(DenseElementsAttr list, Value linear, unsigned width,
                         Value mask);
  /// Whether an element of `op`'s result can be computed alone, by a loop over
  /// elements of its operands: so it is with GPUs, where a thread has one.
  virtual bool isElementLoop(Operation *op) { return false; }

  /// Sets `forall`; a diagnostic if there is none. Diagnostics begin with
  /// `pass`.
  LogicalResult findTile(StringRef pass);
  /// Says that this workgroup is number `position` along dimension `dim` of
  /// the grid.
  void setWorkgroup(unsigned dim, Value position);
  /// Clones the index arithmetic of the kernel, in and around the loop; call it
  /// once the workgroup is known.
  void cloneIndices();

  /// Calls `element` for each lane, with the indices of its element, where
  /// lanes do not lie behind one another; a mask's false lanes have the first
  /// column.
  Value loadLanes(Type element, ValueRange indices, unsigned width, Value mask,
                  function_ref<Value(ValueRange)> load);
  /// The result of an elementwise op (ElementwiseEmitter.cpp).
  Value compute(Operation *op, ValueRange operands, unsigned width);

private:
  Value zeros(Value tensor, unsigned width);
  Value loadProducer(Operation *op, ValueRange indices, unsigned width,
                     Value mask);
  Value loadView(Operation *op, ValueRange indices, unsigned width, Value mask);
  Value loadSlice(tensor::ExtractSliceOp op, ValueRange indices, unsigned width,
                  Value mask);
  Value loadTranspose(TransposeOp op, ValueRange indices, unsigned width,
                      Value mask);
  Value loadBroadcast(BroadcastOp op, ValueRange indices, unsigned width,
                      Value mask);
  Value loadConcat(tensor::ConcatOp op, ValueRange indices, unsigned width,
                   Value mask);
  Value loadIota(IotaOp op, ValueRange indices, unsigned width);
  Value loadConstant(arith::ConstantOp op, ValueRange indices, unsigned width,
                     Value mask);
  Value loadReduce(ReduceOp op, ValueRange indices);
  Value loadProduct(BatchMatmulOp op, ValueRange indices);
  Value loadSumOfProducts(MatmulWgradOp op, ValueRange indices);
  Value loadSumOfRows(ScatterAddOp op, ValueRange indices);
  Value loadExpertProduct(ExpertMatmulOp op, ValueRange indices);
  SmallVector<Value> reshapeIndices(Operation *op, ValueRange indices);

  /// What a call of `load` has computed on its way, by tensor, indices, width
  /// and mask: at hand in the region of code that computes it and those inside.
  class ComputedTable;
  struct CodeRegion;

  IRMapping indexMap;              // index values of the kernel
  DenseMap<Value, LoadFn> defined; // tensor values with elements at hand
  std::unique_ptr<ComputedTable> computed;
};

/// `row` with `column` behind it.
SmallVector<Value> indicesAt(ValueRange row, Value column);

/// `kind` of two elements, scalars or vectors of one type.
Value combine(TileEmitter &emitter, ReduceKind kind, Value lhs, Value rhs);
/// What leaves every element as it is in combine(), of type `element`.
TypedAttr neutralOf(ReduceKind kind, Type element);

/// A constant of x's type: a scalar or a splat.
Value constantLike(TileEmitter &emitter, Value x, double value);

} // namespace mlir::kf

#endif // KF_CONVERSION_COMMON_TILEEMITTER_H
