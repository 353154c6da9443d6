//===- KFTilingInterface.cpp - TilingInterface of ops with loops ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every op with kf's LoopOpInterface, and the elementwise arith ops that fuse
// with them, tile the same way: each operand and result is sliced by the loops
// that its map names.
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/TilingInterface.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Loops and maps of any op that tiles here; elementwise ops have one parallel
/// loop a dimension and identity maps.
struct LoopNest {
  SmallVector<utils::IteratorType> types;
  SmallVector<AffineMap> maps;

  explicit LoopNest(Operation *op) {
    if (auto loops = dyn_cast<LoopOpInterface>(op)) {
      types = loops.getLoopTypes();
      maps = loops.getLoopMaps();
      return;
    }
    int64_t rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
    types.assign(rank, utils::IteratorType::parallel);
    maps.assign(op->getNumOperands() + 1,
                AffineMap::getMultiDimIdentityMap(rank, op->getContext()));
  }
  AffineMap resultMap(OpResult result) const {
    return maps[result.getOwner()->getNumOperands() + result.getResultNumber()];
  }
};

/// Offsets and sizes of the part of `type` that a tile of the loops touches.
void projectTile(OpBuilder &builder, Location loc, Value value, AffineMap map,
                 ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                 SmallVectorImpl<OpFoldResult> &sliceOffsets,
                 SmallVectorImpl<OpFoldResult> &sliceSizes) {
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
      sliceOffsets.push_back(offsets[loop.getPosition()]);
      sliceSizes.push_back(sizes[loop.getPosition()]);
      continue;
    }
    sliceOffsets.push_back(builder.getIndexAttr(0));
    sliceSizes.push_back(tensor::getMixedSize(builder, loc, value, dim));
  }
}

/// Whether every tile reads the whole of an operand, whatever its rows are.
bool isReadWhole(AffineMap map) {
  return llvm::none_of(map.getResults(), llvm::IsaPred<AffineDimExpr>);
}

/// Whether the slice is the whole of a static tensor.
bool isWhole(RankedTensorType type, ArrayRef<OpFoldResult> offsets,
             ArrayRef<OpFoldResult> sizes) {
  for (auto [extent, offset, size] :
       llvm::zip_equal(type.getShape(), offsets, sizes))
    if (ShapedType::isDynamic(extent) || !isConstantIntValue(offset, 0) ||
        !isConstantIntValue(size, extent))
      return false;
  return true;
}

/// A sequence and a head, which the tile names: it reads of all operands what
/// belongs to them.
FailureOr<TilingResult> tileDelta(GatedDeltaOp op, OpBuilder &builder,
                                  ArrayRef<OpFoldResult> offsets,
                                  ArrayRef<OpFoldResult> sizes) {
  // Of a number of sequences that changes, the schedule says it.
  if (getConstantIntValue(sizes[0]).value_or(1) != 1 ||
      !isConstantIntValue(sizes[1], 1))
    return op.emitOpError("must be tiled by single sequences and heads");
  SmallVector<Value> operands(op->getOperands());
  for (OpFoldResult offset : offsets)
    operands.push_back(
        getValueOrCreateConstantIndexOp(builder, op.getLoc(), offset));
  auto whole = cast<RankedTensorType>(op.getType());
  Type part = whole.clone({whole.getDimSize(0), 1, whole.getDimSize(2)});
  Operation *tiled = mlir::clone(builder, op, part, operands);
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), {}};
}

FailureOr<TilingResult> tile(Operation *op, OpBuilder &builder,
                             ArrayRef<OpFoldResult> offsets,
                             ArrayRef<OpFoldResult> sizes) {
  if (auto delta = dyn_cast<GatedDeltaOp>(op))
    return tileDelta(delta, builder, offsets, sizes);
  Location loc = op->getLoc();
  LoopNest nest(op);
  SmallVector<Value> operands;
  SmallVector<Operation *> slices;
  for (auto [operand, map] :
       llvm::zip(op->getOperands(), ArrayRef(nest.maps))) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    SmallVector<OpFoldResult> sliceOffsets, sliceSizes;
    if (type && !isReadWhole(map))
      projectTile(builder, loc, operand, map, offsets, sizes, sliceOffsets,
                  sliceSizes);
    // Attention is tiled in any case: its tile names the KV head.
    if (!type || isReadWhole(map) ||
        (isWhole(type, sliceOffsets, sliceSizes) &&
         !operand.getDefiningOp<CacheAttentionInterface>())) {
      operands.push_back(operand);
      continue;
    }
    SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
    auto slice = tensor::ExtractSliceOp::create(
        builder, loc, operand, sliceOffsets, sliceSizes, strides);
    operands.push_back(slice);
    slices.push_back(slice);
  }

  SmallVector<Type> types;
  for (OpResult result : op->getResults()) {
    SmallVector<int64_t> shape;
    for (auto [dim, expr] :
         llvm::enumerate(nest.resultMap(result).getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      std::optional<int64_t> size =
          loop ? getConstantIntValue(sizes[loop.getPosition()])
               : cast<RankedTensorType>(result.getType()).getDimSize(dim);
      shape.push_back(size.value_or(ShapedType::kDynamic));
    }
    types.push_back(cast<RankedTensorType>(result.getType()).clone(shape));
  }

  // Heads of a tiled attention all read one KV head: name it.
  auto attention = dyn_cast<CacheAttentionInterface>(op);
  if (attention && !attention.getKvHead()) {
    int64_t heads =
        cast<RankedTensorType>(attention.getQ().getType()).getDimSize(1);
    int64_t group = heads / attention.getCache().getType().getKvHeads();
    std::optional<int64_t> tileHeads = getConstantIntValue(sizes[1]);
    if (!tileHeads || *tileHeads != group)
      return op->emitOpError("must be tiled by the ")
             << group << " heads that share a KV head";
    Value head = getValueOrCreateConstantIndexOp(builder, loc, offsets[1]);
    Value groupSize = arith::ConstantIndexOp::create(builder, loc, group);
    operands.push_back(arith::DivUIOp::create(builder, loc, head, groupSize));
    if (isa<AttentionPartialOp>(op)) {
      if (!isConstantIntValue(sizes[2], 1))
        return op->emitOpError("must be tiled by single splits");
      operands.push_back(
          getValueOrCreateConstantIndexOp(builder, loc, offsets[2]));
    }
  }
  Operation *tiled = mlir::clone(builder, op, types, operands);
  if (auto whole = dyn_cast<AttentionOp>(tiled)) // its KV head is an operand
    whole.getProperties().operandSegmentSizes.back() = 1;
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

/// Of every op that has loops, whatever its class.
struct LoopTiling
    : TilingInterface::ExternalModel<LoopTiling, LoopOpInterface> {
  SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *op) const {
    return LoopNest(op).types;
  }

  SmallVector<Range> getIterationDomain(Operation *op,
                                        OpBuilder &builder) const {
    LoopNest nest(op);
    SmallVector<Range> ranges(nest.types.size());
    // A loop that no operand has is a static dimension of a result.
    SmallVector<Value> values(op->getOperands());
    llvm::append_range(values, op->getResults());
    for (auto [value, map] : llvm::zip(values, nest.maps))
      for (auto [dim, expr] : llvm::enumerate(map.getResults()))
        if (auto loop = dyn_cast<AffineDimExpr>(expr))
          if (!ranges[loop.getPosition()].size)
            ranges[loop.getPosition()] = {
                builder.getIndexAttr(0),
                tensor::getMixedSize(builder, op->getLoc(), value, dim),
                builder.getIndexAttr(1)};
    return ranges;
  }

  FailureOr<TilingResult>
  getTiledImplementation(Operation *op, OpBuilder &builder,
                         ArrayRef<OpFoldResult> offsets,
                         ArrayRef<OpFoldResult> sizes) const {
    return tile(op, builder, offsets, sizes);
  }

  LogicalResult
  getResultTilePosition(Operation *op, OpBuilder &builder, unsigned number,
                        ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes,
                        SmallVector<OpFoldResult> &resultOffsets,
                        SmallVector<OpFoldResult> &resultSizes) const {
    OpResult result = op->getResult(number);
    // All of its rows, of which there are as many as of v: tiling replaces the
    // result itself.
    auto delta = dyn_cast<GatedDeltaOp>(op);
    Value shaped = delta ? delta.getV() : Value(result);
    projectTile(builder, op->getLoc(), shaped, LoopNest(op).resultMap(result),
                offsets, sizes, resultOffsets, resultSizes);
    return success();
  }

  FailureOr<TilingResult>
  generateResultTileValue(Operation *op, OpBuilder &builder, unsigned number,
                          ArrayRef<OpFoldResult> resultOffsets,
                          ArrayRef<OpFoldResult> resultSizes) const {
    SmallVector<Range> domain = getIterationDomain(op, builder);
    SmallVector<OpFoldResult> offsets, sizes;
    for (Range &range : domain) {
      offsets.push_back(range.offset);
      sizes.push_back(range.size);
    }
    LoopNest nest(op);
    for (auto [dim, expr] :
         llvm::enumerate(nest.resultMap(op->getResult(number)).getResults())) {
      auto dimension = dyn_cast<AffineDimExpr>(expr);
      if (!dimension)
        continue;
      unsigned loop = dimension.getPosition();
      // Part of a normalized row is not the row of a part.
      if (nest.types[loop] != utils::IteratorType::parallel &&
          (!isConstantIntValue(resultOffsets[dim], 0) ||
           !isEqualConstantIntOrValue(resultSizes[dim], sizes[loop])))
        return op->emitOpError("kf-tile-kernels: needs dimension ")
               << dim
               << " of its result whole, and the schedule's workgroup tile of "
                  "the kernel splits it; make that entry of workgroup 0";
      offsets[loop] = resultOffsets[dim];
      sizes[loop] = resultSizes[dim];
    }
    return tile(op, builder, offsets, sizes);
  }
};

/// Of kf.route, which is other ops by then but where the target has a kernel
/// for it: rows are independent, and each is whole.
struct RouteLoops : LoopOpInterface::ExternalModel<RouteLoops, RouteOp> {
  SmallVector<utils::IteratorType> getLoopTypes(Operation *) const {
    return {utils::IteratorType::parallel};
  }

  SmallVector<AffineMap> getLoopMaps(Operation *op) const {
    MLIRContext *context = op->getContext();
    AffineExpr row = getAffineDimExpr(0, context),
               whole = getAffineConstantExpr(0, context);
    const AffineMap rows = AffineMap::get(1, 0, {row, whole}, context);
    SmallVector<AffineMap> maps = {rows}; // of the logits
    maps.append(op->getNumOperands() - 1,
                AffineMap::get(1, 0, {whole}, context));
    maps.append(op->getNumResults(), rows);
    return maps;
  }
};

/// A comparison with each of its experts for each logit.
struct RouteWork : WorkOpInterface::ExternalModel<RouteWork, RouteOp> {
  ElementWork getElementWork(Operation *op) const {
    Value logits = cast<RouteOp>(op).getLogits();
    return {logits,
            static_cast<uint64_t>(
                cast<RankedTensorType>(logits.getType()).getDimSize(1))};
  }
};

template <typename... OpTys>
void attachToAll(OpList<OpTys...>, MLIRContext *context) {
  for (TypeID op : {TypeID::get<OpTys>()...})
    RegisteredOperationName::lookup(op, context)->attachInterface<LoopTiling>();
}

} // namespace

bool mlir::kf::isTileable(Operation *op) {
  return isa<LoopOpInterface>(op) || isElementwise(op);
}

void mlir::kf::registerTilingInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KFDialect *,
                            arith::ArithDialect *, math::MathDialect *) {
    RouteOp::attachInterface<RouteLoops, RouteWork>(*context);
    for (RegisteredOperationName name : context->getRegisteredOperations())
      if (name.hasInterface<LoopOpInterface>())
        name.attachInterface<LoopTiling>();
    attachToAll(ElementwiseOps(), context);
  });
}
