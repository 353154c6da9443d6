//===- TileEmitter.cpp - Elements of a tiled kernel's values --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileEmitter.h"

#include "runtime/program/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/ScopedHashTable.h"

#include <numbers>

using namespace mlir;
using namespace mlir::kf;

class TileEmitter::ComputedTable
    : public llvm::ScopedHashTable<
          std::tuple<Value, SmallVector<Value>, unsigned, Value>, Value> {};

/// A region of code; a scope of the table during a call of `load`.
struct TileEmitter::CodeRegion {
  explicit CodeRegion(ComputedTable &computed) {
    if (computed.getCurScope())
      scope.emplace(computed);
  }
  std::optional<ComputedTable::ScopeTy> scope;
};

TileEmitter::TileEmitter(KernelOp kernel, RewriterBase &rewriter,
                         CodeBudget &budget)
    : kernel(kernel), b(rewriter), loc(kernel.getLoc()), budget(budget),
      computed(std::make_unique<ComputedTable>()) {
  budget.beginKernel();
}

TileEmitter::~TileEmitter() = default;

SmallVector<Value> mlir::kf::indicesAt(ValueRange row, Value column) {
  SmallVector<Value> indices(row);
  indices.push_back(column);
  return indices;
}

Value mlir::kf::constantLike(TileEmitter &emitter, Value x, double value) {
  Value scalar = emitter.f32(value);
  auto type = dyn_cast<VectorType>(x.getType());
  return type ? emitter.splat(scalar, type.getNumElements()) : scalar;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// Whether the kernel has a workgroup for each tile of its loop. Those of a
/// cluster, which share a tile, are the grid's last dimension.
static bool isGridOfLoop(KernelOp kernel, scf::ForallOp forall) {
  ScheduleAttrInterface schedule = kernel.getScheduleAttr();
  const int64_t parts = schedule ? schedule.getParts() : 1;
  ArrayRef<int64_t> tokens = kernel.getGrid()->getTokens(),
                    counts = kernel.getGrid()->getCounts();
  const auto dims = static_cast<size_t>(forall.getRank());
  if (counts.size() != dims + (parts > 1))
    return false;
  for (size_t dim = 0; dim < dims; ++dim) {
    auto lower = getConstantIntValue(forall.getMixedLowerBound()[dim]),
         upper = getConstantIntValue(forall.getMixedUpperBound()[dim]),
         step = getConstantIntValue(forall.getMixedStep()[dim]);
    if (lower != 0 || !step || *step <= 0)
      return false;
    if (!upper && tokens[dim] != *step)
      return false;
    if (upper && (*upper < 0 || tokens[dim] != 0 ||
                  counts[dim] != llvm::divideCeilSigned(*upper, *step)))
      return false;
  }
  return parts == 1 || (tokens.back() == 0 && counts.back() == parts);
}

LogicalResult TileEmitter::findTile(StringRef pass) {
  auto loops = kernel.getBody().getOps<scf::ForallOp>();
  if (!kernel.getGrid() || loops.empty())
    return kernel.emitError(pass)
           << ": kernel is not tiled; run kf-tile-kernels first";
  forall = *loops.begin();
  if (!isGridOfLoop(kernel, forall))
    return kernel.emitError(pass)
           << ": the grid of a tiled kernel has the loop's dimensions, with a "
              "workgroup for each tile, and one of the schedule's parts where "
              "there are several";
  bool isWhole =
      llvm::equal(kernel.getYield().getOperands(), forall.getResults());
  for (unsigned number = 0; number < kernel.getNumResults(); ++number)
    isWhole &= static_cast<bool>(tileResult(number));
  if (!isWhole)
    return kernel.emitError(pass)
           << ": the loop of a tiled kernel makes its results, in their order";
  return success();
}

void TileEmitter::setWorkgroup(unsigned dim, Value position) {
  indexMap.map(forall.getInductionVar(dim),
               mul(position, index(forall.getMixedStep()[dim])));
}

void TileEmitter::cloneIndices() {
  for (Block *block : {&kernel.getBody().front(), forall.getBody()})
    for (Operation &op : *block) {
      if (op.getNumResults() != 1 || !op.getResult(0).getType().isIndex())
        continue;
      if (auto dim = dyn_cast<tensor::DimOp>(op)) {
        indexMap.map(dim.getResult(), sizesOf(dim.getSource())[0]);
        continue;
      }
      b.clone(op, indexMap);
    }
}

Value TileEmitter::loadSize(StringAttr name) {
  FailureOr<unsigned> slot = getSizeSlot(kernel, name);
  assert(succeeded(slot) && "checked with the kernel");
  return loadScalar(*slot);
}

/// The insertion of the tile into result number `number` of the kernel.
static tensor::ParallelInsertSliceOp findInsertion(scf::ForallOp forall,
                                                   unsigned number) {
  if (number < forall.getRegionIterArgs().size())
    for (Operation *user : forall.getRegionIterArgs()[number].getUsers())
      if (auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(user))
        return insert;
  return nullptr;
}

Value TileEmitter::tileResult(unsigned number) {
  auto insert = findInsertion(forall, number);
  return insert ? insert.getSource() : Value();
}

SmallVector<Value> TileEmitter::tileOffsets(unsigned number) {
  SmallVector<Value> offsets;
  for (OpFoldResult offset : findInsertion(forall, number).getMixedOffsets())
    offsets.push_back(index(offset));
  return offsets;
}

SmallVector<Value> TileEmitter::sizesOf(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<Value> sizes;
  for (int64_t extent : type.getShape())
    sizes.push_back(ShapedType::isDynamic(extent) ? Value() : index(extent));
  if (type.hasStaticShape())
    return sizes;
  if (isa<BlockArgument>(tensor)) {
    sizes[0] = loadSize(getSizeName(type));
    return sizes;
  }
  if (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>()) {
    for (auto [size, mixed] : llvm::zip(sizes, slice.getMixedSizes()))
      if (!size)
        size = index(mixed);
    return sizes;
  }
  Operation *op = tensor.getDefiningOp();
  // Behind the first dimension all are static.
  if (isa<TransposeOp, BroadcastOp, tensor::ConcatOp>(op)) {
    for (Value operand : op->getOperands())
      if (cast<RankedTensorType>(operand.getType()).getRank() == type.getRank())
        if (Value size = sizesOf(operand)[0];
            size && !getConstantIntValue(size))
          sizes[0] = size;
    if (!sizes[0])
      sizes[0] = loadSize(getSizeName(type));
    return sizes;
  }
  auto loops = dyn_cast<LoopOpInterface>(op);
  if (!loops) {
    // Elementwise ops and reshapes keep their first operand's.
    SmallVector<Value> source = sizesOf(op->getOperand(0));
    // Of one batch, its rows are those of the matrix.
    if (isa<tensor::CollapseShapeOp>(op) && source.size() > sizes.size() &&
        getConstantIntValue(source[0]) == 1)
      source.erase(source.begin());
    for (auto [dim, size] : llvm::enumerate(sizes))
      if (!size)
        size = source[dim];
    return sizes;
  }
  // A dimension is as long as the operand's that the same loop slices.
  SmallVector<AffineMap> maps = loops.getLoopMaps();
  AffineMap own =
      maps[op->getNumOperands() + cast<OpResult>(tensor).getResultNumber()];
  for (auto [size, expr] : llvm::zip(sizes, own.getResults()))
    for (auto [operand, map] : llvm::zip(op->getOperands(), maps))
      if (std::optional<unsigned> dim = map.getResultPosition(expr);
          dim && !size)
        size = sizesOf(operand)[*dim];
  // A loop that no operand has is one of the tile.
  auto insertion = findInsertion(forall, 0);
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (!size && insertion && insertion.getSource() == tensor)
      size = index(insertion.getMixedSizes()[dim]);
  return sizes;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

bool TileEmitter::isLoadable(Value tensor) {
  // Every value once, whatever the number of ways to it.
  SetVector<Value> values;
  values.insert(tensor);
  for (size_t next = 0; next < values.size(); ++next) {
    if (defined.contains(values[next]))
      continue;
    Operation *op = values[next].getDefiningOp();
    if (!op || !(isElementwise(op) || isView(op) || isElementLoop(op) ||
                 isa<EmbeddingOp, tensor::CastOp>(op)))
      return false;
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        values.insert(operand);
  }
  return true;
}

Value TileEmitter::load(Value tensor, ValueRange indices, unsigned width,
                        Value mask) {
  std::optional<ComputedTable::ScopeTy> outermost;
  if (!computed->getCurScope())
    outermost.emplace(*computed);
  if (budget.isSpent())
    return zeros(tensor, width);
  if (auto it = defined.find(tensor); it != defined.end()) {
    LoadFn fn = it->second;
    return fn(indices, width, mask);
  }
  const std::tuple key(tensor, SmallVector<Value>(indices), width, mask);
  if (Value known = computed->lookup(key))
    return known;
  Value result = loadProducer(tensor.getDefiningOp(), indices, width, mask);
  computed->insert(key, result);
  return result;
}

Value TileEmitter::zeros(Value tensor, unsigned width) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  return arith::ConstantOp::create(
      b, loc, b.getZeroAttr(typeOfWidth(width, computeType(element))));
}

/// Indices into the source of a reshape from indices into its result.
SmallVector<Value> TileEmitter::reshapeIndices(Operation *op,
                                               ValueRange indices) {
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    SmallVector<Value> source;
    auto shape = cast<RankedTensorType>(expand.getType()).getShape();
    for (ArrayRef<int64_t> group : expand.getReassociationIndices()) {
      Value linear = indices[group.front()];
      for (int64_t dim : group.drop_front())
        linear = add(mul(linear, index(shape[dim])), indices[dim]);
      source.push_back(linear);
    }
    return source;
  }
  auto collapse = cast<tensor::CollapseShapeOp>(op);
  auto shape = cast<RankedTensorType>(collapse.getSrc().getType()).getShape();
  SmallVector<Value> source(shape.size());
  if (indices.empty()) // the one element of a tensor of rank 0
    source.assign(shape.size(), index(0));
  for (auto [group, linear] :
       llvm::zip(collapse.getReassociationIndices(), indices)) {
    Value rest = linear;
    for (int64_t dim : llvm::reverse(ArrayRef(group).drop_front())) {
      Value extent = index(shape[dim]);
      source[dim] = arith::RemUIOp::create(b, loc, rest, extent);
      rest = arith::DivUIOp::create(b, loc, rest, extent);
    }
    source[group.front()] = rest;
  }
  return source;
}

Value TileEmitter::loadProducer(Operation *op, ValueRange indices,
                                unsigned width, Value mask) {
  if (isView(op) || isa<tensor::CastOp>(op))
    return loadView(op, indices, width, mask);
  if (auto activation = dyn_cast<ActivationOp>(op))
    return activate(activation.getKind(),
                    load(activation.getX(), indices, width, mask));
  if (auto embedding = dyn_cast<EmbeddingOp>(op)) {
    Value id = arith::IndexCastOp::create(
        b, loc, b.getIndexType(), load(embedding.getIds(), indices[0], 0));
    Value inside = isLess(id, sizesOf(embedding.getTable())[0]);
    Value safe = select(inside, id, index(0));
    Value row = load(embedding.getTable(), {safe, indices[1]}, width, mask);
    return select(inside, row, constantLike(*this, row, 0.0));
  }
  if (isElementLoop(op)) {
    assert(width == 0 && "loops compute one element");
    if (auto reduce = dyn_cast<ReduceOp>(op))
      return loadReduce(reduce, indices);
    if (auto product = dyn_cast<ExpertMatmulOp>(op))
      return loadExpertProduct(product, indices);
    if (auto product = dyn_cast<MatmulWgradOp>(op))
      return loadSumOfProducts(product, indices);
    if (auto scatter = dyn_cast<ScatterAddOp>(op))
      return loadSumOfRows(scatter, indices);
    return loadProduct(cast<BatchMatmulOp>(op), indices);
  }
  assert(isElementwise(op) && "asked for elements of a value without them");
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(load(operand, indices, width, mask));
  return compute(op, operands, width);
}

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

Value TileEmitter::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value TileEmitter::index(OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return index(*constant);
  return indexMap.lookupOrDefault(cast<Value>(value));
}

Value TileEmitter::f32(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

Value TileEmitter::add(Value lhs, Value rhs) {
  if (!lhs.getType().isIndex())
    return arith::AddFOp::create(b, loc, lhs, rhs);
  std::optional<int64_t> left = getConstantIntValue(lhs),
                         right = getConstantIntValue(rhs);
  if (left && right)
    return index(*left + *right);
  if (left && *left == 0)
    return rhs;
  if (right && *right == 0)
    return lhs;
  return arith::AddIOp::create(b, loc, lhs, rhs);
}

Value TileEmitter::sub(Value lhs, Value rhs) {
  if (!lhs.getType().isIndex())
    return arith::SubFOp::create(b, loc, lhs, rhs);
  return arith::SubIOp::create(b, loc, lhs, rhs);
}

Value TileEmitter::mul(Value lhs, Value rhs) {
  if (!lhs.getType().isIndex())
    return arith::MulFOp::create(b, loc, lhs, rhs);
  std::optional<int64_t> left = getConstantIntValue(lhs),
                         right = getConstantIntValue(rhs);
  if (left && right)
    return index(*left * *right);
  if (left && *left == 1)
    return rhs;
  if (right && *right == 1)
    return lhs;
  return arith::MulIOp::create(b, loc, lhs, rhs);
}

Value TileEmitter::ceilDiv(Value lhs, int64_t rhs) {
  if (std::optional<int64_t> constant = getConstantIntValue(lhs))
    return index(llvm::divideCeil(*constant, rhs));
  return arith::DivUIOp::create(b, loc, add(lhs, index(rhs - 1)), index(rhs));
}

Value TileEmitter::isLess(Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, lhs, rhs);
}

Value TileEmitter::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(b, loc, condition, yes, no);
}

Value TileEmitter::splat(Value scalar, unsigned width) {
  if (width == 0)
    return scalar;
  return vector::BroadcastOp::create(
      b, loc, vectorType(width, scalar.getType()), scalar);
}

Type TileEmitter::typeOfWidth(unsigned width, Type element) {
  return width ? Type(vectorType(width, element)) : element;
}

Type TileEmitter::computeType(Type element) {
  bool isNarrow = isa<QuantType, Float8E4M3FNType>(element) ||
                  element.isF16() || element.isBF16();
  return isNarrow ? b.getF32Type() : element;
}

VectorType TileEmitter::vectorType(unsigned width, Type element) {
  return VectorType::get({static_cast<int64_t>(width)},
                         element ? element : b.getF32Type());
}

scf::ForOp
TileEmitter::loop(Value lower, Value upper, Value step, ValueRange inits,
                  function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  return scf::ForOp::create(
      b, loc, lower, upper, step, inits,
      [&](OpBuilder &builder, Location, Value iv, ValueRange args) {
        // `b` and `builder` share the insertion point of the loop's body.
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(builder.saveInsertionPoint());
        CodeRegion region(*computed);
        SmallVector<Value> results = body(iv, args);
        scf::YieldOp::create(b, loc, results);
      });
}

void TileEmitter::loop(Value upper, function_ref<void(Value)> body) {
  if (getConstantIntValue(upper) == 1)
    return body(index(0));
  loop(index(0), upper, index(1), {}, [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>();
  });
}

void TileEmitter::forRows(ArrayRef<Value> sizes,
                          function_ref<void(ValueRange)> body,
                          function_ref<void(Value)> enter,
                          SmallVector<Value> row) {
  if (row.size() == sizes.size())
    return body(row);
  loop(sizes[row.size()], [&](Value iv) {
    SmallVector<Value> next(row);
    next.push_back(iv);
    if (enter && next.size() == 1)
      enter(iv);
    forRows(sizes, body, enter, next);
  });
}

void TileEmitter::ifThen(Value condition, function_ref<void()> body) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&op.getThenRegion().front());
  CodeRegion region(*computed);
  body();
}

Value TileEmitter::ifElse(Value condition, function_ref<Value()> yes,
                          function_ref<Value()> no) {
  // The branches are built first: their values say what the type is.
  OpBuilder::InsertionGuard guard(b);
  auto build = [&](Region &code, function_ref<Value()> branch) {
    b.createBlock(&code);
    CodeRegion region(*computed);
    Value value = branch();
    scf::YieldOp::create(b, loc, value);
    return value.getType();
  };
  Region yesRegion, noRegion;
  OpBuilder::InsertPoint here = b.saveInsertionPoint();
  Type type = build(yesRegion, yes);
  [[maybe_unused]] Type other = build(noRegion, no);
  assert(type == other && "both branches give the same");
  b.restoreInsertionPoint(here);
  auto op = scf::IfOp::create(b, loc, TypeRange{type}, condition, false, false);
  op.getThenRegion().takeBody(yesRegion);
  op.getElseRegion().takeBody(noRegion);
  return op.getResult(0);
}

Value TileEmitter::softcap(Value x, double cap) {
  auto number = [&](double value) { return constantLike(*this, x, value); };
  Value tanh = math::TanhOp::create(b, loc, mul(x, number(1 / cap)));
  return mul(tanh, number(cap));
}

Value TileEmitter::activate(ActivationKind kind, Value x) {
  auto number = [&](double value) { return constantLike(*this, x, value); };
  switch (kind) {
  case ActivationKind::Identity:
    return x;
  case ActivationKind::Silu: {
    Value negative = arith::NegFOp::create(b, loc, x);
    Value exp = math::ExpOp::create(b, loc, negative);
    return arith::DivFOp::create(b, loc, x, add(number(1.0), exp));
  }
  case ActivationKind::Gelu: {
    Value scaled = mul(x, number(1.0 / std::numbers::sqrt2));
    Value erf = math::ErfOp::create(b, loc, scaled);
    return mul(mul(x, number(0.5)), add(number(1.0), erf));
  }
  case ActivationKind::GeluTanh: {
    // x * (1 + tanh(u)) / 2 = x / (1 + exp(-2u))
    Value cube = mul(mul(x, x), x);
    Value inner = add(x, mul(number(0.044715), cube));
    Value doubled =
        mul(number(-2.0 * std::sqrt(2.0 / std::numbers::pi)), inner);
    Value exp = math::ExpOp::create(b, loc, doubled);
    return arith::DivFOp::create(b, loc, x, add(number(1.0), exp));
  }
  case ActivationKind::Relu:
    return arith::MaximumFOp::create(b, loc, x, number(0.0));
  }
  llvm_unreachable("every activation is emitted above");
}
