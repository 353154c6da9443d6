//===- TileKernels.cpp - Workgroup tiles ----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/KernelLimits.h"
#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Transforms/CSE.h"

namespace mlir::kf {
#define GEN_PASS_DEF_TILEKERNELS
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// One tiled loop of the root op.
struct TiledLoop {
  unsigned loop;       // of the root op
  int64_t step;        // tile size
  OpFoldResult extent; // static, or a size of the step
};

/// The type whose rows the root op's first loop runs over.
RankedTensorType rowsTypeOf(Operation *root) {
  if (auto append = dyn_cast<KVAppendOp>(root))
    return cast<RankedTensorType>(append.getK().getType());
  if (auto delta = dyn_cast<GatedDeltaOp>(root))
    return cast<RankedTensorType>(delta.getStates().getType());
  return cast<RankedTensorType>(root->getResult(0).getType());
}

/// The op that makes the kernel's results, or that appends to the cache.
TilingInterface findRoot(KernelOp kernel) {
  if (kernel.getNumResults() > 0) {
    Operation *root = kernel.getYield().getOperand(0).getDefiningOp();
    return root && isTileable(root) ? cast<TilingInterface>(root) : nullptr;
  }
  for (Operation &op : kernel.getBody().front())
    if (isa<KVAppendOp>(op))
      return cast<TilingInterface>(op);
  return nullptr;
}

struct TileKernelsPass : mlir::kf::impl::TileKernelsBase<TileKernelsPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (kernel.getGrid())
      return;
    if (failed(tile(kernel)))
      signalPassFailure();
  }

private:
  LogicalResult tile(KernelOp kernel) {
    if (!kernel.getSchedule())
      return kernel.emitError("kf-tile-kernels: needs a schedule; run "
                              "kf-select-schedules first");
    if (failed(checkBody(kernel)))
      return failure();
    TilingInterface root = findRoot(kernel);
    if (!root)
      return kernel.emitError("kf-tile-kernels: no op of this kernel can be "
                              "tiled");
    if (!llvm::equal(kernel.getYield().getOperands(), root->getResults()))
      return kernel.emitError("kf-tile-kernels: must yield the results of one "
                              "op, all of them in their order; form kernels "
                              "of the others");
    IRRewriter rewriter(&getContext());
    rewriter.setInsertionPoint(root);
    SmallVector<Range> domain = root.getIterationDomain(rewriter);
    FailureOr<SmallVector<TiledLoop>> loops = selectLoops(kernel, root, domain);
    if (failed(loops))
      return failure();
    FailureOr<scf::ForallOp> created = createForall(rewriter, root, *loops);
    if (failed(created))
      return failure();
    scf::ForallOp forall = *created;
    setGrid(kernel, root, *loops);
    SmallVector<OpFoldResult> offsets, sizes;
    rewriter.setInsertionPoint(forall.getTerminator());
    computeTile(rewriter, forall, domain, *loops, offsets, sizes);
    FailureOr<TilingResult> tiled =
        root.getTiledImplementation(rewriter, offsets, sizes);
    if (failed(tiled))
      return failure();
    tileAppends(rewriter, kernel, *tiled);
    if (failed(insertResults(rewriter, forall, root, *tiled, offsets, sizes)))
      return failure();
    rewriter.replaceOp(root, forall.getResults());
    if (failed(fuseProducers(rewriter, kernel, forall)))
      return failure();
    // Slices of arguments that two ops of the tile read are equal.
    DominanceInfo dominance(kernel);
    eliminateCommonSubExpressions(rewriter, dominance, kernel);
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(kernel.getBody().front())))
      if (isOpTriviallyDead(&op))
        rewriter.eraseOp(&op);
    return success();
  }

  /// Names what no target has code for.
  LogicalResult checkBody(KernelOp kernel) {
    size_t count = llvm::range_size(kernel.getBody().front());
    if (count > maxKernelOps)
      return kernel.emitError("kf-tile-kernels: a kernel has at most ")
             << maxKernelOps << " ops, found " << count;
    KVAppendOp first;
    for (auto append : kernel.getBody().getOps<KVAppendOp>()) {
      if (append.getKvHead())
        return append.emitOpError(
            "kf-tile-kernels: kv_head is for kernels that "
            "are tiled; append all heads");
      if (std::exchange(first, append))
        return append.emitOpError("kf-tile-kernels: a kernel has one append");
    }
    if (kernel.getNumResults() > 0)
      for (auto append : kernel.getBody().getOps<KVAppendOp>())
        if (!isOfAttention(kernel, append))
          return append.emitOpError(
              "kf-tile-kernels: must be in a kernel of its own, without "
              "results; or, where the target computes both in one, before the "
              "attention to its layer by the same positions, sequences and "
              "table");
    for (auto delta : kernel.getBody().getOps<GatedDeltaOp>())
      if (!llvm::all_of(delta->getUsers(), llvm::IsaPred<YieldOp>))
        return delta.emitOpError("kf-tile-kernels: what reads its result must "
                                 "be in a kernel of its own");
    for (Operation &op : kernel.getBody().front()) {
      if (isa<YieldOp>(op) ||
          (op.getNumResults() == 1 && op.getResult(0).getType().isIndex()))
        continue;
      if (failed(checkOp(op)))
        return failure();
      if (op.getNumResults() > 1 && !isa<YieldOp>(op.getNextNode()))
        return op.emitOpError("kf-tile-kernels: makes several results and must "
                              "be the last op of its kernel");
    }
    return success();
  }

  /// Whether the attention that makes the kernel's results reads what `append`
  /// stores, and the target has code for both in a kernel.
  static bool isOfAttention(KernelOp kernel, KVAppendOp append) {
    auto target =
        kernel->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttrInterface>(
            kTargetAttrName);
    Value result = kernel.getYield().getOperand(0);
    if (Operation *rounding = result.getDefiningOp(); isRounding(rounding))
      result = rounding->getOperand(0);
    auto attention =
        dyn_cast_if_present<CacheAttentionInterface>(result.getDefiningOp());
    return target && target.appendsInAttention() && attention &&
           !attention.getKvHead() && append->isBeforeInBlock(attention) &&
           isAppendFor(append, attention);
  }

  /// Where attention was tiled, moves appends into the tile, before it, of
  /// which each stores the KV head alone.
  static void tileAppends(RewriterBase &rewriter, KernelOp kernel,
                          const TilingResult &tiled) {
    auto attention = dyn_cast<CacheAttentionInterface>(tiled.tiledOps.front());
    if (!attention)
      return;
    for (auto append :
         llvm::make_early_inc_range(kernel.getBody().getOps<KVAppendOp>())) {
      rewriter.setInsertionPoint(attention);
      OpFoldResult zero = rewriter.getIndexAttr(0),
                   one = rewriter.getIndexAttr(1);
      auto sliceOf = [&](Value heads) -> Value {
        Location loc = append.getLoc();
        return tensor::ExtractSliceOp::create(
            rewriter, loc, heads,
            {zero, OpFoldResult(attention.getKvHead()), zero},
            {tensor::getMixedSize(rewriter, loc, heads, 0), one,
             tensor::getMixedSize(rewriter, loc, heads, 2)},
            {one, one, one});
      };
      Value k = sliceOf(append.getK()), v = sliceOf(append.getV());
      KVAppendOp::create(rewriter, append.getLoc(), append.getCache(), k, v,
                         append.getPositions(), append.getSequences(),
                         append.getPageTable(), attention.getKvHead(),
                         append.getLayerAttr());
      rewriter.eraseOp(append);
    }
  }

  LogicalResult checkOp(Operation &op) {
    if (auto matmul = dyn_cast<MatmulOp>(op); matmul && !matmul.isOfMatrices())
      return op.emitOpError(
          "kf-tile-kernels: a kernel multiplies matrices; run "
          "kf-expand-tensors first");
    if (!isTileable(&op) && !isView(&op) && !isa<tensor::CastOp>(op))
      return op.emitOpError("kf-tile-kernels: has no place in a kernel");
    return success();
  }

  /// The loops that the schedule tiles, with a step for each.
  FailureOr<SmallVector<TiledLoop>>
  selectLoops(KernelOp kernel, TilingInterface root, ArrayRef<Range> domain) {
    ArrayRef<int64_t> workgroup = kernel.getScheduleAttr().getWorkgroup();
    SmallVector<utils::IteratorType> types = root.getLoopIteratorTypes();
    if (workgroup.size() > domain.size())
      return kernel.emitError("kf-tile-kernels: schedule tiles ")
             << workgroup.size() << " loops, but " << root->getName() << " has "
             << domain.size();
    SmallVector<TiledLoop> loops;
    for (auto [loop, step] : llvm::enumerate(workgroup)) {
      if (step == 0)
        continue;
      if (types[loop] != utils::IteratorType::parallel)
        return kernel.emitError("kf-tile-kernels: schedule tiles loop ")
               << loop << " of " << root->getName()
               << ", which is not parallel";
      loops.push_back({static_cast<unsigned>(loop), step, domain[loop].size});
    }
    const bool hasParts = kernel.getScheduleAttr().getParts() > 1;
    if (loops.size() + hasParts > 3)
      return kernel.emitError("kf-tile-kernels: a grid has at most 3 "
                              "dimensions");
    return loops;
  }

  void setGrid(KernelOp kernel, Operation *root, ArrayRef<TiledLoop> loops) {
    SmallVector<int64_t> tokens, counts;
    StringAttr size;
    for (const TiledLoop &loop : loops) {
      std::optional<int64_t> extent = getConstantIntValue(loop.extent);
      tokens.push_back(extent ? 0 : loop.step);
      counts.push_back(extent ? llvm::divideCeil(*extent, loop.step) : 0);
      if (!extent)
        size = getSizeName(rowsTypeOf(root));
    }
    if (int64_t parts = kernel.getScheduleAttr().getParts(); parts > 1) {
      tokens.push_back(0);
      counts.push_back(parts);
    }
    kernel.setGridAttr(GridAttr::get(&getContext(), tokens, counts, size));
  }

  FailureOr<scf::ForallOp> createForall(RewriterBase &rewriter, Operation *root,
                                        ArrayRef<TiledLoop> loops) {
    Location loc = root->getLoc();
    SmallVector<Value> outputs;
    OpFoldResult rows; // the loop over a size of the step, if any
    for (const TiledLoop &loop : loops)
      if (!getConstantIntValue(loop.extent))
        rows = loop.extent;
    for (Value result : root->getResults()) {
      auto type = cast<RankedTensorType>(result.getType());
      SmallVector<Value> dynamic;
      if (!type.hasStaticShape()) {
        Value count = rows && haveSameRows(type, rowsTypeOf(root))
                          ? getValueOrCreateConstantIndexOp(rewriter, loc, rows)
                          : getRows(rewriter, root, type);
        if (!count)
          return root->emitOpError("kf-tile-kernels: makes a tensor with rows "
                                   "that no argument of the kernel has");
        dynamic.push_back(count);
      }
      outputs.push_back(tensor::EmptyOp::create(rewriter, loc, type, dynamic));
    }
    SmallVector<OpFoldResult> lower, upper, steps;
    for (const TiledLoop &loop : loops) {
      lower.push_back(rewriter.getIndexAttr(0));
      upper.push_back(loop.extent);
      steps.push_back(rewriter.getIndexAttr(loop.step));
    }
    return scf::ForallOp::create(rewriter, loc, lower, upper, steps, outputs,
                                 /*mapping=*/std::nullopt);
  }

  /// The number of rows of `rows`, from the first argument that has as many;
  /// null if none has.
  Value getRows(OpBuilder &builder, Operation *root, RankedTensorType rows) {
    for (BlockArgument argument : root->getBlock()->getArguments())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType());
          type && haveSameRows(type, rows))
        return tensor::DimOp::create(builder, root->getLoc(), argument, 0);
    return Value();
  }

  void computeTile(OpBuilder &builder, scf::ForallOp forall,
                   ArrayRef<Range> domain, ArrayRef<TiledLoop> loops,
                   SmallVectorImpl<OpFoldResult> &offsets,
                   SmallVectorImpl<OpFoldResult> &sizes) {
    for (const Range &range : domain) {
      offsets.push_back(range.offset);
      sizes.push_back(range.size);
    }
    AffineExpr extent, offset;
    bindDims(builder.getContext(), extent, offset);
    for (auto [loop, iv] : llvm::zip_equal(loops, forall.getInductionVars())) {
      offsets[loop.loop] = iv;
      std::optional<int64_t> size = getConstantIntValue(loop.extent);
      OpFoldResult step = builder.getIndexAttr(loop.step);
      // A part of what is smaller than the tile is no part.
      if (size && *size <= loop.step)
        step = builder.getIndexAttr(*size);
      if (size && (*size <= loop.step || *size % loop.step == 0)) {
        sizes[loop.loop] = step;
        continue;
      }
      auto map = AffineMap::get(
          2, 0, {extent - offset, builder.getAffineConstantExpr(loop.step)},
          builder.getContext());
      sizes[loop.loop] = affine::makeComposedFoldedAffineMin(
          builder, forall.getLoc(), map, {loop.extent, iv});
    }
  }

  LogicalResult insertResults(RewriterBase &rewriter, scf::ForallOp forall,
                              TilingInterface root, const TilingResult &tiled,
                              ArrayRef<OpFoldResult> offsets,
                              ArrayRef<OpFoldResult> sizes) {
    OpBuilder::InsertionGuard guard(rewriter);
    for (auto [number, value] : llvm::enumerate(tiled.tiledValues)) {
      SmallVector<OpFoldResult> at, extent;
      rewriter.setInsertionPoint(forall.getTerminator());
      if (failed(root.getResultTilePosition(rewriter, number, offsets, sizes,
                                            at, extent)))
        return root->emitError("kf-tile-kernels: position of result ")
               << number << " of the tile is unknown";
      rewriter.setInsertionPointToEnd(forall.getTerminator().getBody());
      SmallVector<OpFoldResult> strides(at.size(), rewriter.getIndexAttr(1));
      tensor::ParallelInsertSliceOp::create(rewriter, forall.getLoc(), value,
                                            forall.getRegionIterArgs()[number],
                                            at, extent, strides);
    }
    return success();
  }

  /// Fuses the producers of the tile's slices, and theirs, into the loop. The
  /// last op goes first, so that all ops that read it are tiled; those that
  /// want the same part of it share one tile, or a chain of ops that read their
  /// operand twice would end in a tile for every way through it.
  LogicalResult fuseProducers(RewriterBase &rewriter, KernelOp kernel,
                              scf::ForallOp forall) {
    for (Operation *producer = forall->getPrevNode(); producer;
         producer = producer->getPrevNode()) {
      if (!isTileable(producer))
        continue;
      SmallVector<tensor::ExtractSliceOp> slices;
      for (Operation *user : producer->getUsers())
        if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
            slice && slice->getBlock() == forall.getBody())
          slices.push_back(slice);
      llvm::sort(slices, [](Operation *a, Operation *b) {
        return a->isBeforeInBlock(b);
      });
      while (!slices.empty()) {
        tensor::ExtractSliceOp first = slices.front();
        rewriter.setInsertionPoint(first);
        FailureOr<TilingResult> fused =
            tensor::replaceExtractSliceWithTiledProducer(
                rewriter, first, cast<OpResult>(first.getSource()));
        if (failed(fused)) // reported by the op's TilingInterface
          return failure();
        tileAppends(rewriter, kernel, *fused);
        SmallVector<tensor::ExtractSliceOp> same, others;
        for (tensor::ExtractSliceOp slice : slices)
          (isSamePart(slice, first) ? same : others).push_back(slice);
        for (tensor::ExtractSliceOp slice : same)
          rewriter.replaceOp(slice, fused->tiledValues[0]);
        slices = std::move(others);
      }
    }
    return success();
  }

  static bool isSamePart(tensor::ExtractSliceOp a, tensor::ExtractSliceOp b) {
    return a.getMixedOffsets() == b.getMixedOffsets() &&
           a.getMixedSizes() == b.getMixedSizes();
  }
};

} // namespace
