//===- RoundRows.cpp - Rows that are rounded before they are read ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/KernelKey.h"
#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::kf {
#define GEN_PASS_DEF_ROUNDROWS
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

struct RoundRowsPass : mlir::kf::impl::RoundRowsBase<RoundRowsPass> {
  using RoundRowsBase::RoundRowsBase;

  void runOnOperation() override {
    target = getTarget(getOperation());
    if (!target)
      return signalPassFailure();
    getOperation().walk([](ProductOpInterface op) {
      if (RowsAttr rows = op.getRowsAttr()) {
        op.setRowsAttr({});
        round(op, rows.getElement());
      }
    });
    if (!target.getFusionRules().roundingIntoAttention)
      return;
    SmallVector<Operation *> attentions;
    getOperation().walk([&](Operation *op) {
      if (isa<AttentionOp, AttentionCombineOp>(op))
        attentions.push_back(op);
    });
    for (Operation *op : attentions)
      roundAttention(op);
  }

private:
  /// Lets `op` read its rows in `type`.
  static void round(ProductOpInterface op, Type type) {
    if (type.isInteger(8))
      TypeSwitch<Operation *>(op).Case<MatmulOp, ExpertMatmulOp>(
          [](auto product) { quantize(product); });
    else if (!type.isF32())
      narrow(cast<MatmulOp>(op.getOperation()), type);
  }

  static void narrow(MatmulOp op, Type type) {
    OpBuilder b(op);
    Value x = op.getX();
    if (type.isF16()) {
      auto half = RoundHalfOp::create(b, op.getLoc(), x);
      op.getXMutable().assign(half.getRounded());
      op.getOutliersMutable().assign(half.getOutliers());
    } else {
      op.getXMutable().assign(arith::TruncFOp::create(
          b, op.getLoc(), op.getX().getType().clone(type), x));
    }
    op.setWide(true);
  }

  template <typename ProductOp> static void quantize(ProductOp op) {
    OpBuilder b(op);
    auto quant = cast<QuantType>(
        cast<RankedTensorType>(op.getW().getType()).getElementType());
    auto rows = QuantizeRowsOp::create(b, op.getLoc(), op.getX(),
                                       getStorage(quant.getFormat()).subBlock);
    op.getXMutable().assign(rows.getCodes());
    op.getScalesMutable().assign(rows.getScales());
    op.getSumsMutable().assign(rows.getSums());
  }

  /// What reads `value` or shows its elements in another shape, each behind
  /// what it reads; nothing unless all others round them to 16 bits.
  static SmallVector<Operation *> findReaders(Value value) {
    SmallVector<Operation *> readers(value.getUsers());
    for (size_t next = 0; next < readers.size(); ++next) {
      Operation *reader = readers[next];
      if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
              tensor::ExtractSliceOp>(reader))
        llvm::append_range(readers, reader->getUsers());
      else if (!isa<tensor::DimOp>(reader) && !roundsToHalf(reader) &&
               !(isa<arith::TruncFOp>(reader) &&
                 getElementTypeOrSelf(reader->getResult(0))
                         .getIntOrFloatBitWidth() == 16))
        return {};
    }
    return readers;
  }

  /// Whether `op` rounds for products alone.
  static bool roundsToHalf(Operation *op) {
    auto half = dyn_cast<RoundHalfOp>(op);
    return half &&
           llvm::all_of(half.getOutliers().getUses(), [](OpOperand &use) {
             auto matmul = dyn_cast<MatmulOp>(use.getOwner());
             return matmul && matmul.getOutliers() == use.get();
           });
  }

  /// Attention's result where it is rounded anyway, before views of it, so that
  /// its kernel does it.
  void roundAttention(Operation *op) {
    SmallVector<Operation *> readers = findReaders(op->getResult(0));
    if (readers.empty())
      return;
    auto attention = dyn_cast<AttentionOp>(op);
    if (Type type = attention ? roundedQueries(attention) : Type())
      roundQueries(attention, type, readers);
    else if (Type type = typeOfAll(readers))
      roundResult(op, type, readers);
  }

  /// What the kernel of `op` reads its queries in; null: in f32.
  Type roundedQueries(AttentionOp op) {
    auto q = cast<RankedTensorType>(op.getQ().getType());
    if (!q.getElementType().isF32())
      return Type();
    const int64_t rows = getMostRows(getOperation(), q, maxTokens);
    const Type type = target.getRowTypes(op, rows).front();
    return type.isF32() ? Type() : type;
  }

  /// The type of elements that all of `readers` round to; null where they
  /// differ.
  static Type typeOfAll(ArrayRef<Operation *> readers) {
    Type type;
    for (Operation *reader : readers)
      if (isRounding(reader)) {
        Type own = getElementTypeOrSelf(reader->getResult(0));
        if (type && type != own)
          return Type();
        type = own;
      }
    return type;
  }

  /// Queries of many rows, and attention's result, in the type that its
  /// products take.
  static void roundQueries(AttentionOp op, Type type,
                           ArrayRef<Operation *> readers) {
    auto q = cast<RankedTensorType>(op.getQ().getType());
    OpBuilder b(op);
    IRMapping rounded;
    rounded.map(op.getQ(), arith::TruncFOp::create(b, op.getLoc(),
                                                   q.clone(type), op.getQ())
                               .getResult());
    cloneAs(type, op, b, rounded);
    replaceReaders(readers, type, rounded);
    op.erase();
  }

  static void roundResult(Operation *op, Type type,
                          ArrayRef<Operation *> readers) {
    Value result = op->getResult(0);
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    IRMapping rounded, outliers;
    if (type.isF16() && !isWithinHalf(op)) {
      auto half = RoundHalfOp::create(b, op->getLoc(), result);
      rounded.map(result, half.getRounded());
      outliers.map(result, half.getOutliers());
      return replaceReaders(readers, type, rounded, &outliers);
    }
    rounded.map(result,
                arith::TruncFOp::create(
                    b, op->getLoc(),
                    cast<RankedTensorType>(result.getType()).clone(type),
                    result)
                    .getResult());
    replaceReaders(readers, type, rounded);
  }

  /// Whether what attention gives is a mean of values that are f16.
  static bool isWithinHalf(Operation *op) {
    if (auto combine = dyn_cast<AttentionCombineOp>(op))
      op = combine.getValues().getDefiningOp();
    auto attention = dyn_cast_if_present<CacheAttentionInterface>(op);
    return attention && attention.getCache().getType().getType().isF16();
  }

  /// Lets `readers` read what `rounded` has of `type`, and what `outliers` has
  /// of what that cannot hold, if anything.
  static void replaceReaders(ArrayRef<Operation *> readers, Type type,
                             IRMapping &rounded,
                             IRMapping *outliers = nullptr) {
    for (Operation *reader : readers) {
      OpBuilder b(reader);
      if (auto narrow = dyn_cast<arith::TruncFOp>(reader)) {
        rounded.map(narrow.getOut(),
                    convert(b, rounded.lookup(narrow.getIn()), narrow));
      } else if (auto half = dyn_cast<RoundHalfOp>(reader)) {
        replaceHalf(half, type, rounded, outliers);
      } else {
        cloneAs(type, reader, b, rounded);
        if (outliers)
          cloneAs(b.getF32Type(), reader, b, *outliers);
      }
    }
    for (Operation *reader : llvm::reverse(readers)) {
      for (Value result : reader->getResults())
        if (isRounding(reader) && !result.use_empty())
          result.replaceAllUsesWith(rounded.lookup(result));
      reader->erase();
    }
  }

  /// What stands for the results of `half`, whose operand `rounded` has.
  static void replaceHalf(RoundHalfOp half, Type type, IRMapping &rounded,
                          IRMapping *outliers) {
    Value own = rounded.lookup(half.getX());
    if (outliers) {
      rounded.map(half.getRounded(), own);
      rounded.map(half.getOutliers(), outliers->lookup(half.getX()));
    } else if (type.isF16()) { // without outliers
      rounded.map(half.getRounded(), own);
      for (Operation *user :
           llvm::make_early_inc_range(half.getOutliers().getUsers()))
        cast<MatmulOp>(user).getOutliersMutable().clear();
    } else {
      OpBuilder b(half);
      Value wide =
          arith::ExtFOp::create(b, half.getLoc(), half.getX().getType(), own);
      auto again = RoundHalfOp::create(b, half.getLoc(), wide);
      rounded.map(half.getRounded(), again.getRounded());
      rounded.map(half.getOutliers(), again.getOutliers());
    }
  }

  /// Copies `op`; a result that is a tensor has elements of `type` then.
  static void cloneAs(Type type, Operation *op, OpBuilder &b,
                      IRMapping &rounded) {
    Value result = b.clone(*op, rounded)->getResult(0);
    if (auto tensor = dyn_cast<RankedTensorType>(result.getType()))
      result.setType(tensor.clone(type));
  }

  /// `value`, rounded, as the type of what `narrow` rounds to.
  static Value convert(OpBuilder &b, Value value, arith::TruncFOp narrow) {
    if (value.getType() == narrow.getType())
      return value;
    Value wide = arith::ExtFOp::create(b, narrow.getLoc(),
                                       narrow.getIn().getType(), value);
    return arith::TruncFOp::create(b, narrow.getLoc(), narrow.getType(), wide);
  }

  TargetAttrInterface target;
};

} // namespace
