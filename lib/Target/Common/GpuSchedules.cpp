//===- GpuSchedules.cpp - Schedules for GPUs ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The policy of all GPU targets: which kernels they have, and the schedule of
// each on a plain GPU, without subgroup operations or matrix units.
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/GpuSchedules.h"

#include "kf/Conversion/KernelShape.h"
#include "runtime/core/BlockFormat.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Threads of a workgroup that takes rows or elements.
constexpr int64_t rowThreads = 64;
/// Elements that such a workgroup should have before another one starts.
constexpr int64_t elementsPerGroup = 1024;
/// Workgroups along a dimension: half of what every device allows.
constexpr int64_t groupsPerDimension = 32768;

/// A schedule while it is put together.
struct Draft {
  SmallVector<int64_t> workgroup, tile, threads;
  int64_t reduction = 0, unroll = 1;

  SimtScheduleAttr get(MLIRContext *context) const {
    return SimtScheduleAttr::get(context, workgroup, threads, tile, reduction,
                                 unroll);
  }
};

/// Ops that reduce rows and decide the loops of their kernel.
bool isRowOp(Operation *op) {
  return isa<RmsNormOp, LayerNormOp, SoftmaxOp, ArgmaxOp>(op);
}

bool isSupported(Operation *op) {
  // What no GPU has a function for.
  if (isa<math::CbrtOp, math::ErfcOp, math::Atan2Op, math::TruncOp,
          arith::BitcastOp>(op))
    return false;
  if (isElementwise(op) || isView(op) ||
      isa<MatmulOp, EmbeddingOp, ReduceOp, BatchMatmulOp, YieldOp,
          tensor::CastOp>(op))
    return true;
  return isRowOp(op);
}

/// Whether buffers of this type can be read and written.
bool isSupported(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || getLayout(tensor))
    return false;
  Type element = tensor.getElementType();
  return isa<QuantType>(element) || element.isF32() || element.isF16() ||
         element.isBF16() || element.isInteger(1) || element.isInteger(8) ||
         element.isInteger(16) || element.isInteger(32) ||
         element.isInteger(64);
}

/// Whether indices of `bits` bits can count `tokens` rows of the tensor; bytes,
/// if it has blocks.
bool isCountable(RankedTensorType type, int64_t tokens, int64_t bits) {
  int64_t elements = 1, mostElements = llvm::maxIntN(bits);
  SmallVector<int64_t> shape(type.getShape());
  if (auto quant = dyn_cast<QuantType>(type.getElementType())) {
    const ::kf::BlockFormat &format = getStorage(quant.getFormat());
    shape.back() = shape.back() / format.elements * format.bytes;
  }
  for (int64_t extent : shape)
    if (llvm::MulOverflow(elements,
                          ShapedType::isDynamic(extent) ? tokens : extent,
                          elements) ||
        elements > mostElements)
      return false;
  return true;
}

class Policy {
public:
  Policy(KernelOp kernel, const GpuLimits &limits)
      : kernel(kernel), context(kernel.getContext()), limits(limits) {}

  LogicalResult verify(int64_t rows) {
    return failure(failed(checkSupport(rows)) || failed(checkLimits()));
  }

  ScheduleAttrInterface select(int64_t rows) {
    if (failed(checkSupport(rows)))
      return {};
    return selectSimt();
  }

private:
  LogicalResult checkSupport(int64_t tokens) {
    constexpr StringLiteral instead =
        " yet; use --device=cpu or --device=reference";
    for (Operation &op : kernel.getBody().front()) {
      if (!isSupported(&op))
        return op.emitError("no ") << limits.name << " kernel for '"
                                   << op.getName() << "'" << instead;
      for (Type type :
           llvm::concat<const Type>(llvm::to_vector(op.getOperandTypes()),
                                    llvm::to_vector(op.getResultTypes())))
        if (!type.isIndex() && !isSupported(type))
          return op.emitError("no ")
                 << limits.name << " kernel for '" << op.getName() << "' on "
                 << type << instead;
    }
    if (kernel.getNumResults() != 1)
      return kernel.emitError("no ")
             << limits.name << " kernel with " << kernel.getNumResults()
             << " results" << instead;
    for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                              kernel.getResultTypes()))
      if (!isSupported(type))
        return kernel.emitError("no ")
               << limits.name << " kernel for " << type << instead;
      else if (!isCountable(cast<RankedTensorType>(type), tokens,
                            limits.indexBits))
        return kernel.emitError("no ")
               << limits.name << " kernel for " << type << " with " << tokens
               << " rows: it has more elements than " << limits.indexBits
               << "-bit indices count";
    return success();
  }

  LogicalResult checkLimits() {
    FailureOr<KernelShape> shape = getKernelShape(kernel);
    if (failed(shape))
      return failure();
    if (shape->threadCount > limits.threads)
      return kernel.emitError(
                 "schedule cannot run on this device: threads are ")
             << shape->threadCount << " a workgroup, the device allows "
             << limits.threads;
    if (shape->workgroupBytes > limits.memory)
      return kernel.emitError("schedule cannot run on this device: it needs ")
             << shape->workgroupBytes
             << " bytes of workgroup memory, the device has " << limits.memory;
    return success();
  }

  SimtScheduleAttr selectSimt() {
    auto matmuls = kernel.getBody().getOps<MatmulOp>();
    if (!matmuls.empty())
      return selectMatmul(*matmuls.begin());
    for (Operation &op : kernel.getBody().front())
      if (isRowOp(&op))
        return selectRows(&op);
    return selectElements(cast<RankedTensorType>(kernel.getResultTypes()[0]));
  }

  /// A square of the product; of few rows, a strip. Threads keep a square of
  /// it each, so that a staged element is used more than once.
  SimtScheduleAttr selectMatmul(MatmulOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    Draft draft;
    int64_t x = 16, y = 16, rows = 32, columns = 32;
    if (!type.isDynamicDim(0) && type.getDimSize(0) < rows) {
      rows = llvm::PowerOf2Ceil(std::max<int64_t>(type.getDimSize(0), 1));
      y = std::min<int64_t>(y, rows);
    }
    if (y == 1) {
      x = 64;
      columns = 64;
    }
    while (x * y > limits.threads)
      (y > 1 ? y : x) /= 2;
    draft.workgroup = {rows, columns};
    draft.tile = {rows / y, columns / x};
    draft.threads = {x, y, 1};
    draft.reduction = 16;
    while (draft.reduction > 1 && stagedBytes(op, draft) > limits.memory)
      draft.reduction /= 2;
    return draft.get(context);
  }

  int64_t stagedBytes(MatmulOp op, const Draft &draft) {
    int64_t lines =
        draft.workgroup[0] + draft.workgroup[1] * (op.getGlu() ? 2 : 1);
    // Statistics and sums of a fused norm come on top.
    return 4 * (lines * (draft.reduction + 1) + 2 * draft.workgroup[0] +
                draft.threads[0] * draft.threads[1]);
  }

  /// A row to a workgroup, more where the grid would become too large.
  SimtScheduleAttr selectRows(Operation *op) {
    auto type = cast<RankedTensorType>(op->getOperand(0).getType());
    Draft draft;
    draft.threads = {std::min<int64_t>(rowThreads, limits.threads)};
    for (int64_t extent : type.getShape().drop_back().take_front(3))
      draft.workgroup.push_back(stepFor(extent, 1));
    return draft.get(context);
  }

  /// Elements to a workgroup, whole rows where they are short.
  SimtScheduleAttr selectElements(RankedTensorType type) {
    Draft draft;
    draft.threads = {std::min<int64_t>(rowThreads, limits.threads)};
    int64_t rest = elementsPerGroup;
    draft.workgroup.assign(type.getRank(), 0);
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      int64_t extent = type.getDimSize(dim);
      bool isWhole = !ShapedType::isDynamic(extent) && extent <= rest;
      // A grid has three dimensions; the first is always one of them.
      if (dim > 0 && (isWhole || dim > 2))
        rest = std::max<int64_t>(rest / std::max<int64_t>(extent, 1), 1);
      else
        draft.workgroup[dim] = stepFor(extent, std::exchange(rest, 1));
    }
    // Loops of the op that makes the result, which may have more.
    Operation *root = kernel.getYield().getOperand(0).getDefiningOp();
    if (auto loops = dyn_cast_or_null<LoopOpInterface>(root)) {
      SmallVector<int64_t> byLoop(loops.getLoopTypes().size(), 0);
      AffineMap map = loops.getLoopMaps().back();
      for (auto [dim, expr] : llvm::enumerate(map.getResults()))
        if (auto loop = dyn_cast<AffineDimExpr>(expr))
          byLoop[loop.getPosition()] = draft.workgroup[dim];
      draft.workgroup = byLoop;
    }
    return draft.get(context);
  }

  /// A tile of at least `step` that keeps a static grid in bounds.
  int64_t stepFor(int64_t extent, int64_t step) {
    if (ShapedType::isDynamic(extent))
      return step;
    return std::max<int64_t>(step,
                             llvm::divideCeil(extent, groupsPerDimension));
  }

  KernelOp kernel;
  MLIRContext *context;
  GpuLimits limits;
};

} // namespace

ScheduleAttrInterface mlir::kf::selectGpuSchedule(KernelOp kernel,
                                                  const GpuLimits &limits,
                                                  int64_t rows) {
  return Policy(kernel, limits).select(rows);
}

LogicalResult mlir::kf::verifyGpuSchedule(KernelOp kernel,
                                          const GpuLimits &limits,
                                          int64_t rows) {
  return Policy(kernel, limits).verify(rows);
}
