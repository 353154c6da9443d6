//===- KernelShape.cpp - What a schedule asks of a GPU workgroup ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Conversion/KernelShape.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kf;

/// Anything larger is a mistake, and products of three stay within 64 bits.
static constexpr int64_t largest = 1 << 20;

template <typename OpTy> static OpTy findOp(KernelOp kernel) {
  OpTy found;
  kernel.walk([&](OpTy op) { found = op; });
  return found;
}

/// Statistics that a norm keeps of a row.
static int64_t statisticsOf(Operation *norm) {
  return isa_and_nonnull<LayerNormOp>(norm) ? 2
         : isa_and_nonnull<RmsNormOp>(norm) ? 1
                                            : 0;
}

/// Bytes of one partial result a thread for each type that the kernel reduces.
static int64_t reductionBytes(KernelOp kernel, int64_t threads) {
  if (findOp<ArgmaxOp>(kernel))
    return 2 * 4 * threads;
  if (findOp<SampleOp>(kernel))
    return 4 * 4 * threads;
  bool reduces = findOp<RmsNormOp>(kernel) || findOp<LayerNormOp>(kernel) ||
                 findOp<SoftmaxOp>(kernel);
  return reduces ? 4 * threads : 0;
}

/// Bytes of workgroup memory that every device has.
static constexpr int64_t flashBytes = 16 * 1024;
/// Sums that a thread keeps in registers, of products and of values.
static constexpr int64_t flashSums = 32;
/// Query rows that share what is read of keys and values.
static constexpr int64_t flashRows = 8;

FlashShape mlir::kf::getFlashShape(int64_t headDim, int64_t rows, int64_t keys,
                                   int64_t threads) {
  FlashShape shape;
  shape.threads = threads;
  shape.keys = keys;
  while (shape.parts < 8 && threads % (2 * shape.parts) == 0)
    shape.parts *= 2;
  shape.queryColumns = std::min<int64_t>(headDim, 256);
  shape.columns = std::min(threads, headDim);
  int64_t columns = llvm::divideCeil(headDim, shape.columns);
  shape.columnsOfThread = std::min(columns, flashSums / flashRows);
  // A thread's part of each sum depends on none of this.
  shape.rows = std::clamp<int64_t>(rows, 1, flashRows);
  while (shape.rows > 1 && (shape.bytes() > flashBytes ||
                            shape.rows * shape.keysOfThread() > flashSums))
    --shape.rows;
  shape.rows = llvm::divideCeil(rows, llvm::divideCeil(rows, shape.rows));
  return shape;
}

/// Columns of a head on matrix units: the sums of more do not fit in registers.
static constexpr int64_t flashMmaColumns = 256;
/// Keys of a block where rows are computed again, and bytes that say so.
static constexpr int64_t flashMmaSpareKeys = 32, flashMmaFlagBytes = 16;

/// Words of bits for the ids that kf.sample adjusts: 65536 ids have their own.
static constexpr int64_t mostAdjustmentWords = 2048;

using FailFn = function_ref<LogicalResult(const Twine &)>;

/// The dialect bounds tiles, keys and threads by less.
static LogicalResult checkSizes(ArrayRef<int64_t> workgroup, FailFn fail) {
  for (int64_t size : workgroup)
    if (size > largest)
      return fail("sizes are at most " + Twine(largest) + ", found " +
                  Twine(size));
  return success();
}

/// Takes the schedule's threads.
static void setThreads(KernelShape &shape, KernelOp kernel,
                       ArrayRef<int64_t> threads) {
  for (auto [dim, size] : llvm::enumerate(threads)) {
    shape.threads[dim] = size;
    shape.threadCount *= size;
  }
  shape.workgroupBytes = reductionBytes(kernel, shape.threadCount);
}

/// What both schedules of attention say of their kernel.
struct AttentionTile {
  CacheAttentionInterface op;
  KVCacheType cache;
  int64_t headDim, rows, keys;
};

static FailureOr<AttentionTile> getAttentionTile(KernelOp kernel,
                                                 StringRef name,
                                                 ArrayRef<int64_t> workgroup,
                                                 int64_t keys, FailFn fail) {
  auto op = findOp<CacheAttentionInterface>(kernel);
  if (!op)
    return fail(name + " is for attention");
  if (isa<AttentionPartialOp>(op.getOperation())) {
    if (workgroup.size() != 3 || workgroup[0] != 1 || workgroup[1] == 0 ||
        workgroup[2] != 1)
      return fail("a part of attention needs workgroup = [1, heads, 1]");
  } else if (workgroup.size() != 2 || llvm::is_contained(workgroup, 0)) {
    return fail("attention needs workgroup = [rows, heads]");
  }
  int64_t tokens = workgroup[0], heads = workgroup[1];
  if (failed(checkSizes(workgroup, fail)))
    return failure();
  KVCacheType cache = op.getCache().getType();
  if (cache.getPage() % keys != 0)
    return fail("keys (" + Twine(keys) + ") must divide the cache's page (" +
                Twine(cache.getPage()) + ")");
  auto q = cast<RankedTensorType>(op.getQ().getType());
  if (!q.isDynamicDim(0))
    tokens = std::clamp<int64_t>(q.getDimSize(0), 1, tokens);
  return AttentionTile{op, cache, q.getDimSize(2), tokens * heads, keys};
}

/// The shape of a kernel of attention.
static FailureOr<KernelShape>
getShape(KernelOp kernel, FlashScheduleAttr schedule, FailFn fail) {
  auto tile = getAttentionTile(kernel, "#kf.flash", schedule.getWorkgroup(),
                               schedule.getKeys(), fail);
  if (failed(tile))
    return failure();
  KernelShape shape;
  setThreads(shape, kernel, schedule.getThreads());
  shape.flash =
      getFlashShape(tile->headDim, tile->rows, tile->keys, shape.threadCount);
  if (shape.flash->keysOfThread() > flashSums)
    return fail("keys (" + Twine(tile->keys) + ") are more than " +
                Twine(flashSums) + " for each of " +
                Twine(shape.flash->keysAtOnce()) + " groups of threads");
  shape.workgroupBytes += shape.flash->bytes();
  return shape;
}

/// Whether matrix units multiply a cache's elements, or its codes.
static bool isForMatrixUnits(KVCacheType cache) {
  if (auto quant = dyn_cast<QuantType>(cache.getType()))
    return quant.getFormat() == BlockFormat::Q8_0;
  return cache.getType().isF16() || cache.getType().isBF16();
}

/// The shape of a kernel of attention on matrix units.
static FailureOr<KernelShape>
getShape(KernelOp kernel, FlashMmaScheduleAttr schedule, FailFn fail) {
  auto tile = getAttentionTile(kernel, "#kf.flash_mma", schedule.getWorkgroup(),
                               schedule.getKeys(), fail);
  if (failed(tile))
    return failure();
  if (!isForMatrixUnits(tile->cache))
    return fail("#kf.flash_mma is for caches of f16, bf16 and q8_0");
  if (tile->headDim % 8 != 0 || tile->headDim > flashMmaColumns)
    return fail("#kf.flash_mma takes heads of a multiple of 8 up to " +
                Twine(flashMmaColumns) + " columns, found " +
                Twine(tile->headDim));
  KernelShape shape;
  setThreads(shape, kernel, schedule.getThreads());
  FlashMmaShape &mma = shape.flashMma.emplace();
  mma.rowWarps = schedule.getThreads()[1];
  mma.keyWarps = schedule.getThreads()[2];
  mma.keys = tile->keys;
  mma.headDim = tile->headDim;
  mma.isQuantized = tile->cache.isQuantized();
  mma.isPacked = tile->rows <= 8;
  // What it computes again goes by the widest blocks that there is room for.
  int64_t keys = std::gcd(tile->cache.getPage(), flashMmaSpareKeys);
  shape.flash =
      getFlashShape(tile->headDim, tile->rows, keys, shape.threadCount);
  shape.workgroupBytes +=
      std::max({mma.queryBytes(), mma.combineBytes(), shape.flash->bytes()}) +
      flashMmaFlagBytes;
  return shape;
}

/// The shape of any other kernel.
static FailureOr<KernelShape> getShape(KernelOp kernel,
                                       SimtScheduleAttr schedule, FailFn fail) {
  if (findOp<CacheAttentionInterface>(kernel))
    return fail("attention needs #kf.flash");
  if (failed(checkSizes(schedule.getWorkgroup(), fail)))
    return failure();
  KernelShape shape;
  setThreads(shape, kernel, schedule.getThreads());
  if (auto sample = findOp<SampleOp>(kernel);
      sample && sample.hasAdjustments()) {
    auto logits = cast<RankedTensorType>(sample.getLogits().getType());
    shape.adjustmentWords = std::clamp<int64_t>(
        llvm::divideCeil(logits.getDimSize(1), 32), 1, mostAdjustmentWords);
    shape.workgroupBytes += 4 * shape.adjustmentWords;
  }
  auto matmul = findOp<MatmulOp>(kernel);
  if (!matmul) {
    if (!schedule.getTile().empty() || schedule.getReduction() != 0)
      return fail("tile and reduction are for matmul");
    return shape;
  }

  if (schedule.getWorkgroup().size() != 2 ||
      llvm::is_contained(schedule.getWorkgroup(), 0) ||
      schedule.getTile().size() != 2 || shape.threads[2] != 1)
    return fail("a matmul needs workgroup = [rows, columns], tile = [rows, "
                "columns] and threads = [x, y]");
  shape.rows = schedule.getWorkgroup()[0];
  shape.columns = schedule.getWorkgroup()[1];
  shape.tileRows = schedule.getTile()[0];
  shape.tileColumns = schedule.getTile()[1];
  shape.groups = matmul.getGlu() ? 2 : 1;
  shape.unroll = schedule.getUnroll();
  shape.statistics = statisticsOf(matmul.getX().getDefiningOp());
  if (shape.tileRows * shape.tileColumns * shape.groups * shape.unroll > 1024)
    return fail("tile and unroll make more than 1024 multiplications a thread "
                "and step");
  shape.workgroupBytes += 4 * shape.statistics * shape.rows;
  if (shape.threads[0] > 1 && shape.tileRows == shape.rows &&
      shape.tileColumns * shape.threads[1] == shape.columns) {
    if (schedule.getReduction() != 0)
      return fail("reduction is for products that are staged");
    shape.sharing = shape.threads[0];
    shape.sharedElements = std::min<int64_t>(
        {shape.tileRows * shape.tileColumns, shape.threads[0], 8});
    shape.workgroupBytes += 4 * shape.sharedSums() * shape.sharedStride();
    return shape;
  }
  if (shape.tileRows * shape.threads[1] != shape.rows ||
      shape.tileColumns * shape.threads[0] != shape.columns)
    return fail("tile [" + Twine(shape.tileRows) + ", " +
                Twine(shape.tileColumns) + "] of " + Twine(shape.threads[1]) +
                " x " + Twine(shape.threads[0]) +
                " threads does not make the workgroup's [" + Twine(shape.rows) +
                ", " + Twine(shape.columns) + "]");
  int64_t extent =
      cast<RankedTensorType>(matmul.getX().getType()).getDimSize(1);
  shape.step = schedule.getReduction() ? schedule.getReduction()
                                       : std::max<int64_t>(extent, 1);
  if (shape.step > largest || shape.step % shape.unroll != 0)
    return fail("reduction (" + Twine(shape.step) +
                ") must be a multiple of unroll (" + Twine(shape.unroll) +
                ") and at most " + Twine(largest));
  shape.workgroupBytes +=
      4 * shape.stride() * (shape.rows + shape.groups * shape.columns);
  return shape;
}

FailureOr<KernelShape> mlir::kf::getKernelShape(KernelOp kernel) {
  return getKernelShape(kernel, kernel.getScheduleAttr(),
                        [&] { return kernel.emitError(); });
}

FailureOr<KernelShape>
mlir::kf::getKernelShape(KernelOp kernel, ScheduleAttrInterface schedule,
                         function_ref<InFlightDiagnostic()> emitError) {
  auto fail = [&](const Twine &message) -> LogicalResult {
    if (emitError)
      emitError() << "schedule cannot run on a GPU: " << message;
    return failure();
  };
  if (!schedule)
    return fail("there is none; run kf-select-schedules first");
  if (auto flash = dyn_cast<FlashScheduleAttr>(schedule))
    return getShape(kernel, flash, fail);
  if (auto mma = dyn_cast<FlashMmaScheduleAttr>(schedule))
    return getShape(kernel, mma, fail);
  if (auto simt = dyn_cast<SimtScheduleAttr>(schedule))
    return getShape(kernel, simt, fail);
  return fail("it is none of #kf.simt, #kf.flash and #kf.flash_mma");
}
