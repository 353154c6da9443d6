//===- ViewEmitter.cpp - Elements of views, and loops for one element -----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A view's elements are its source's at other indices. A vector of them is one
// of the source's where both go along the last dimension, else it is put
// together lane by lane.
//
//===----------------------------------------------------------------------===//

#include "RowFormulas.h"
#include "TileEmitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

Value TileEmitter::loadLanes(Type element, ValueRange indices, unsigned width,
                             Value mask, function_ref<Value(ValueRange)> load) {
  VectorType type = vectorType(width, computeType(element));
  Value result = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  for (unsigned lane = 0; lane < width; ++lane) {
    SmallVector<Value> one(indices);
    one.back() = add(one.back(), index(lane));
    if (mask)
      one.back() = select(vector::ExtractOp::create(b, loc, mask, lane),
                          one.back(), index(0));
    result = vector::InsertOp::create(b, loc, load(one), result, lane);
  }
  return result;
}

Value TileEmitter::loadView(Operation *op, ValueRange indices, unsigned width,
                            Value mask) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return loadConstant(constant, indices, width, mask);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return loadSlice(slice, indices, width, mask);
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return loadTranspose(transpose, indices, width, mask);
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return loadBroadcast(broadcast, indices, width, mask);
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return loadConcat(concat, indices, width, mask);
  if (auto iota = dyn_cast<IotaOp>(op))
    return loadIota(iota, indices, width);
  Value source = op->getOperand(0);
  if (isa<tensor::CastOp>(op))
    return load(source, indices, width, mask);
  RankedTensorType type = typeOf(source);
  // A vector must not cross rows of the source.
  bool crosses = isa<tensor::CollapseShapeOp>(op) && width > 1 &&
                 type.getRank() > 0 && type.getShape().back() % width != 0;
  // Nor does one have columns that only rank 0 lacks.
  if (crosses)
    return loadLanes(type.getElementType(), indices, width, mask,
                     [&](ValueRange one) {
                       return load(source, reshapeIndices(op, one), 0);
                     });
  return load(source, reshapeIndices(op, indices), width, mask);
}

Value TileEmitter::loadSlice(tensor::ExtractSliceOp op, ValueRange indices,
                             unsigned width, Value mask) {
  llvm::SmallBitVector dropped = op.getDroppedDims();
  auto sourceIndices = [&](ValueRange at) {
    SmallVector<Value> source;
    size_t next = 0;
    for (int64_t dim = 0; dim < op.getSourceType().getRank(); ++dim) {
      Value offset = index(op.getMixedOffsets()[dim]);
      if (dropped.test(dim)) {
        source.push_back(offset);
        continue;
      }
      Value position = mul(at[next++], index(op.getMixedStrides()[dim]));
      source.push_back(add(position, offset));
    }
    return source;
  };
  int64_t last = op.getSourceType().getRank() - 1;
  bool isRow =
      width == 0 || (last >= 0 && !dropped.test(last) &&
                     isConstantIntValue(op.getMixedStrides()[last], 1));
  if (isRow)
    return load(op.getSource(), sourceIndices(indices), width, mask);
  return loadLanes(op.getSourceType().getElementType(), indices, width, mask,
                   [&](ValueRange one) {
                     return load(op.getSource(), sourceIndices(one), 0);
                   });
}

Value TileEmitter::loadTranspose(TransposeOp op, ValueRange indices,
                                 unsigned width, Value mask) {
  ArrayRef<int64_t> permutation = op.getPermutation();
  auto sourceIndices = [&](ValueRange at) {
    SmallVector<Value> source(at.size());
    for (auto [number, dim] : llvm::enumerate(permutation))
      source[dim] = at[number];
    return source;
  };
  int64_t last = static_cast<int64_t>(permutation.size()) - 1;
  if (width == 0 || permutation.empty() || permutation.back() == last)
    return load(op.getX(), sourceIndices(indices), width, mask);
  return loadLanes(
      typeOf(op.getX()).getElementType(), indices, width, mask,
      [&](ValueRange one) { return load(op.getX(), sourceIndices(one), 0); });
}

Value TileEmitter::loadBroadcast(BroadcastOp op, ValueRange indices,
                                 unsigned width, Value mask) {
  RankedTensorType type = typeOf(op.getX());
  ValueRange own = indices.take_back(type.getRank());
  SmallVector<Value> source;
  for (auto [extent, position] : llvm::zip_equal(type.getShape(), own))
    source.push_back(extent == 1 ? index(0) : position);
  bool isRepeated = type.getRank() == 0 || type.getShape().back() == 1;
  if (width == 0 || !isRepeated)
    return load(op.getX(), source, width, mask);
  return splat(load(op.getX(), source, 0), width);
}

/// All parts are read, at an index that they have, and one is chosen.
Value TileEmitter::loadConcat(tensor::ConcatOp op, ValueRange indices,
                              unsigned width, Value mask) {
  int64_t dim = static_cast<int64_t>(op.getDim());
  if (width > 0 && dim + 1 == op.getType().getRank())
    return loadLanes(
        op.getType().getElementType(), indices, width, mask,
        [&](ValueRange one) { return loadConcat(op, one, 0, Value()); });
  Value result;
  int64_t end = 0;
  for (Value part : op.getInputs()) {
    int64_t extent = typeOf(part).getDimSize(dim), begin = end;
    end += extent;
    SmallVector<Value> own(indices);
    // Too small ones wrap around and are too large.
    Value inside = sub(indices[dim], index(begin));
    Value last = index(extent - 1);
    own[dim] = select(isLess(inside, index(extent)), inside, last);
    Value value = load(part, own, width, mask);
    result = result ? select(isLess(indices[dim], index(begin)), result, value)
                    : value;
  }
  return result;
}

Value TileEmitter::loadIota(IotaOp op, ValueRange indices, unsigned width) {
  int64_t dim = static_cast<int64_t>(op.getDim());
  Type element = op.getType().getElementType();
  Value first = arith::IndexCastOp::create(b, loc, element, indices[dim]);
  if (width == 0)
    return first;
  Value all = splat(first, width);
  if (dim + 1 != op.getType().getRank())
    return all;
  SmallVector<Attribute> lanes;
  for (unsigned lane = 0; lane < width; ++lane)
    lanes.push_back(b.getIntegerAttr(element, lane));
  Value steps = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(vectorType(width, element), lanes));
  return arith::AddIOp::create(b, loc, all, steps);
}

/// A value of `element`, computed in its computeType().
static TypedAttr constantOf(TileEmitter &e, Attribute value, Type element) {
  auto number = dyn_cast<FloatAttr>(value);
  if (!number)
    return cast<TypedAttr>(value);
  return e.b.getFloatAttr(e.computeType(element), number.getValueAsDouble());
}

Value TileEmitter::loadConstant(arith::ConstantOp op, ValueRange indices,
                                unsigned width, Value mask) {
  auto data = cast<DenseElementsAttr>(op.getValue());
  Type element = data.getElementType();
  if (data.isSplat()) {
    Value scalar = arith::ConstantOp::create(
        b, loc, constantOf(*this, data.getSplatValue<Attribute>(), element));
    return width ? splat(scalar, width) : scalar;
  }
  Value linear = index(0);
  for (auto [position, extent] :
       llvm::zip(indices, cast<RankedTensorType>(data.getType()).getShape()))
    linear = add(mul(linear, index(extent)), position);
  return loadList(data, linear, width, mask);
}

Value TileEmitter::loadList(DenseElementsAttr list, Value linear,
                            unsigned width, Value mask) {
  Type element = list.getElementType();
  auto choose = [&](ValueRange at) {
    Value result;
    for (auto [number, value] : llvm::enumerate(list.getValues<Attribute>())) {
      Value constant =
          arith::ConstantOp::create(b, loc, constantOf(*this, value, element));
      result = result ? select(isLess(at[0], index(number)), result, constant)
                      : constant;
    }
    return result;
  };
  if (width == 0)
    return choose(linear);
  return loadLanes(element, linear, width, mask, choose);
}

//===----------------------------------------------------------------------===//
// Loops for one element
//===----------------------------------------------------------------------===//

TypedAttr mlir::kf::neutralOf(ReduceKind kind, Type element) {
  OpBuilder b(element.getContext());
  if (auto floats = dyn_cast<FloatType>(element)) {
    const auto &semantics = floats.getFloatSemantics();
    if (kind == ReduceKind::Max || kind == ReduceKind::Min)
      return FloatAttr::get(
          floats, APFloat::getInf(semantics, kind == ReduceKind::Max));
    return b.getFloatAttr(floats, kind == ReduceKind::Prod ? 1.0 : 0.0);
  }
  unsigned bits = element.getIntOrFloatBitWidth();
  APInt value(bits, kind == ReduceKind::Prod ? 1 : 0);
  // Of i1, max is "or" and min is "and".
  if (kind == ReduceKind::Max && bits > 1)
    value = APInt::getSignedMinValue(bits);
  if (kind == ReduceKind::Min)
    value = bits > 1 ? APInt::getSignedMaxValue(bits) : APInt(1, 1);
  return IntegerAttr::get(element, value);
}

Value mlir::kf::combine(TileEmitter &e, ReduceKind kind, Value lhs, Value rhs) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  Type element = getElementTypeOrSelf(lhs);
  bool isFloat = isa<FloatType>(element), isBit = element.isInteger(1);
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Mean:
    return isFloat ? arith::AddFOp::create(b, loc, lhs, rhs).getResult()
                   : arith::AddIOp::create(b, loc, lhs, rhs).getResult();
  case ReduceKind::Prod:
    return isFloat ? arith::MulFOp::create(b, loc, lhs, rhs).getResult()
                   : arith::MulIOp::create(b, loc, lhs, rhs).getResult();
  case ReduceKind::Max:
    return isFloat ? arith::MaximumFOp::create(b, loc, lhs, rhs).getResult()
           : isBit ? arith::OrIOp::create(b, loc, lhs, rhs).getResult()
                   : arith::MaxSIOp::create(b, loc, lhs, rhs).getResult();
  case ReduceKind::Min:
    return isFloat ? arith::MinimumFOp::create(b, loc, lhs, rhs).getResult()
           : isBit ? arith::AndIOp::create(b, loc, lhs, rhs).getResult()
                   : arith::MinSIOp::create(b, loc, lhs, rhs).getResult();
  }
  llvm_unreachable("every reduction is combined above");
}

/// What `body` makes of `init` in `size` steps, one after another.
static Value accumulate(TileEmitter &e, Value size, Value init,
                        function_ref<Value(Value, Value)> body) {
  auto loop = e.loop(e.index(0), size, e.index(1), init,
                     [&](Value iv, ValueRange args) {
                       return SmallVector<Value>{body(iv, args[0])};
                     });
  return loop.getResult(0);
}

Value TileEmitter::loadReduce(ReduceOp op, ValueRange indices) {
  RankedTensorType type = typeOf(op.getX());
  Type element = computeType(type.getElementType());
  SmallVector<Value> position(type.getRank()), sizes = sizesOf(op.getX());
  size_t next = 0;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    bool isReduced = op.isReduced(dim);
    if (!isReduced)
      position[dim] = indices[next];
    next += !isReduced || op.getKeepDims();
  }
  ArrayRef<int64_t> dims = op.getDims();
  std::function<Value(size_t, Value)> nest = [&](size_t number, Value sum) {
    if (number == dims.size())
      return combine(*this, op.getKind(), sum, load(op.getX(), position, 0));
    return accumulate(*this, sizes[dims[number]], sum,
                      [&](Value iv, Value arg) {
                        position[dims[number]] = iv;
                        return nest(number + 1, arg);
                      });
  };
  Value result = nest(
      0, arith::ConstantOp::create(b, loc, neutralOf(op.getKind(), element)));
  if (op.getKind() == ReduceKind::Mean)
    result = arith::DivFOp::create(b, loc, result, countReduced(op));
  return result;
}

Value TileEmitter::countReduced(ReduceOp op) {
  RankedTensorType type = typeOf(op.getX());
  Type element = computeType(type.getElementType());
  int64_t known = 1;
  Value rows; // where they are a size of the step
  for (int64_t dim : op.getDims())
    if (type.isDynamicDim(dim))
      rows = sizesOf(op.getX())[dim];
    else
      known *= type.getDimSize(dim);
  Value count = arith::ConstantOp::create(
      b, loc, b.getFloatAttr(element, static_cast<double>(known)));
  if (!rows)
    return count;
  rows = arith::IndexCastOp::create(b, loc, b.getI32Type(), rows);
  return mul(count, arith::SIToFPOp::create(b, loc, element, rows));
}

Value TileEmitter::loadExpertProduct(ExpertMatmulOp op, ValueRange indices) {
  Value expert = nearestExpert(*this, op, indices[0], indices[1]);
  SmallVector<Value> row(indices.take_front(op.hasRowForEach() ? 2 : 1));
  Value size = sizesOf(op.getX()).back();
  SmallVector<Value> sums;
  for (int64_t group = 0; group < (op.getGlu() ? 2 : 1); ++group)
    sums.push_back(accumulate(*this, size, f32(0.0), [&](Value k, Value sum) {
      Value w = load(op.getW(), {index(group), expert, indices[2], k}, 0);
      return add(sum, mul(load(op.getX(), indicesAt(row, k), 0), w));
    }));
  return finishProduct(*this, op, sums, indices[2], /*width=*/0, Value(),
                       expert);
}

Value TileEmitter::loadProduct(BatchMatmulOp op, ValueRange indices) {
  SmallVector<Value> left(indices), right(indices);
  right.erase(right.end() - 2);
  right.push_back(Value());
  Value size = sizesOf(op.getX()).back();
  return accumulate(*this, size, f32(0.0), [&](Value k, Value sum) {
    left.back() = k;
    right.back() = k;
    return add(sum, mul(load(op.getX(), left, 0), load(op.getW(), right, 0)));
  });
}

Value TileEmitter::loadSumOfProducts(MatmulWgradOp op, ValueRange indices) {
  return accumulate(
      *this, sizesOf(op.getX())[0], f32(0.0), [&](Value m, Value sum) {
        Value left = load(op.getDy(), {m, indices[0]}, 0);
        return add(sum, mul(left, load(op.getX(), {m, indices[1]}, 0)));
      });
}

Value TileEmitter::loadSumOfRows(ScatterAddOp op, ValueRange indices) {
  Value own = add(tileOffsets()[0], indices[0]);
  return accumulate(
      *this, sizesOf(op.getRows())[0], f32(0.0), [&](Value t, Value sum) {
        Value id = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                              load(op.getIds(), t, 0));
        Value isOwn =
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, id, own);
        Value more = load(op.getRows(), {t, indices[1]}, 0);
        return add(sum, select(isOwn, more, f32(0.0)));
      });
}
