//===- BoundTokens.cpp - How many tokens a program's views allow ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::kf {
#define GEN_PASS_DEF_BOUNDTOKENS
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// constant + factor * n_tokens. Constants are 64-bit numbers and products of
/// two of them, so that sums of a few do not overflow.
struct Linear {
  __int128 constant = 0, factor = 0;
};

Linear operator+(Linear a, Linear b) {
  return {a.constant + b.constant, a.factor + b.factor};
}
Linear operator-(Linear a, Linear b) {
  return {a.constant - b.constant, a.factor - b.factor};
}
Linear operator*(Linear a, int64_t b) { return {a.constant * b, a.factor * b}; }

/// Every `?` is n_tokens.
Linear extentOf(RankedTensorType type, int64_t dim) {
  if (type.isDynamicDim(dim))
    return {0, 1};
  return {type.getDimSize(dim), 0};
}

/// The values of n_tokens with which the views of kernels stay inside of what
/// they view.
struct TokenRange {
  int64_t least = 1, most = std::numeric_limits<int64_t>::max();

  bool isEmpty() const { return least > most; }
  /// Leaves those with which `x` is not negative.
  void requireNotNegative(Linear x) {
    if (x.factor == 0) {
      if (x.constant < 0)
        most = 0;
    } else if (x.factor > 0) {
      if (x.constant < 0)
        least = std::max(least, clamp((-x.constant + x.factor - 1) / x.factor));
    } else {
      most = std::min(most, x.constant < 0 ? 0 : clamp(x.constant / -x.factor));
    }
  }

private:
  static int64_t clamp(__int128 value) {
    return static_cast<int64_t>(
        std::min<__int128>(value, std::numeric_limits<int64_t>::max()));
  }
};

/// An index of a view: a constant, or the extent of a tensor.
FailureOr<Linear> evaluate(OpFoldResult index, Operation *view) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return Linear{*constant, 0};
  auto dim = cast<Value>(index).getDefiningOp<tensor::DimOp>();
  auto type = dim ? dyn_cast<RankedTensorType>(dim.getSource().getType())
                  : RankedTensorType();
  std::optional<int64_t> number = dim ? dim.getConstantIndex() : std::nullopt;
  if (type && number && *number >= 0 && *number < type.getRank())
    return extentOf(type, *number);
  return view->emitOpError("kf-bound-tokens: an index must be a constant or "
                           "the tensor.dim of a ranked tensor");
}

LogicalResult boundSlice(tensor::ExtractSliceOp slice, TokenRange &range) {
  SmallVector<OpFoldResult> offsets = slice.getMixedOffsets();
  SmallVector<OpFoldResult> sizes = slice.getMixedSizes();
  SmallVector<OpFoldResult> strides = slice.getMixedStrides();
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  int64_t resultDim = 0;
  for (int64_t dim = 0; dim < slice.getSourceType().getRank(); ++dim) {
    FailureOr<Linear> offset = evaluate(offsets[dim], slice);
    FailureOr<Linear> size = evaluate(sizes[dim], slice);
    std::optional<int64_t> stride = getConstantIntValue(strides[dim]);
    if (failed(offset) || failed(size))
      return failure();
    if (!stride || *stride < 1)
      return slice.emitOpError("kf-bound-tokens: strides must be positive "
                               "constants");
    range.requireNotNegative(*offset);
    range.requireNotNegative(*size - Linear{1, 0});
    // The last element lies before the source's end.
    Linear last = *offset + (*size - Linear{1, 0}) * *stride;
    range.requireNotNegative(extentOf(slice.getSourceType(), dim) - last -
                             Linear{1, 0});
    if (dropped.test(dim))
      continue;
    if (slice.getType().isDynamicDim(resultDim++)) {
      // What is called n_tokens has to be as many.
      range.requireNotNegative(*size - Linear{0, 1});
      range.requireNotNegative(Linear{0, 1} - *size);
    }
  }
  return success();
}

/// A `?` stays as long as it is: nothing but 1 is split from it or joins it.
LogicalResult checkReshape(Operation *op, RankedTensorType expanded,
                           RankedTensorType collapsed,
                           ArrayRef<ReassociationIndices> groups) {
  for (auto [dim, group] : llvm::enumerate(groups)) {
    int64_t dynamic = 0, others = 1;
    for (int64_t inner : group) {
      dynamic += expanded.isDynamicDim(inner);
      if (!expanded.isDynamicDim(inner) && expanded.getDimSize(inner) != 1)
        others = expanded.getDimSize(inner);
    }
    bool isKept = collapsed.isDynamicDim(dim) ? dynamic == 1 && others == 1
                                              : dynamic == 0;
    if (!isKept)
      return op->emitOpError("kf-bound-tokens: every `?` is n_tokens, so that "
                             "a dynamic dimension can only be reshaped "
                             "together with dimensions of 1");
  }
  return success();
}

/// Checks that the results of `op` are tensors of static rows, or extents of
/// such tensors: whatever else a person writes has no meaning in a kernel.
LogicalResult checkValues(Operation &op) {
  auto isExtent = [&](Type type) {
    auto dim = dyn_cast<tensor::DimOp>(op);
    return type.isIndex() &&
           (isa<arith::ConstantOp>(op) || (dim && dim.getConstantIndex()));
  };
  for (Type type : op.getResultTypes())
    if (!isRowsTensor(type) && !isExtent(type))
      return op.emitOpError("kf-bound-tokens: makes ")
             << type
             << "; a kernel has tensors of rank 1 or more whose dimensions are "
                "static but for the first, index constants, and the tensor.dim "
                "of tensors";
  return success();
}

/// Takes what the views of `kernel` ask for into `range`.
LogicalResult boundKernel(KernelOp kernel, TokenRange &range) {
  for (Operation &op : kernel.getBody().front()) {
    LogicalResult result = checkValues(op);
    if (failed(result))
      return failure();
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      result = boundSlice(slice, range);
    else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      result = checkReshape(expand, expand.getResultType(), expand.getSrcType(),
                            expand.getReassociationIndices());
    else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
      result = checkReshape(collapse, collapse.getSrcType(),
                            collapse.getResultType(),
                            collapse.getReassociationIndices());
    if (failed(result))
      return failure();
    if (range.isEmpty())
      return op.emitOpError("kf-bound-tokens: reaches past the end of its "
                            "source, whatever n_tokens is");
  }
  return success();
}

struct BoundTokensPass : mlir::kf::impl::BoundTokensBase<BoundTokensPass> {
  void runOnOperation() override {
    DenseMap<StringAttr, TokenRange> ranges; // by kernel
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      // Tiles of a kernel lie where its grid says.
      if (kernel.getGrid())
        continue;
      if (failed(boundKernel(kernel, ranges[kernel.getSymNameAttr()])))
        return signalPassFailure();
    }
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(bound(program, ranges)))
        return signalPassFailure();
  }

private:
  LogicalResult bound(ProgramOp program,
                      const DenseMap<StringAttr, TokenRange> &ranges) {
    const int64_t min = program.getMinTokens().value_or(1);
    const int64_t max = program.getMaxTokens();
    int64_t least = min, most = max;
    for (auto dispatch : program.getBody().front().getOps<DispatchOp>()) {
      auto found = ranges.find(dispatch.getKernelAttr().getAttr());
      if (found == ranges.end())
        continue;
      const TokenRange &range = found->second;
      if (range.least > most || range.most < least)
        return dispatch.emitOpError("kf-bound-tokens: its views allow ")
               << range.least << " to " << range.most
               << " tokens, the program before it " << least << " to " << most;
      least = std::max(least, range.least);
      most = std::min(most, range.most);
    }
    if (least != min)
      program.setMinTokens(least);
    program.setMaxTokens(most);
    return success();
  }
};

} // namespace
