//===- CountWork.cpp - What a kernel has to move and compute --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/CountWork.h"

#include "kf/Transforms/ArenaBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

using ::kf::SizedCount;

uint64_t times(uint64_t a, uint64_t b) {
  return llvm::SaturatingMultiply(a, b);
}

SizedCount operator*(SizedCount count, uint64_t factor) {
  count.constant = times(count.constant, factor);
  for (uint64_t &each : count.perSize)
    each = times(each, factor);
  return count;
}

SizedCount &operator+=(SizedCount &count, const SizedCount &other) {
  count.constant = llvm::SaturatingAdd(count.constant, other.constant);
  for (auto [each, more] : llvm::zip_equal(count.perSize, other.perSize))
    each = llvm::SaturatingAdd(each, more);
  return count;
}

RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

class WorkCounter {
public:
  explicit WorkCounter(KernelOp kernel) : kernel(kernel) {}

  std::optional<::kf::KernelWork> count() {
    for (Operation &op : kernel.getBody().front())
      if (failed(addOp(op)))
        return std::nullopt;
    if (!countBytes())
      return std::nullopt;
    return work;
  }

  std::optional<SizedCount> countBytes() {
    for (BlockArgument argument : kernel.getBody().getArguments())
      if (isa<RankedTensorType>(argument.getType()) &&
          failed(addOperand(argument)))
        return std::nullopt;
    for (Value result : kernel.getYield().getOperands())
      if (!isOutliers(result) && failed(addBytes(tensorType(result))))
        return std::nullopt;
    for (auto op : kernel.getBody().getOps<WorkOpInterface>())
      if (failed(addRows(op.getCacheBytes())))
        return std::nullopt;
    return work.bytes;
  }

private:
  /// Of these, hardly any are there.
  static bool isOutliers(Value value) {
    auto round = value.getDefiningOp<RoundHalfOp>();
    return round && round.getOutliers() == value;
  }

  /// `each` of what there is, or for each row where those are a step's size.
  FailureOr<SizedCount> perRow(RankedTensorType type, uint64_t each) {
    SizedCount count;
    if (type.hasStaticShape()) {
      count.constant = each;
      return count;
    }
    FailureOr<unsigned> slot = getSizeSlot(kernel, getSizeName(type));
    if (failed(slot))
      return failure();
    count.perSize[*slot] = each;
    return count;
  }

  FailureOr<SizedCount> elements(RankedTensorType type) {
    uint64_t each = 1;
    for (int64_t extent : type.getShape())
      each = times(each, ShapedType::isDynamic(extent) ? 1 : extent);
    return perRow(type, each);
  }

  LogicalResult addBytes(RankedTensorType type) {
    FailureOr<int64_t> bytes = getArenaBytes(type, /*rows=*/1);
    if (failed(bytes))
      return failure();
    FailureOr<SizedCount> count = perRow(type, *bytes);
    if (failed(count))
      return failure();
    work.bytes += *count;
    return success();
  }

  /// Of an operand that is only sliced, or only looked up in, what is wanted.
  LogicalResult addOperand(BlockArgument argument) {
    SmallVector<RankedTensorType> parts;
    for (OpOperand &use : argument.getUses()) {
      const RankedTensorType whole = tensorType(argument);
      RankedTensorType part = whole;
      if (auto op = dyn_cast<WorkOpInterface>(use.getOwner()))
        part = op.getPartRead(use);
      else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(use.getOwner()))
        part = slice.getType();
      else if (isa<tensor::DimOp>(use.getOwner()))
        part = {};
      if (part == whole)
        return addBytes(whole);
      if (part)
        parts.push_back(part);
    }
    for (RankedTensorType part : parts)
      if (failed(addBytes(part)))
        return failure();
    return success();
  }

  LogicalResult addRows(const RowBytes &each) {
    if (!each.tensor)
      return success();
    const RankedTensorType type = tensorType(each.tensor);
    const uint64_t rows = type.isDynamicDim(0) ? 1 : type.getDimSize(0);
    FailureOr<SizedCount> moved = perRow(type, times(rows, each.bytes));
    if (failed(moved))
      return failure();
    work.bytes += *moved;
    return success();
  }

  LogicalResult add(SizedCount &sum, RankedTensorType type, uint64_t each) {
    FailureOr<SizedCount> count = elements(type);
    if (failed(count))
      return failure();
    sum += *count * each;
    return success();
  }

  LogicalResult addProduct(ProductOpInterface op) {
    auto result = tensorType(op.getResult()), x = tensorType(op.getX());
    const uint64_t matrices = op.getGlu() ? 2 : 1;
    auto vector =
        dyn_cast_or_null<VectorScheduleAttr>(kernel.getScheduleAttr());
    const DotKind dot = vector ? vector.getDot() : DotKind::F32;
    // Rows in 8 bits are multiplied as bf16 as well.
    SizedCount &sum = dot == DotKind::BF16 || dot == DotKind::BF16Pairs
                          ? work.bf16Flops
                      : op.getScales() || multipliesBytes(dot) ? work.int8Ops
                                                               : work.flops;
    if (failed(add(sum, result, times(2 * matrices, x.getShape().back()))))
      return failure();
    // Biases and scales, and what makes one of the two.
    const uint64_t more = (op.getBias() ? matrices : 0) +
                          (op.getWeightScales() ? matrices : 0) +
                          (op.getGlu() ? 2 : 0);
    return add(work.flops, result, more);
  }

  LogicalResult addMlp(MlpOp op) {
    auto x = tensorType(op.getX());
    const uint64_t up = tensorType(op.getUp()).getDimSize(0);
    const uint64_t matrices = op.getGate() ? 3 : 2;
    // x and the result have K columns, or N.
    const uint64_t inner = times(2 * (matrices - 1), up);
    if (failed(add(work.flops, x, inner)) ||
        failed(add(work.flops, tensorType(op.getResult()), times(2, up))))
      return failure();
    return add(work.flops, x.clone({x.getDimSize(0), int64_t(up)}),
               op.getGate() ? 2 : 1);
  }

  LogicalResult addAttention(CacheAttentionInterface op) {
    auto positions = dyn_cast<BlockArgument>(op.getPositions());
    auto sequences = dyn_cast<BlockArgument>(op.getSequences());
    // One that the kernel computes is nothing that the runtime can look at.
    if (work.keys || !positions || !sequences)
      return failure();
    auto q = tensorType(op.getQ());
    KVCacheType cache = op.getCache().getType();
    ::kf::KeyWork keys;
    keys.positions = positions.getArgNumber();
    keys.sequences = sequences.getArgNumber();
    keys.window = {op.getWindow().value_or(0), op.getChunked()};
    keys.bytesPerKey = getPositionBytes(cache);
    keys.flopsPerKey = times(4 * q.getDimSize(1), q.getDimSize(2));
    auto vector =
        dyn_cast_or_null<VectorScheduleAttr>(kernel.getScheduleAttr());
    // Vectors of f32 multiply rows that are alone in their sequence, which a
    // step knows and no count here: those are taken for bf16, too.
    keys.inBF16 = vector && vector.getDot() == DotKind::BF16;
    work.keys = keys;
    return success();
  }

  LogicalResult addOp(Operation &op) {
    return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
        .Case([&](MatmulOp matmul) {
          return matmul.isOfMatrices() ? addProduct(matmul) : failure();
        })
        .Case([&](ProductOpInterface product) { return addProduct(product); })
        .Case([&](MlpOp mlp) { return addMlp(mlp); })
        .Case([&](CacheAttentionInterface attention) {
          return addAttention(attention);
        })
        .Case([&](WorkOpInterface other) {
          const ElementWork each = other.getElementWork();
          return each.tensor
                     ? add(work.flops, tensorType(each.tensor), each.operations)
                     : success();
        })
        .Case<YieldOp, tensor::CastOp>([](auto) { return success(); })
        .Default([&](Operation *other) {
          if (isView(other) || !llvm::any_of(other->getResultTypes(),
                                             llvm::IsaPred<RankedTensorType>))
            return success(other->getNumRegions() == 0);
          if (!isElementwise(other))
            return failure();
          return add(work.flops, tensorType(other->getResult(0)),
                     isa<CastOpInterface>(other) ? 0 : 1);
        });
  }

  KernelOp kernel;
  ::kf::KernelWork work;
};

} // namespace

std::optional<::kf::KernelWork> mlir::kf::countWork(KernelOp kernel) {
  if (kernel.getGrid())
    return std::nullopt;
  return WorkCounter(kernel).count();
}

double mlir::kf::countBytes(KernelOp kernel, int64_t rows) {
  std::array<int64_t, KF_SCALAR_COUNT> sizes;
  sizes.fill(rows);
  std::optional<SizedCount> bytes = WorkCounter(kernel).countBytes();
  return bytes ? bytes->at(sizes) : 0;
}
