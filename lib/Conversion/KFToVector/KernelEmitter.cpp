//===- KernelEmitter.cpp - Function, elements and building blocks ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi.h"

using namespace mlir;
using namespace mlir::kf;

/// Where kernel argument or result `type` lies in memory.
static MemRefType storageType(Type type) {
  if (auto cache = dyn_cast<KVCacheType>(type))
    return MemRefType::get({ShapedType::kDynamic}, cache.getType());
  auto tensor = cast<RankedTensorType>(type);
  LayoutAttr layout = getLayout(tensor);
  if (!layout)
    return MemRefType::get(tensor.getShape(), tensor.getElementType());
  int64_t rank = tensor.getRank();
  int64_t groups = rank == 3 ? tensor.getDimSize(0) : 1;
  int64_t panels =
      llvm::divideCeil(tensor.getDimSize(rank - 2), layout.getPanel());
  return MemRefType::get({panels, groups, tensor.getDimSize(rank - 1),
                          layout.getPanel()},
                         tensor.getElementType());
}

KernelEmitter::KernelEmitter(KernelOp kernel, RewriterBase &rewriter)
    : kernel(kernel), schedule(kernel.getScheduleAttr()),
      lanes(schedule ? schedule.getVector() : 1), b(rewriter),
      loc(kernel.getLoc()) {}

LogicalResult KernelEmitter::emit() {
  auto loops = kernel.getBody().getOps<scf::ForallOp>();
  if (!kernel.getGrid() || loops.empty())
    return kernel.emitError(
        "convert-kf-to-vector: kernel is not tiled; run kf-tile-kernels first");
  forall = *loops.begin();
  if (failed(createFunction()))
    return failure();
  emitPrologue();

  LogicalResult emitted = success();
  if (find<MatmulOp>())
    emitted = emitMatmulKernel(*this);
  else if (find<AttentionOp>())
    emitted = emitAttentionKernel(*this);
  else if (find<KVAppendOp>())
    emitted = emitAppendKernel(*this);
  else if (find<ArgmaxOp>())
    emitted = emitArgmaxKernel(*this);
  else if (find<PackOp>())
    emitted = emitPackKernel(*this);
  else
    emitted = emitRowKernel(*this);
  if (failed(emitted))
    return failure();

  function->setAttr("kf.scratch_bytes", b.getI64IntegerAttr(scratchBytes));
  b.eraseOp(kernel);
  return success();
}

LogicalResult KernelEmitter::createFunction() {
  SmallVector<Type> types;
  auto isQuantized = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && isa<QuantType>(tensor.getElementType());
  };
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                            kernel.getResultTypes())) {
    if (isQuantized(type))
      return kernel.emitError("convert-kf-to-vector: no vector code for ")
             << type << " yet; --device=reference computes it";
    types.push_back(storageType(type));
  }
  types.push_back(MemRefType::get({KF_SCALAR_COUNT}, b.getI64Type()));
  types.push_back(MemRefType::get({ShapedType::kDynamic}, b.getI8Type()));
  types.push_back(b.getIndexType());

  b.setInsertionPoint(kernel);
  function = func::FuncOp::create(b, loc, kernel.getSymName(),
                                  b.getFunctionType(types, {}));
  function->setAttr("kf.grid", kernel.getGridAttr());
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  func::ReturnOp::create(b, loc);
  b.setInsertionPointToStart(entry);

  unsigned next = 0;
  for (BlockArgument argument : kernel.getArguments()) {
    memrefs[argument] = entry->getArgument(next++);
    if (isa<RankedTensorType>(argument.getType()))
      define(argument, argumentLoad(argument));
  }
  if (kernel.getNumResults() == 1) {
    function.setArgAttr(next, "llvm.noalias", b.getUnitAttr());
    resultMemref = entry->getArgument(next++);
  }
  scalars = entry->getArgument(next++);
  function.setArgAttr(next, "llvm.noalias", b.getUnitAttr());
  scratchBase = entry->getArgument(next++);
  return success();
}

void KernelEmitter::emitPrologue() {
  Value workgroup = function.getArguments().back();
  emitWorkgroupIndices(workgroup);
  // Index arithmetic of the kernel, in and around the loop, is cloned.
  auto cloneIndices = [&](Block &block) {
    for (Operation &op : block) {
      if (op.getNumResults() != 1 || !op.getResult(0).getType().isIndex())
        continue;
      if (auto dim = dyn_cast<tensor::DimOp>(op)) {
        indexMap.map(dim.getResult(), sizesOf(dim.getSource())[0]);
        continue;
      }
      b.clone(op, indexMap);
    }
  };
  cloneIndices(kernel.getBody().front());
  cloneIndices(*forall.getBody());
}

void KernelEmitter::emitWorkgroupIndices(Value workgroup) {
  GridAttr grid = kernel.getGridAttr();
  SmallVector<OpFoldResult> steps = forall.getMixedStep();
  Value rest = workgroup;
  for (int64_t dim = grid.getTokens().size() - 1; dim >= 0; --dim) {
    Value position = rest;
    if (dim > 0) {
      Value count;
      if (int64_t divisor = grid.getTokens()[dim]) {
        Value rows = arith::IndexCastOp::create(
            b, loc, b.getIndexType(),
            memref::LoadOp::create(b, loc, scalars,
                                   index(KF_SCALAR_N_TOKENS)));
        count = ceilDiv(rows, divisor);
      } else {
        count = index(grid.getCounts()[dim]);
      }
      position = arith::RemUIOp::create(b, loc, rest, count);
      rest = arith::DivUIOp::create(b, loc, rest, count);
    }
    indexMap.map(forall.getInductionVar(dim),
                 mul(position, index(steps[dim])));
  }
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// The insertion of the tile into the kernel's result.
static tensor::ParallelInsertSliceOp findInsertion(scf::ForallOp forall) {
  auto inserts = forall.getTerminator()
                     .getBody()
                     ->getOps<tensor::ParallelInsertSliceOp>();
  return inserts.empty() ? tensor::ParallelInsertSliceOp() : *inserts.begin();
}

Value KernelEmitter::tileResult() {
  auto insert = findInsertion(forall);
  return insert ? insert.getSource() : Value();
}

SmallVector<Value> KernelEmitter::tileOffsets() {
  SmallVector<Value> offsets;
  for (OpFoldResult offset : findInsertion(forall).getMixedOffsets())
    offsets.push_back(index(offset));
  return offsets;
}

SmallVector<Value> KernelEmitter::sizesOf(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<Value> sizes;
  for (int64_t extent : type.getShape())
    sizes.push_back(ShapedType::isDynamic(extent) ? Value() : index(extent));
  if (type.hasStaticShape())
    return sizes;
  if (isa<BlockArgument>(tensor)) {
    sizes[0] = arith::IndexCastOp::create(
        b, loc, b.getIndexType(),
        memref::LoadOp::create(b, loc, scalars, index(KF_SCALAR_N_TOKENS)));
    return sizes;
  }
  if (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>()) {
    for (auto [size, mixed] : llvm::zip(sizes, slice.getMixedSizes()))
      if (!size)
        size = index(mixed);
    return sizes;
  }
  Operation *op = tensor.getDefiningOp();
  auto loops = dyn_cast<LoopOpInterface>(op);
  if (!loops) {
    // Elementwise ops and reshapes keep their first operand's.
    SmallVector<Value> source = sizesOf(op->getOperand(0));
    for (auto [dim, size] : llvm::enumerate(sizes))
      if (!size)
        size = source[dim];
    return sizes;
  }
  // A dimension is as long as the operand's that the same loop slices.
  SmallVector<AffineMap> maps = loops.getLoopMaps();
  for (auto [size, expr] : llvm::zip(sizes, maps.back().getResults()))
    for (auto [operand, map] : llvm::zip(op->getOperands(), maps))
      if (std::optional<unsigned> dim = map.getResultPosition(expr);
          dim && !size)
        size = sizesOf(operand)[*dim];
  return sizes;
}

Value KernelEmitter::sourceMemref(Value tensor,
                                  SmallVectorImpl<Value> &offsets) {
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    offsets.assign(cast<RankedTensorType>(tensor.getType()).getRank(),
                   index(0));
    return memrefOf(argument);
  }
  auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice)
    return Value();
  Value memref = sourceMemref(slice.getSource(), offsets);
  if (memref)
    for (auto [offset, more] : llvm::zip(offsets, slice.getMixedOffsets()))
      offset = add(offset, index(more));
  return memref;
}

Value KernelEmitter::capacity() {
  return arith::IndexCastOp::create(
      b, loc, b.getIndexType(),
      memref::LoadOp::create(b, loc, scalars,
                             index(KF_SCALAR_CACHE_CAPACITY)));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

KernelEmitter::LoadFn KernelEmitter::argumentLoad(BlockArgument argument) {
  return [this, argument](ValueRange indices, unsigned width, Value mask) {
    return loadMemref(memrefOf(argument), indices, width, mask);
  };
}

/// Elementwise ops of kf, arith and math.
static bool isElementwise(Operation *op) {
  return isa<ActivationOp>(op) || OpTrait::hasElementwiseMappableTraits(op);
}

bool KernelEmitter::isLoadable(Value tensor) {
  if (defined.contains(tensor))
    return true;
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return false;
  if (isa<arith::ConstantOp>(op))
    return true;
  if (isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp,
          tensor::CollapseShapeOp>(op))
    return isLoadable(op->getOperand(0));
  if (isElementwise(op) || isa<EmbeddingOp>(op))
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return isLoadable(operand); });
  return false;
}

Value KernelEmitter::load(Value tensor, ValueRange indices, unsigned width,
                          Value mask) {
  if (auto it = defined.find(tensor); it != defined.end()) {
    LoadFn fn = it->second;
    return fn(indices, width, mask);
  }
  return loadProducer(tensor.getDefiningOp(), indices, width, mask);
}

/// Indices into the source of a reshape from indices into its result.
static SmallVector<Value> reshapeIndices(KernelEmitter &e, Operation *op,
                                         ValueRange indices) {
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    SmallVector<Value> source;
    auto shape = cast<RankedTensorType>(expand.getType()).getShape();
    for (ArrayRef<int64_t> group : expand.getReassociationIndices()) {
      Value linear = indices[group.front()];
      for (int64_t dim : group.drop_front())
        linear = e.add(e.mul(linear, e.index(shape[dim])), indices[dim]);
      source.push_back(linear);
    }
    return source;
  }
  auto collapse = cast<tensor::CollapseShapeOp>(op);
  auto shape = cast<RankedTensorType>(collapse.getSrc().getType()).getShape();
  SmallVector<Value> source(shape.size());
  for (auto [group, linear] :
       llvm::zip(collapse.getReassociationIndices(), indices)) {
    Value rest = linear;
    for (int64_t dim : llvm::reverse(ArrayRef(group).drop_front())) {
      Value extent = e.index(shape[dim]);
      source[dim] = arith::RemUIOp::create(e.b, e.loc, rest, extent);
      rest = arith::DivUIOp::create(e.b, e.loc, rest, extent);
    }
    source[group.front()] = rest;
  }
  return source;
}

Value KernelEmitter::loadProducer(Operation *op, ValueRange indices,
                                  unsigned width, Value mask) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splatValue = cast<DenseElementsAttr>(constant.getValue());
    Value scalar = f32(splatValue.getSplatValue<APFloat>().convertToDouble());
    return width ? splat(scalar, width) : scalar;
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    SmallVector<Value> source;
    for (auto [position, offset] : llvm::zip(indices, slice.getMixedOffsets()))
      source.push_back(add(position, index(offset)));
    return load(slice.getSource(), source, width, mask);
  }
  if (isa<tensor::CollapseShapeOp>(op) && width > 1 && !mask) {
    // A vector must not cross rows of the source.
    auto shape = cast<RankedTensorType>(op->getOperand(0).getType()).getShape();
    if (shape.back() % width != 0) {
      Value result = splat(f32(0.0), width);
      for (unsigned lane = 0; lane < width; ++lane) {
        SmallVector<Value> one(indices);
        one.back() = add(one.back(), index(lane));
        Value element =
            load(op->getOperand(0), reshapeIndices(*this, op, one), 0);
        result = vector::InsertOp::create(b, loc, element, result, lane);
      }
      return result;
    }
  }
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return load(op->getOperand(0), reshapeIndices(*this, op, indices), width,
                mask);
  if (auto activation = dyn_cast<ActivationOp>(op))
    return activate(activation.getKind(),
                    load(activation.getX(), indices, width, mask));
  if (auto embedding = dyn_cast<EmbeddingOp>(op)) {
    Value id = arith::IndexCastOp::create(
        b, loc, b.getIndexType(),
        [&] {
          SmallVector<Value> offsets;
          Value ids = sourceMemref(embedding.getIds(), offsets);
          return memref::LoadOp::create(b, loc, ids,
                                        add(offsets[0], indices[0]))
              .getResult();
        }());
    Value rows = sizesOf(embedding.getTable())[0];
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, id,
                                         rows);
    Value safe = arith::SelectOp::create(b, loc, inside, id, index(0));
    Value row = load(embedding.getTable(), {safe, indices[1]}, width, mask);
    Value zero = width ? splat(f32(0.0), width) : f32(0.0);
    return arith::SelectOp::create(b, loc, inside, row, zero);
  }
  // Elementwise arith and math ops work on vectors as on tensors.
  assert(isElementwise(op) && "asked for elements of a value without them");
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(load(operand, indices, width, mask));
  OperationState state(loc, op->getName(), operands,
                       {operands.front().getType()}, op->getAttrs());
  return b.create(state)->getResult(0);
}

Value KernelEmitter::loadMemref(Value memref, ValueRange indices,
                                unsigned width, Value mask) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  Value value;
  if (width == 0) {
    value = memref::LoadOp::create(b, loc, memref, indices);
  } else if (mask) {
    VectorType type = vectorType(width, element);
    value = vector::MaskedLoadOp::create(
        b, loc, type, memref, indices, mask,
        arith::ConstantOp::create(b, loc, b.getZeroAttr(type)));
  } else {
    value = vector::LoadOp::create(b, loc, vectorType(width, element), memref,
                                   indices);
  }
  if (element.isF32() || !isa<FloatType>(element))
    return value;
  Type wide = width ? Type(vectorType(width)) : Type(b.getF32Type());
  return arith::ExtFOp::create(b, loc, wide, value);
}

void KernelEmitter::store(Value values, Value memref, ValueRange indices,
                          Value mask) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  auto type = dyn_cast<VectorType>(values.getType());
  if (!element.isF32() && isa<FloatType>(element))
    values = arith::TruncFOp::create(
        b, loc, type ? Type(type.clone(element)) : element, values);
  if (!type)
    memref::StoreOp::create(b, loc, values, memref, indices);
  else if (mask)
    vector::MaskedStoreOp::create(b, loc, memref, indices, mask, values);
  else
    vector::StoreOp::create(b, loc, values, memref, indices);
}

void KernelEmitter::storeResult(Value values, ValueRange indices, Value mask) {
  SmallVector<Value> position;
  for (auto [offset, local] : llvm::zip(tileOffsets(), indices))
    position.push_back(add(offset, local));
  store(values, resultMemref, position, mask);
}

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

Value KernelEmitter::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value KernelEmitter::index(OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return index(*constant);
  return indexMap.lookupOrDefault(cast<Value>(value));
}

Value KernelEmitter::f32(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

/// `op` on index or float values, folding what is constant.
Value KernelEmitter::add(Value lhs, Value rhs) {
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

Value KernelEmitter::sub(Value lhs, Value rhs) {
  if (!lhs.getType().isIndex())
    return arith::SubFOp::create(b, loc, lhs, rhs);
  return arith::SubIOp::create(b, loc, lhs, rhs);
}

Value KernelEmitter::mul(Value lhs, Value rhs) {
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

Value KernelEmitter::ceilDiv(Value lhs, int64_t rhs) {
  if (std::optional<int64_t> constant = getConstantIntValue(lhs))
    return index(llvm::divideCeil(*constant, rhs));
  return arith::DivUIOp::create(b, loc, add(lhs, index(rhs - 1)), index(rhs));
}

Value KernelEmitter::splat(Value scalar, unsigned width) {
  return vector::BroadcastOp::create(b, loc,
                                     vectorType(width, scalar.getType()), scalar);
}

VectorType KernelEmitter::vectorType(unsigned width, Type element) {
  return VectorType::get({static_cast<int64_t>(width)},
                         element ? element : b.getF32Type());
}

Value KernelEmitter::scratch(ArrayRef<int64_t> shape, Type element) {
  if (!element)
    element = b.getF32Type();
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  for (int64_t extent : shape)
    bytes *= extent;
  int64_t offset = scratchBytes;
  scratchBytes = llvm::alignTo(offset + bytes, KF_BUFFER_ALIGNMENT);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  return memref::ViewOp::create(b, loc, MemRefType::get(shape, element),
                                scratchBase, index(offset), ValueRange());
}

scf::ForOp KernelEmitter::loop(
    Value lower, Value upper, Value step, ValueRange inits,
    function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  return scf::ForOp::create(
      b, loc, lower, upper, step, inits,
      [&](OpBuilder &builder, Location, Value iv, ValueRange args) {
        // `b` and `builder` share the insertion point of the loop's body.
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(builder.saveInsertionPoint());
        SmallVector<Value> results = body(iv, args);
        scf::YieldOp::create(b, loc, results);
      });
}

void KernelEmitter::loop(Value upper, function_ref<void(Value)> body) {
  if (getConstantIntValue(upper) == 1)
    return body(index(0));
  loop(index(0), upper, index(1), {}, [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>();
  });
}

void KernelEmitter::ifThen(Value condition, function_ref<void()> body) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&op.getThenRegion().front());
  body();
}

/// Pieces that cover the last `rest` (< lanes) elements.
static SmallVector<unsigned> tailWidths(int64_t rest) {
  SmallVector<unsigned> widths;
  for (unsigned width = 64; width > 0; width /= 2)
    if (rest & width)
      widths.push_back(width);
  return widths;
}

void KernelEmitter::forPieces(Value size,
                              function_ref<void(Value, unsigned)> body) {
  std::optional<int64_t> extent = getConstantIntValue(size);
  auto vectors = [&](Value end) {
    loop(index(0), end, index(lanes), {}, [&](Value iv, ValueRange) {
      body(iv, lanes);
      return SmallVector<Value>();
    });
  };
  if (!extent) {
    Value whole = mul(arith::DivUIOp::create(b, loc, size, index(lanes)),
                      index(lanes));
    vectors(whole);
    loop(whole, size, index(1), {}, [&](Value iv, ValueRange) {
      body(iv, 1);
      return SmallVector<Value>();
    });
    return;
  }
  int64_t whole = *extent / lanes * lanes;
  if (whole == static_cast<int64_t>(lanes))
    body(index(0), lanes);
  else if (whole > 0)
    vectors(index(whole));
  for (unsigned width : tailWidths(*extent - whole)) {
    body(index(whole), width);
    whole += width;
  }
}

void KernelEmitter::forPiecesStatic(
    int64_t size, function_ref<void(int64_t, unsigned)> body) {
  int64_t whole = 0;
  for (; whole + static_cast<int64_t>(lanes) <= size; whole += lanes)
    body(whole, lanes);
  for (unsigned width : tailWidths(size - whole)) {
    body(whole, width);
    whole += width;
  }
}

Value KernelEmitter::reducePieces(Value size, bool maximum,
                                  function_ref<Value(Value, unsigned)> body) {
  auto kind =
      maximum ? vector::CombiningKind::MAXIMUMF : vector::CombiningKind::ADD;
  auto combine = [&](Value lhs, Value rhs) -> Value {
    if (maximum)
      return arith::MaximumFOp::create(b, loc, lhs, rhs);
    return arith::AddFOp::create(b, loc, lhs, rhs);
  };
  auto reduce = [&](Value values) -> Value {
    return vector::ReductionOp::create(b, loc, kind, values,
                                       arith::FastMathFlags::reassoc);
  };
  int64_t extent = *getConstantIntValue(size), whole = extent / lanes * lanes;
  Value neutral =
      f32(maximum ? -std::numeric_limits<double>::infinity() : 0.0);
  Value result = neutral;
  if (whole > 0) {
    auto sums = loop(index(0), index(whole), index(lanes),
                     splat(neutral, lanes), [&](Value iv, ValueRange args) {
                       return SmallVector<Value>{
                           combine(args[0], body(iv, lanes))};
                     });
    result = reduce(sums.getResult(0));
  }
  for (unsigned width : tailWidths(extent - whole)) {
    result = combine(result, reduce(body(index(whole), width)));
    whole += width;
  }
  return result;
}
