//===- GPUEmitter.cpp - Function, buffers and threads ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPUEmitter.h"

#include "Products/CoopRows.h"
#include "Rows/RoutedRows.h"

#include "kf/Conversion/KernelSupport.h"
#include "runtime/program/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

/// The least magnitude that rounds to an infinity of f16.
static constexpr double leastOutlier = 65520;

LogicalResult GPUEmitter::emit() {
  if (failed(findTile("convert-kf-to-gpu")))
    return failure();
  FailureOr<KernelShape> found = getKernelShape(kernel);
  if (failed(found))
    return failure();
  shape = *found;
  if (failed(checkGpuSupport(kernel, machine, /*rows=*/1)))
    return failure();
  createFunction();
  emitThreadIds();
  Operation *ids = b.getInsertionPoint()->getPrevNode();
  cloneIndices();
  for (auto op : forall.getBody()->getOps<RopeOp>())
    if (isLoadable(op.getX()))
      defineRope(op);
  for (auto op : forall.getBody()->getOps<AttentionCombineOp>())
    if (llvm::all_of(op->getOperands(),
                     [&](Value part) { return isLoadable(part); }))
      defineCombine(op);

  if (find<MatmulOp>() || shape.mma || shape.stream || shape.lanes)
    emitGPUMatmul(*this);
  else if (find<CacheAttentionInterface>())
    emitGPUAttention(*this);
  else if (find<BatchAttentionInterface>())
    emitGPUBatchAttention(*this);
  else if (find<KVAppendOp>())
    emitGPUAppend(*this);
  else if (find<GatedDeltaOp>())
    emitGPUDelta(*this);
  else if (find<ArgmaxOp>())
    emitGPUArgmax(*this);
  else if (find<SampleOp>())
    emitGPUSample(*this);
  else if (find<QuantizeRowsOp>())
    emitGPUQuantizeRows(*this);
  else if (find<RouteOp>())
    emitGPURoute(*this);
  else if (isGPURotation(*this, find<RopeOp>()))
    emitGPURotation(*this, find<RopeOp>());
  else
    emitGPURows(*this);
  if (failed(budget.check(kernel, "convert-kf-to-gpu")))
    return failure();
  b.setInsertionPointAfter(ids);
  waitForInputs();
  b.eraseOp(kernel);
  return success();
}

/// The elements of the flat memref of a tensor or cache.
static Type storedElement(Type type) {
  Type element =
      isCache(type) ? getCacheElement(type) : getElementTypeOrSelf(type);
  if (element.isBF16())
    return IntegerType::get(type.getContext(), 16);
  if (element.isInteger(1) || isa<QuantType, Float8E4M3FNType>(element))
    return IntegerType::get(type.getContext(), 8);
  return element;
}

void GPUEmitter::createFunction() {
  SmallVector<Type> types;
  std::optional<CoopRows> rows;
  if (shape.coop)
    rows = findCoopRows(find<MatmulOp>());
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                            kernel.getResultTypes())) {
    Type element = storedElement(type);
    // Threads read vectors of 16 bytes.
    if (((shape.lanes || shape.stagesSpans || shape.coop) &&
         hasFragments(type)) ||
        (rows && types.size() == rows->argument.getArgNumber()) ||
        (shape.flashCoop && isCache(type)))
      element = VectorType::get({4}, b.getI32Type());
    // See loadWords.
    if (element.isInteger(64) && find<SampleOp>())
      element = b.getI32Type();
    types.push_back(MemRefType::get({ShapedType::kDynamic}, element));
  }
  types.push_back(MemRefType::get({ShapedType::kDynamic}, b.getI32Type()));

  b.setInsertionPoint(kernel);
  auto module = gpu::GPUModuleOp::create(b, loc, kernel.getSymName());
  b.setInsertionPointToStart(module.getBody());
  function = gpu::GPUFuncOp::create(b, loc, kernel.getSymName(),
                                    b.getFunctionType(types, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function.setKnownBlockSize(
      SmallVector<int32_t>(shape.threads.begin(), shape.threads.end()));
  function->setAttr("kf.grid", kernel.getGridAttr());
  if (shape.coop)
    function->setAttr(
        kMatrixTypeAttrName,
        TypeAttr::get(find<MatmulOp>().getX().getType().getElementType()));
  if (shape.flashCoop) {
    KVCacheType cache = find<CacheAttentionInterface>().getCache().getType();
    function->setAttr(kMatrixTypeAttrName,
                      TypeAttr::get(getCoopUnit(cache) == MatrixUnit::CoopBF16
                                        ? Type(b.getBF16Type())
                                        : b.getF16Type()));
  }
  Block *entry = &function.getBody().front();
  b.setInsertionPointToStart(entry);
  gpu::ReturnOp::create(b, loc);
  b.setInsertionPointToStart(entry);

  ArrayRef<BlockArgument> arguments = entry->getArguments();
  for (auto [argument, buffer] : llvm::zip(kernel.getArguments(), arguments)) {
    buffers[argument] = buffer;
    if (isa<RankedTensorType>(argument.getType()))
      define(argument, argumentLoad(argument));
  }
  llvm::append_range(results, arguments.slice(kernel.getNumArguments(),
                                              kernel.getNumResults()));
  scalars = arguments.back();
}

GPUEmitter::LoadFn GPUEmitter::argumentLoad(BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  if (hasFragments(type))
    return [=, this](ValueRange indices, unsigned, Value) {
      return loadFragments(argument, indices);
    };
  if (auto quant = dyn_cast<QuantType>(type.getElementType()))
    return [=, this](ValueRange indices, unsigned, Value) {
      return loadBlocks(argument, getStorage(quant.getFormat()), indices);
    };
  return [=, this](ValueRange indices, unsigned, Value) {
    return loadBuffer(bufferOf(argument), linearIndex(indices, type.getShape()),
                      type.getElementType());
  };
}

void GPUEmitter::emitThreadIds() {
  constexpr gpu::Dimension dims[] = {gpu::Dimension::x, gpu::Dimension::y,
                                     gpu::Dimension::z};
  Value ids[3];
  for (int dim = 0; dim < 3; ++dim)
    ids[dim] = shape.threads[dim] == 1
                   ? index(0)
                   : gpu::ThreadIdOp::create(b, loc, dims[dim]).getResult();
  threadX = ids[0];
  threadY = ids[1];
  thread =
      add(threadX, mul(index(shape.threads[0]),
                       add(threadY, mul(index(shape.threads[1]), ids[2]))));
  SmallVector<Value> groups;
  for (unsigned dim = 0; dim < kernel.getGridAttr().getTokens().size(); ++dim)
    groups.push_back(gpu::BlockIdOp::create(b, loc, dims[dim]));
  if ((shape.flashCoop || (shape.flashMma && shape.flashMma->isStaged)) &&
      !groups.empty())
    beginWithLast(groups);
  // The last queries of attention that is causal see the most keys.
  if (find<ScaledDotProductAttentionOp>() || find<AttentionQgradOp>()) {
    Value last =
        sub(gpu::GridDimOp::create(b, loc, dims[groups.size() - 1]), index(1));
    groups.back() = sub(last, groups.back());
  }
  if (const int64_t parts = kernel.getScheduleAttr().getParts(); parts > 1) {
    part = groups.pop_back_val();
    formCluster(groups.size(), parts);
  }
  for (auto [dim, group] : llvm::enumerate(groups))
    setWorkgroup(dim, group);
}

/// Makes clusters of `size` workgroups along dimension `dim` of the grid.
void GPUEmitter::formCluster(unsigned dim, int64_t size) {
  SmallVector<int32_t> sizes(3, 1);
  sizes[dim] = static_cast<int32_t>(size);
  function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                    b.getDenseI32ArrayAttr(sizes));
}

/// Workgroups begin in the order of their numbers: the last tokens come first,
/// of all heads, for they have the most keys, and the least are left for the
/// end.
void GPUEmitter::beginWithLast(SmallVector<Value> &groups) {
  Value tiles = gpu::GridDimOp::create(b, loc, gpu::Dimension::x);
  Value number = groups[0];
  if (groups.size() == 2) {
    Value heads = gpu::GridDimOp::create(b, loc, gpu::Dimension::y);
    Value all = add(number, mul(groups[1], tiles));
    number = arith::DivUIOp::create(b, loc, all, heads);
    groups[1] = arith::RemUIOp::create(b, loc, all, heads);
  }
  groups[0] = sub(sub(tiles, index(1)), number);
}

/// Row-major.
Value GPUEmitter::linearIndex(ValueRange indices, ArrayRef<int64_t> shape) {
  if (indices.empty())
    return index(0);
  Value linear = indices.front();
  for (auto [position, extent] :
       llvm::zip(indices.drop_front(), shape.drop_front()))
    linear = add(mul(linear, index(extent)), position);
  return linear;
}

Value GPUEmitter::loadScalar(unsigned slot) {
  // The low word of an int64.
  Value word = memref::LoadOp::create(b, loc, scalars, index(2 * slot));
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), word);
}

void GPUEmitter::storeResult(Value value, ValueRange indices, unsigned number) {
  Type element =
      cast<RankedTensorType>(kernel.getResultTypes()[number]).getElementType();
  Value place = placeOfResult(indices, number);
  storeBuffer(value, results[number], place, element);
  if (roundHalfResult())
    keepOutlier(value, place);
}

/// Pairs are rounded to 16 bits by one instruction each. LLVM joins stores that
/// it knows to be aligned.
void GPUEmitter::storeResults(ArrayRef<Value> values, ValueRange indices) {
  const Type element =
      cast<RankedTensorType>(kernel.getResultTypes()[0]).getElementType();
  Value place = placeOfResult(indices, 0);
  SmallVector<Value> places;
  for (size_t i = 0; i < values.size(); ++i)
    places.push_back(add(place, index(static_cast<int64_t>(i))));
  if ((element.isBF16() || element.isF16()) && values.size() % 2 == 0) {
    for (size_t i = 0; i < values.size(); i += 2) {
      Value both = vector::FromElementsOp::create(
          b, loc, VectorType::get({2}, b.getF32Type()),
          ValueRange(values.slice(i, 2)));
      Value pair =
          arith::TruncFOp::create(b, loc, VectorType::get({2}, element), both);
      if (element != narrowType(element)) // its bits
        pair = vector::BitCastOp::create(
            b, loc, VectorType::get({2}, narrowType(element)), pair);
      for (size_t k = 0; k < 2; ++k)
        memref::StoreOp::create(
            b, loc,
            vector::ExtractOp::create(b, loc, pair, static_cast<int64_t>(k)),
            results[0], places[i + k]);
    }
  } else {
    for (auto [value, at] : llvm::zip_equal(values, places))
      storeBuffer(value, results[0], at, element);
  }
  if (!roundHalfResult())
    return;
  if (values.size() == 1)
    return keepOutlier(values[0], place);
  Value largest;
  for (Value value : values) {
    Value magnitude = math::AbsFOp::create(b, loc, value);
    largest = largest ? arith::MaxNumFOp::create(b, loc, largest, magnitude)
                      : magnitude;
  }
  Value isAny = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE,
                                      largest, f32(leastOutlier));
  ifThen(isAny, [&] {
    for (auto [value, at] : llvm::zip_equal(values, places))
      keepOutlier(value, at);
  });
}

Value GPUEmitter::placeOfResult(ValueRange indices, unsigned number) {
  SmallVector<Value> position;
  for (auto [offset, local] : llvm::zip(tileOffsets(number), indices))
    position.push_back(add(offset, local));
  auto type = cast<RankedTensorType>(kernel.getResultTypes()[number]);
  return linearIndex(position, type.getShape());
}

/// Stores what f16 cannot hold to the second result of kf.round_half.
void GPUEmitter::keepOutlier(Value value, Value place) {
  Value isOutlier = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE,
                                          math::AbsFOp::create(b, loc, value),
                                          f32(leastOutlier));
  ifThen(isOutlier,
         [&] { storeBuffer(value, results[1], place, b.getF32Type()); });
}

/// The op whose rounding storeResult() does; null: there is none.
RoundHalfOp GPUEmitter::roundHalfResult() {
  Value result = tileResult();
  return result ? result.getDefiningOp<RoundHalfOp>() : RoundHalfOp();
}

Value GPUEmitter::unroundedResult() {
  Value result = tileResult();
  Operation *rounding = result ? result.getDefiningOp() : nullptr;
  return isRounding(rounding) ? rounding->getOperand(0) : result;
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Value GPUEmitter::div(Value x, int64_t by) {
  return arith::DivUIOp::create(b, loc, x, index(by));
}

Value GPUEmitter::rem(Value x, int64_t by) {
  return arith::RemUIOp::create(b, loc, x, index(by));
}

Value GPUEmitter::word(int64_t value) {
  return arith::ConstantOp::create(
      b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value GPUEmitter::masked(Value bits, int64_t mask) {
  return arith::AndIOp::create(b, loc, bits, word(mask));
}

Value GPUEmitter::shifted(Value bits, int64_t right) {
  if (right == 0)
    return bits;
  if (right < 0)
    return arith::ShLIOp::create(b, loc, bits, word(-right));
  return arith::ShRUIOp::create(b, loc, bits, word(right));
}

void GPUEmitter::useAllRegisters(int64_t workgroups) {
  if (machine.sharesRegisters)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      b.getI32IntegerAttr(workgroups));
}

void GPUEmitter::waitForInputs() {
  if (std::exchange(hasWaited, true) || !shape.beginsEarly ||
      !machine.hasDependentLaunch)
    return;
  // What begins early occupies no more than what is left.
  NVVM::GriddepcontrolOp::create(b, loc,
                                 NVVM::GridDepActionKind::launch_dependents);
  NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::wait);
}

Value GPUEmitter::workgroupMemory(int64_t count, Type element) {
  auto space = gpu::AddressSpaceAttr::get(
      b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  return function.addWorkgroupAttribution(
      MemRefType::get({count}, element, MemRefLayoutAttrInterface(), space),
      loc);
}

Value GPUEmitter::workgroupBytes(int64_t count) {
  Value memory = workgroupMemory(count, b.getI8Type());
  function.setWorkgroupAttributionAttr(
      function.getNumWorkgroupAttributions() - 1,
      LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(16));
  return memory;
}

void GPUEmitter::barrier() { gpu::BarrierOp::create(b, loc); }

void GPUEmitter::onFirstThread(function_ref<void()> body) {
  ifThen(
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, thread, index(0)),
      body);
}
