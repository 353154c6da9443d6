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

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Threads of a workgroup that takes rows or elements.
constexpr int64_t rowThreads = 64;
/// Elements that such a workgroup should have before another one starts.
constexpr int64_t elementsPerGroup = 1024;
/// Rows up to which each is a workgroup's of attention, and up to which threads
/// share the sums of a product; and how many threads do.
constexpr int64_t fewRows = 16, sharingThreads = 32;
/// Workgroups along a dimension: half of what every device allows.
constexpr int64_t groupsPerDimension = 32768;

/// Threads of a workgroup of attention, and of one that chooses a token.
constexpr int64_t attentionThreads = 128;
/// Logits of a thread that are worth another one.
constexpr int64_t logitsOfThread = 16;
/// Keys of one softmax block, and query rows that share it.
constexpr int64_t keyTile = 32, queryRows = 8;
/// Columns that are rotated: their frequencies are a constant of the kernel.
constexpr int64_t maxRotaryDim = 8192;

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
  if (auto matmul = dyn_cast<MatmulOp>(op))
    return !matmul.getScales();
  if (isElementwise(op) || isView(op) ||
      isa<EmbeddingOp, ReduceOp, BatchMatmulOp, RopeOp, AttentionOp, KVAppendOp,
          SampleOp, YieldOp, tensor::CastOp>(op))
    return true;
  return isRowOp(op);
}

/// Whether buffers of this type can be read and written.
bool isSupported(Type type) {
  if (auto cache = dyn_cast<KVCacheType>(type))
    return cache.getKeyBlock() == 1;
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || getLayout(tensor))
    return false;
  Type element = tensor.getElementType();
  return isa<QuantType>(element) || element.isF32() || element.isF16() ||
         element.isBF16() || element.isInteger(1) || element.isInteger(8) ||
         element.isInteger(16) || element.isInteger(32) ||
         element.isInteger(64);
}

/// The same in a kernel of kf.sample, which reads seeds as two words.
bool isSupportedBySample(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return (tensor && tensor.getElementType().isInteger(64)) || isSupported(type);
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
    auto attentions = kernel.getBody().getOps<AttentionOp>();
    if (!attentions.empty())
      return selectFlash(*attentions.begin(), rows);
    return selectSimt(rows);
  }

private:
  LogicalResult checkSupport(int64_t tokens) {
    constexpr StringLiteral instead =
        " yet; use --device=cpu or --device=reference";
    bool samples = !kernel.getBody().getOps<SampleOp>().empty();
    auto isSupported = [&](Type type) {
      return samples ? isSupportedBySample(type) : ::isSupported(type);
    };
    for (Operation &op : kernel.getBody().front()) {
      if (!::isSupported(&op))
        return op.emitError("no ") << limits.name << " kernel for '"
                                   << op.getName() << "'" << instead;
      for (Type type :
           llvm::concat<const Type>(llvm::to_vector(op.getOperandTypes()),
                                    llvm::to_vector(op.getResultTypes())))
        if (!type.isIndex() && !isSupported(type))
          return op.emitError("no ")
                 << limits.name << " kernel for '" << op.getName() << "' on "
                 << type << instead;
      if (failed(checkCache(&op)))
        return failure();
    }
    for (Operation &op : kernel.getBody().front())
      if (failed(checkIntegers(op)))
        return failure();
    bool appends = !kernel.getBody().getOps<KVAppendOp>().empty();
    if (kernel.getNumResults() != (appends ? 0 : 1))
      return kernel.emitError("no ")
             << limits.name << " kernel with " << kernel.getNumResults()
             << " results" << instead;
    for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                              kernel.getResultTypes()))
      if (!isSupported(type))
        return kernel.emitError("no ")
               << limits.name << " kernel for " << type << instead;
      else if (auto tensor = dyn_cast<RankedTensorType>(type);
               tensor && !isCountable(tensor, tokens, limits.indexBits))
        return kernel.emitError("no ")
               << limits.name << " kernel for " << type << " with " << tokens
               << " rows: it has more elements than " << limits.indexBits
               << "-bit indices count";
    return success();
  }

  /// What positions and places in a cache have to fit in.
  LogicalResult checkCache(Operation *op) {
    if (auto rope = dyn_cast<RopeOp>(op);
        rope && static_cast<int64_t>(rope.getRotaryDim()) > maxRotaryDim)
      return op->emitError("no ")
             << limits.name
             << " kernel for rotary_dim = " << rope.getRotaryDim()
             << ": at most " << maxRotaryDim << " columns are rotated";
    if (!isa<AttentionOp, KVAppendOp>(op))
      return success();
    auto attention = dyn_cast<AttentionOp>(op);
    KVCacheType cache = attention ? attention.getCache().getType()
                                  : cast<KVAppendOp>(op).getCache().getType();
    Value table = attention ? attention.getPageTable()
                            : cast<KVAppendOp>(op).getPageTable();
    int64_t positions, elements, most = llvm::maxIntN(limits.indexBits);
    if (llvm::MulOverflow(cast<RankedTensorType>(table.getType()).getDimSize(1),
                          cache.getPage(), positions) ||
        positions > most)
      return op->emitError("no ")
             << limits.name
             << " kernel for tables of so many pages: " << limits.indexBits
             << "-bit indices count no more than " << most << " positions";
    // K and V, and a scale for some elements.
    if (llvm::MulOverflow(3 * cache.getPage() * cache.getHeadDim(),
                          cache.getKvHeads(), elements) ||
        elements > most)
      return op->emitError("no ")
             << limits.name
             << " kernel for pages of so many elements: " << limits.indexBits
             << "-bit indices count no more than " << most;
    return success();
  }

  /// Arithmetic on integers that the device has none of would not wrap.
  LogicalResult checkIntegers(Operation &op) {
    if (!limits.integers || isa<CopyOp>(op) ||
        !(isElementwise(&op) || isa<ReduceOp, IotaOp>(op)))
      return success();
    for (Type type :
         llvm::concat<const Type>(llvm::to_vector(op.getOperandTypes()),
                                  llvm::to_vector(op.getResultTypes()))) {
      Type element = getElementTypeOrSelf(type);
      if (!element.isInteger() || element.isInteger(1) ||
          element.isInteger(32) ||
          llvm::is_contained(*limits.integers, element.getIntOrFloatBitWidth()))
        continue;
      return op.emitError("no ")
             << limits.name << " kernel for '" << op.getName() << "' on "
             << type << ": the device has no " << element
             << "; use i32, or --device=cpu";
    }
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

  SimtScheduleAttr selectSimt(int64_t tokens) {
    auto matmuls = kernel.getBody().getOps<MatmulOp>();
    if (!matmuls.empty()) {
      MatmulOp op = *matmuls.begin();
      auto type = cast<RankedTensorType>(op.getType());
      int64_t rows = type.isDynamicDim(0) ? tokens : type.getDimSize(0);
      return rows <= fewRows ? selectFewRows(op, rows) : selectMatmul(op);
    }
    if (!kernel.getBody().getOps<KVAppendOp>().empty())
      return selectToken(rowThreads);
    for (auto sample : kernel.getBody().getOps<SampleOp>()) {
      int64_t columns =
          cast<RankedTensorType>(sample.getLogits().getType()).getDimSize(1);
      return selectToken(std::clamp<int64_t>(
          llvm::bit_ceil<uint64_t>(columns / logitsOfThread), 8,
          attentionThreads));
    }
    for (Operation &op : kernel.getBody().front())
      if (isRowOp(&op))
        return selectRows(&op);
    return selectElements(cast<RankedTensorType>(kernel.getResultTypes()[0]));
  }

  /// All rows and a few columns: each element of the weight is read once, by
  /// neighbouring threads, several at a time so that memory is kept busy.
  SimtScheduleAttr selectFewRows(MatmulOp op, int64_t rows) {
    bool hasBlocks = isa<QuantType>(
        cast<RankedTensorType>(op.getW().getType()).getElementType());
    Draft draft;
    int64_t columns = rows <= 4 ? 2 : 1, y = 4;
    int64_t x = std::min<int64_t>(sharingThreads, limits.threads);
    // Parts of 8 elements of gate and up; statistics and sums of a fused norm.
    auto bytes = [&] { return 4 * (16 * (x + 1) * y + 2 * rows + x * y); };
    while (y > 1 && (x * y > limits.threads || bytes() > limits.memory))
      y /= 2;
    int64_t all = cast<RankedTensorType>(op.getType()).getDimSize(1);
    columns = std::max<int64_t>(columns,
                                llvm::divideCeil(all, y * groupsPerDimension));
    draft.workgroup = {rows, columns * y};
    draft.tile = {rows, columns};
    draft.threads = {x, y, 1};
    draft.unroll = hasBlocks || rows > 4 ? 2 : rows > 2 ? 4 : 8;
    return draft.get(context);
  }

  /// The heads of a KV head and a few tokens to a workgroup.
  FlashScheduleAttr selectFlash(AttentionOp op, int64_t rows) {
    KVCacheType cache = op.getCache().getType();
    auto q = cast<RankedTensorType>(op.getQ().getType());
    int64_t group = std::max<int64_t>(q.getDimSize(1) / cache.getKvHeads(), 1);
    int64_t tokens =
        rows <= fewRows ? 1 : std::max<int64_t>(queryRows / group, 1);
    if (!q.isDynamicDim(0))
      tokens = std::max<int64_t>(
          tokens, llvm::divideCeil(q.getDimSize(0), groupsPerDimension));
    int64_t threads = llvm::bit_floor<uint64_t>(
        std::min<int64_t>(attentionThreads, limits.threads));
    return FlashScheduleAttr::get(context, {tokens, group},
                                  std::gcd(keyTile, cache.getPage()),
                                  {threads});
  }

  /// A row of the step to a workgroup.
  SimtScheduleAttr selectToken(int64_t threads) {
    Draft draft;
    draft.workgroup = {1};
    draft.threads = {std::min(threads, limits.threads)};
    return draft.get(context);
  }

  /// A square of the product. Threads keep a square of it each, so that a
  /// staged element is used more than once.
  SimtScheduleAttr selectMatmul(MatmulOp op) {
    Draft draft;
    int64_t x = 16, y = 16, rows = 32, columns = 32;
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

  /// Whether an op of the kernel computes this dimension in order: rows of a
  /// table are looked up whole.
  bool mustBeWhole(int64_t dim) {
    return llvm::any_of(
        kernel.getBody().getOps<LoopOpInterface>(), [&](LoopOpInterface op) {
          SmallVector<utils::IteratorType> types = op.getLoopTypes();
          return dim < static_cast<int64_t>(types.size()) &&
                 types[dim] != utils::IteratorType::parallel;
        });
  }

  /// Elements to a workgroup, whole rows where they are short.
  SimtScheduleAttr selectElements(RankedTensorType type) {
    Draft draft;
    draft.threads = {std::min<int64_t>(rowThreads, limits.threads)};
    int64_t rest = elementsPerGroup;
    draft.workgroup.assign(type.getRank(), 0);
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      int64_t extent = type.getDimSize(dim);
      bool isWhole = (!ShapedType::isDynamic(extent) && extent <= rest) ||
                     mustBeWhole(dim);
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
