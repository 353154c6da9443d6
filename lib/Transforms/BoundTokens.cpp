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
#include "llvm/ADT/MapVector.h"

namespace mlir::kf {
#define GEN_PASS_DEF_BOUNDTOKENS
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// constant + the sum of factor * size, over sizes of the step; the null name
/// is n_tokens. Constants are 64-bit numbers and products of two of them, so
/// that sums of a few do not overflow.
struct Linear {
  __int128 constant = 0;
  SmallVector<std::pair<StringAttr, __int128>, 1> terms; // no factor is 0

  static Linear size(StringAttr name) { return {0, {{name, 1}}}; }

  void add(StringAttr name, __int128 factor) {
    auto it = llvm::find_if(terms, [&](auto &t) { return t.first == name; });
    if (it == terms.end()) {
      terms.push_back({name, factor});
      return;
    }
    it->second += factor;
    if (it->second == 0)
      terms.erase(it);
  }
};

Linear operator*(Linear a, int64_t b) {
  a.constant *= b;
  for (auto &[name, factor] : a.terms)
    factor *= b;
  if (b == 0)
    a.terms.clear();
  return a;
}
Linear operator+(Linear a, const Linear &b) {
  a.constant += b.constant;
  for (auto [name, factor] : b.terms)
    a.add(name, factor);
  return a;
}
Linear operator-(Linear a, const Linear &b) { return a + b * -1; }

Linear extentOf(RankedTensorType type, int64_t dim) {
  if (type.isDynamicDim(dim))
    return Linear::size(getSizeName(type));
  return {type.getDimSize(dim), {}};
}

/// The values of one size with which the views of kernels stay inside of what
/// they view.
struct Range {
  int64_t least = 0, most = std::numeric_limits<int64_t>::max();
  bool isEmpty() const { return least > most; }
};

/// Those of all sizes of a step.
class Ranges {
public:
  /// Leaves the sizes with which `x` is not negative.
  LogicalResult requireNotNegative(const Linear &x, Operation *view) {
    if (x.terms.empty())
      return x.constant >= 0 ? success() : pastTheEnd(view);
    if (x.terms.size() > 1)
      return view->emitOpError("kf-bound-tokens: compares sizes of different "
                               "names, and nothing says which is larger");
    auto [name, factor] = x.terms.front();
    // A step has a token.
    Range &range = bySize.try_emplace(name, Range{name ? 0 : 1}).first->second;
    if (factor > 0 && x.constant < 0)
      range.least =
          std::max(range.least, clamp((-x.constant + factor - 1) / factor));
    if (factor < 0)
      range.most = std::min(range.most,
                            x.constant < 0 ? -1 : clamp(x.constant / -factor));
    return range.isEmpty() ? pastTheEnd(view) : success();
  }

  const llvm::MapVector<StringAttr, Range> &all() const { return bySize; }

private:
  static LogicalResult pastTheEnd(Operation *view) {
    return view->emitOpError("kf-bound-tokens: reaches past the end of its "
                             "source, whatever the sizes of a step are");
  }
  static int64_t clamp(__int128 value) {
    return static_cast<int64_t>(
        std::min<__int128>(value, std::numeric_limits<int64_t>::max()));
  }

  llvm::MapVector<StringAttr, Range> bySize;
};

/// An index of a view: a constant, or the extent of a tensor.
FailureOr<Linear> evaluate(OpFoldResult index, Operation *view) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return Linear{*constant, {}};
  auto dim = cast<Value>(index).getDefiningOp<tensor::DimOp>();
  auto type = dim ? dyn_cast<RankedTensorType>(dim.getSource().getType())
                  : RankedTensorType();
  std::optional<int64_t> number = dim ? dim.getConstantIndex() : std::nullopt;
  if (type && number && *number >= 0 && *number < type.getRank())
    return extentOf(type, *number);
  return view->emitOpError("kf-bound-tokens: an index must be a constant or "
                           "the tensor.dim of a ranked tensor");
}

LogicalResult boundSlice(tensor::ExtractSliceOp slice, Ranges &ranges) {
  auto require = [&](const Linear &x) {
    return ranges.requireNotNegative(x, slice);
  };
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
    const Linear one = {1, {}};
    // The last element lies before the source's end.
    Linear last = *offset + (*size - one) * *stride;
    if (failed(require(*offset)) ||
        failed(require(extentOf(slice.getSourceType(), dim) - last - one)))
      return failure();
    bool isDynamic =
        !dropped.test(dim) && slice.getType().isDynamicDim(resultDim);
    resultDim += !dropped.test(dim);
    // What has a size's name has to be as many; what has none is not empty.
    Linear named = Linear::size(getSizeName(slice.getType()));
    if (isDynamic &&
        (failed(require(*size - named)) || failed(require(named - *size))))
      return failure();
    if (!isDynamic && failed(require(*size - one)))
      return failure();
  }
  return success();
}

/// A `?` stays as long as it is: nothing but 1 is split from it or joins it,
/// and it keeps its name.
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
      return op->emitOpError("kf-bound-tokens: every `?` is n_tokens or has a "
                             "name, so that a dynamic dimension can only be "
                             "reshaped together with dimensions of 1");
  }
  if (getSize(expanded) != getSize(collapsed))
    return op->emitOpError("kf-bound-tokens: gives the rows of ")
           << op->getOperand(0).getType() << " another name in "
           << op->getResult(0).getType();
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
             << "; a kernel has tensors whose dimensions are static but for "
                "the first, index constants, and the tensor.dim of tensors";
  return success();
}

/// A cast changes no number of rows, nor its name.
LogicalResult checkCast(tensor::CastOp cast) {
  auto from = dyn_cast<RankedTensorType>(cast.getSource().getType());
  auto to = dyn_cast<RankedTensorType>(cast.getType());
  if (from && to && haveSameRows(from, to))
    return success();
  return cast.emitOpError("kf-bound-tokens: gives the rows of ")
         << cast.getSource().getType() << " another number or name in "
         << cast.getType();
}

/// What is joined is as long as its type says, and so is what it is joined by.
LogicalResult checkConcat(tensor::ConcatOp concat) {
  int64_t dim = static_cast<int64_t>(concat.getDim());
  for (Value operand : concat.getOperands()) {
    auto type = cast<RankedTensorType>(operand.getType());
    if (type.isDynamicDim(dim) || concat.getType().isDynamicDim(dim))
      return concat.emitOpError("kf-bound-tokens: joins tensors along a `?`; "
                                "dimension ")
             << dim << " must be static";
    if (dim > 0 && !haveSameRows(type, concat.getType()))
      return concat.emitOpError("kf-bound-tokens: gives the rows of ")
             << type << " another number or name in " << concat.getType();
  }
  return success();
}

/// Takes what the views of `kernel` ask for into `ranges`.
LogicalResult boundKernel(KernelOp kernel, Ranges &ranges) {
  for (Operation &op : kernel.getBody().front()) {
    LogicalResult result = checkValues(op);
    if (failed(result))
      return failure();
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      result = boundSlice(slice, ranges);
    else if (auto castOp = dyn_cast<tensor::CastOp>(op))
      result = checkCast(castOp);
    else if (auto concat = dyn_cast<tensor::ConcatOp>(op))
      result = checkConcat(concat);
    else if (auto embedding = dyn_cast<EmbeddingOp>(op)) // reads row 0 at least
      result = ranges.requireNotNegative(
          extentOf(cast<RankedTensorType>(embedding.getTable().getType()), 0) -
              Linear{1, {}},
          embedding);
    else if (auto attention = dyn_cast<CacheAttentionInterface>(op))
      result = ranges.requireNotNegative( // of the last sequence
          extentOf(cast<RankedTensorType>(attention.getPageTable().getType()),
                   0) -
              Linear{1, {}},
          attention);
    else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      result = checkReshape(expand, expand.getResultType(), expand.getSrcType(),
                            expand.getReassociationIndices());
    else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
      result = checkReshape(collapse, collapse.getSrcType(),
                            collapse.getResultType(),
                            collapse.getReassociationIndices());
    if (failed(result))
      return failure();
  }
  return success();
}

struct BoundTokensPass : mlir::kf::impl::BoundTokensBase<BoundTokensPass> {
  void runOnOperation() override {
    DenseMap<StringAttr, Ranges> ranges; // by kernel
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
                      const DenseMap<StringAttr, Ranges> &ranges) {
    llvm::MapVector<StringAttr, Range> sizes;
    auto add = [&](StringAttr name) {
      auto [least, most] = *program.getRange(name);
      sizes[name] = {least, most};
    };
    add(StringAttr());
    if (ArrayAttr named = program.getSizesAttr())
      for (auto size : named.getAsRange<SizeRangeAttr>())
        add(size.getName());
    for (auto dispatch : program.getBody().front().getOps<DispatchOp>()) {
      auto found = ranges.find(dispatch.getKernelAttr().getAttr());
      if (found == ranges.end())
        continue;
      for (auto [name, wanted] : found->second.all()) {
        auto known = sizes.find(name);
        if (known == sizes.end())
          return dispatch.emitOpError("kf-bound-tokens: a view is called after "
                                      "a size that its program lacks, '")
                 << name.getValue() << "'";
        Range &range = known->second;
        if (wanted.least > range.most || wanted.most < range.least)
          return dispatch.emitOpError("kf-bound-tokens: its views allow ")
                 << wanted.least << " to " << wanted.most << " "
                 << describe(name) << ", the program before it " << range.least
                 << " to " << range.most;
        range.least = std::max(range.least, wanted.least);
        range.most = std::min(range.most, wanted.most);
      }
    }
    store(program, sizes);
    return success();
  }

  static StringRef describe(StringAttr name) {
    return name ? name.getValue() : "tokens";
  }

  static void store(ProgramOp program,
                    const llvm::MapVector<StringAttr, Range> &sizes) {
    SmallVector<Attribute> named;
    for (auto [name, range] : sizes)
      if (name)
        named.push_back(SizeRangeAttr::get(program.getContext(), name,
                                           range.least, range.most));
    Range tokens = sizes.lookup(StringAttr());
    if (tokens.least != program.getRange(StringAttr())->first)
      program.setMinTokens(tokens.least);
    program.setMaxTokens(tokens.most);
    if (!named.empty())
      program.setSizesAttr(ArrayAttr::get(program.getContext(), named));
  }
};

} // namespace
