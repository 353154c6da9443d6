//===- KernelEmitter.cpp - Function, elements and building blocks ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "kf/Conversion/KernelSupport.h"
#include "kf/Conversion/VectorSchedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/program/abi.h"

using namespace mlir;
using namespace mlir::kf;

/// What an element of a tensor of `element` is in memory.
static Type storedElement(Type element) {
  return element.isInteger(1) || isa<Float8E4M3FNType>(element)
             ? IntegerType::get(element.getContext(), 8)
             : element;
}

/// Where kernel argument or result `type` lies in memory.
static MemRefType storageType(Type type) {
  if (isCache(type)) {
    Type element = getCacheElement(type);
    return MemRefType::get({ShapedType::kDynamic},
                           isa<QuantType>(element)
                               ? IntegerType::get(type.getContext(), 8)
                               : element);
  }
  auto tensor = cast<RankedTensorType>(type);
  LayoutAttr layout = getLayout(tensor);
  auto quant = dyn_cast<QuantType>(tensor.getElementType());
  Type byte = IntegerType::get(type.getContext(), 8);
  if (!layout && !quant) // rank 0 has a place, too
    return MemRefType::get(tensor.getRank() ? tensor.getShape()
                                            : ArrayRef<int64_t>(1),
                           storedElement(tensor.getElementType()));
  SmallVector<int64_t> shape(tensor.getShape());
  const ::kf::BlockFormat *format =
      quant ? &getStorage(quant.getFormat()) : nullptr;
  if (!layout) { // rows of blocks
    shape.back() = shape.back() / format->elements * format->bytes;
    return MemRefType::get(shape, byte);
  }
  int64_t rank = tensor.getRank(), panel = layout.getPanel();
  int64_t groups = rank >= 3 ? shape[0] : 1, experts = rank == 4 ? shape[1] : 1;
  int64_t panels = experts * llvm::divideCeil(shape[rank - 2], panel);
  if (!format)
    return MemRefType::get({panels, groups, shape[rank - 1], panel},
                           storedElement(tensor.getElementType()));
  return MemRefType::get({panels, groups, shape[rank - 1] / format->elements,
                          panel * ::kf::PackedBlock(*format).bytes},
                         byte);
}

LogicalResult KernelEmitter::emit() {
  if (failed(findTile("convert-kf-to-vector")))
    return failure();
  if (!schedule)
    return kernel.emitError(
        "convert-kf-to-vector: needs a #kf.vector schedule; "
        "run kf-select-schedules for a CPU first");
  auto begin = [&] { return kernel.emitError("convert-kf-to-vector: "); };
  if (failed(verifyVectorSchedule(kernel, schedule, begin)))
    return failure();
  if (failed(checkVectorSupport(kernel)) || failed(checkWeight()))
    return failure();
  createFunction();
  emitWorkgroupIndices(function.getArguments().back());
  cloneIndices();

  if (find<ProductOpInterface>())
    emitMatmul();
  else if (find<CacheAttentionInterface>())
    emitAttentionKernel(*this);
  else if (find<AttentionCombineOp>())
    emitCombineKernel(*this);
  else if (find<QuantizeRowsOp>())
    emitQuantizeRowsKernel(*this);
  else if (find<KVAppendOp>())
    emitAppendKernel(*this);
  else if (find<GatedDeltaOp>())
    emitDeltaKernel(*this);
  else if (find<ArgmaxOp>())
    emitArgmaxKernel(*this);
  else if (find<SampleOp>())
    emitSampleKernel(*this);
  else if (find<PackOp>())
    emitPackKernel(*this);
  else if (find<MatmulWgradOp>())
    emitWgradKernel(*this);
  else if (find<ScatterAddOp>())
    emitScatterKernel(*this);
  else
    emitRowKernel(*this);
  if (failed(budget.check(kernel, "convert-kf-to-vector")))
    return failure();

  if (scratchBytes > maxScratchBytes)
    return kernel.emitError("convert-kf-to-vector: a workgroup of this kernel "
                            "needs more than ")
           << maxScratchBytes
           << " bytes of scratch memory; make its rows shorter or its "
              "workgroup tile smaller";
  function->setAttr("kf.scratch_bytes", b.getI64IntegerAttr(scratchBytes));
  b.eraseOp(kernel);
  return success();
}

LogicalResult KernelEmitter::checkWeight() {
  auto op = find<ProductOpInterface>();
  if (!op || getLayout(op.getW().getType()))
    return success();
  return op->emitOpError("convert-kf-to-vector: weight is not packed; run "
                         "kf-set-layouts first");
}

void KernelEmitter::emitMatmul() {
  if (schedule.getDot() == DotKind::BF16)
    return emitTileMatmulKernel(*this);
  Type weight = find<ProductOpInterface>().getW().getType();
  if (isa<QuantType>(cast<RankedTensorType>(weight).getElementType()))
    return emitBlockMatmulKernel(*this);
  return emitMatmulKernel(*this);
}

void KernelEmitter::createFunction() {
  SmallVector<Type> types;
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                            kernel.getResultTypes()))
    types.push_back(storageType(type));
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
  for (unsigned result = 0; result < kernel.getNumResults(); ++result) {
    if (!kernel.getResultAttr(result, kUpdatesAttrName))
      function.setArgAttr(next, "llvm.noalias", b.getUnitAttr());
    resultMemrefs.push_back(entry->getArgument(next++));
  }
  scalars = entry->getArgument(next++);
  function.setArgAttr(next, "llvm.noalias", b.getUnitAttr());
  scratchBase = entry->getArgument(next++);
}

void KernelEmitter::emitWorkgroupIndices(Value workgroup) {
  GridAttr grid = kernel.getGridAttr();
  Value rest = workgroup;
  for (int64_t dim = grid.getTokens().size() - 1; dim >= 0; --dim) {
    Value position = rest;
    if (dim > 0) {
      Value count;
      if (int64_t divisor = grid.getTokens()[dim]) {
        count = ceilDiv(loadSize(grid.getSize()), divisor);
      } else {
        count = index(grid.getCounts()[dim]);
      }
      position = arith::RemUIOp::create(b, loc, rest, count);
      rest = arith::DivUIOp::create(b, loc, rest, count);
    }
    setWorkgroup(dim, position);
  }
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

Value KernelEmitter::sourceOf(Value tensor, SmallVectorImpl<Value> &offsets) {
  auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || !slice.hasUnitStride() || slice.getDroppedDims().any()) {
    offsets.assign(cast<RankedTensorType>(tensor.getType()).getRank(),
                   index(0));
    return tensor;
  }
  Value source = sourceOf(slice.getSource(), offsets);
  for (auto [offset, more] : llvm::zip(offsets, slice.getMixedOffsets()))
    offset = add(offset, index(more));
  return source;
}

Value KernelEmitter::sourceMemref(Value tensor,
                                  SmallVectorImpl<Value> &offsets) {
  auto argument = dyn_cast<BlockArgument>(sourceOf(tensor, offsets));
  return argument ? memrefOf(argument) : Value();
}

Value KernelEmitter::loadScalar(unsigned slot) {
  return arith::IndexCastOp::create(
      b, loc, b.getIndexType(),
      memref::LoadOp::create(b, loc, scalars, index(slot)));
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

KernelEmitter::LoadFn KernelEmitter::argumentLoad(BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  auto quant = dyn_cast<QuantType>(type.getElementType());
  return [=, this](ValueRange indices, unsigned width, Value mask) {
    if (quant)
      return loadBlocks(argument, getStorage(quant.getFormat()), indices, width,
                        mask);
    return loadStored(type.getElementType(), memrefOf(argument), indices, width,
                      mask);
  };
}

Value KernelEmitter::loadStored(Type element, Value memref, ValueRange indices,
                                unsigned width, Value mask) {
  Value first = indices.empty() ? index(0) : Value();
  Value value =
      loadMemref(memref, first ? ValueRange(first) : indices, width, mask);
  if (isa<Float8E4M3FNType>(element))
    return widenFloat8(value);
  if (!element.isInteger(1))
    return value;
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
}

Value KernelEmitter::loadList(DenseElementsAttr list, Value linear,
                              unsigned width, Value mask) {
  Type element = list.getElementType();
  Type stored = storedElement(element);
  int64_t count = list.getNumElements();
  DenseElementsAttr values =
      list.reshape(RankedTensorType::get({count}, element));
  if (stored != element) {
    SmallVector<int8_t> bytes;
    for (APInt bit : list.getValues<APInt>())
      bytes.push_back(static_cast<int8_t>(bit.getZExtValue()));
    values = DenseElementsAttr::get(RankedTensorType::get({count}, stored),
                                    ArrayRef<int8_t>(bytes));
  }
  Value memref = constant(function.getName() + "_list", values);
  return loadStored(element, memref, linear, width, mask);
}

Value KernelEmitter::constant(const Twine &name, DenseElementsAttr values) {
  auto module = function->getParentOfType<ModuleOp>();
  auto type =
      MemRefType::get(values.getType().getShape(), values.getElementType());
  std::string unique = name.str();
  for (unsigned next = 0;; ++next) {
    Operation *found = module.lookupSymbol(unique);
    if (!found) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(function);
      memref::GlobalOp::create(b, loc, unique, b.getStringAttr("private"), type,
                               values, /*constant=*/true, IntegerAttr());
      break;
    }
    auto global = dyn_cast<memref::GlobalOp>(found);
    if (global && global.getConstant() && global.getType() == type &&
        global.getInitialValueAttr() == values)
      break;
    unique = (name + "_" + Twine(next)).str();
  }
  return memref::GetGlobalOp::create(b, loc, type, unique);
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
  if (computeType(element) == element)
    return value;
  Type wide = width ? Type(vectorType(width)) : Type(b.getF32Type());
  return arith::ExtFOp::create(b, loc, wide, value);
}

void KernelEmitter::store(Value values, Value memref, ValueRange indices,
                          Value mask) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  auto type = dyn_cast<VectorType>(values.getType());
  Type from = getElementTypeOrSelf(values), to = values.getType();
  if (from != element)
    to = type ? Type(type.clone(element)) : element;
  if (from != element && from.isInteger(1))
    values = arith::ExtUIOp::create(b, loc, to, values);
  else if (from != element)
    values = arith::TruncFOp::create(b, loc, to, values);
  if (!type)
    memref::StoreOp::create(b, loc, values, memref, indices);
  else if (mask)
    vector::MaskedStoreOp::create(b, loc, memref, indices, mask, values);
  else
    vector::StoreOp::create(b, loc, values, memref, indices);
}

void KernelEmitter::storeResult(Value values, ValueRange indices, Value mask,
                                unsigned number) {
  SmallVector<Value> position;
  for (auto [offset, local] : llvm::zip(tileOffsets(number), indices))
    position.push_back(add(offset, local));
  if (position.empty())
    position.push_back(index(0));
  store(values, resultMemrefs[number], position, mask);
}

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

Value KernelEmitter::scratch(ArrayRef<int64_t> shape, Type element) {
  if (!element)
    element = b.getF32Type();
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  for (int64_t extent : shape)
    if (llvm::MulOverflow(bytes, extent, bytes) || bytes > maxScratchBytes)
      bytes = maxScratchBytes + 1;
  int64_t offset = scratchBytes;
  scratchBytes = llvm::alignTo(offset + bytes, KF_BUFFER_ALIGNMENT);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  return memref::ViewOp::create(b, loc, MemRefType::get(shape, element),
                                scratchBase, index(offset), ValueRange());
}

Value KernelEmitter::laneNumbers() {
  auto numbers = llvm::to_vector(llvm::seq<int32_t>(0, lanes));
  return arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(vectorType(lanes, b.getI32Type()),
                             ArrayRef<int32_t>(numbers)));
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
    Value whole =
        mul(arith::DivUIOp::create(b, loc, size, index(lanes)), index(lanes));
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

Value KernelEmitter::reduceRow(Value size, vector::CombiningKind kind,
                               function_ref<Value(Value, unsigned)> body) {
  return reducePieces(size, kind, body, Value());
}

Value KernelEmitter::reducePieces(Value size, vector::CombiningKind kind,
                                  function_ref<Value(Value, unsigned)> body,
                                  Value neutral) {
  auto combine = [&](Value lhs, Value rhs) {
    return vector::makeArithReduction(b, loc, kind, lhs, rhs);
  };
  auto reduce = [&](Value values) -> Value {
    return vector::ReductionOp::create(b, loc, kind, values,
                                       arith::FastMathFlags::reassoc);
  };
  int64_t extent = *getConstantIntValue(size), whole = extent / lanes * lanes;
  if (!neutral)
    neutral = f32(kind == vector::CombiningKind::ADD
                      ? 0.0
                      : -std::numeric_limits<double>::infinity());
  Value sum;
  int64_t at = 0;
  // Each combination waits for the last one with the same sum: long rows have
  // several.
  for (int64_t count : {4, 1}) {
    const int64_t step = count * lanes, end = whole - (whole - at) % step;
    if (end - at < (count > 1 ? 2 * step : step))
      continue;
    SmallVector<Value> first(count, splat(neutral, lanes));
    if (sum)
      first[0] = sum;
    SmallVector<Value> sums(
        loop(index(at), index(end), index(step), first,
             [&](Value iv, ValueRange args) {
               SmallVector<Value> next;
               for (auto [number, arg] : llvm::enumerate(args))
                 next.push_back(
                     combine(arg, body(add(iv, index(number * lanes)), lanes)));
               return next;
             })
            .getResults());
    sum = sums[0];
    for (Value other : ArrayRef(sums).drop_front())
      sum = combine(sum, other);
    at = end;
  }
  Value result = sum ? reduce(sum) : neutral;
  for (unsigned width : tailWidths(extent - whole)) {
    result = combine(result, reduce(body(index(whole), width)));
    whole += width;
  }
  return result;
}
