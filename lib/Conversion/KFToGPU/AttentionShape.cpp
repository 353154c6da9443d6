//===- AttentionShape.cpp - What schedules of attention ask for -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelShapes.h"

#include "kf/Conversion/KernelSupport.h"

#include "mlir/Support/DebugStringHelper.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kf;

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
  while (shape.shares < 8 && threads % (2 * shape.shares) == 0)
    shape.shares *= 2;
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
/// The same on cooperative matrices, beside queries and what is on its way.
static constexpr int64_t flashCoopColumns = 128;
/// Keys of a block where rows are computed again, and bytes that say so.
static constexpr int64_t flashMmaSpareKeys = 32, flashMmaFlagBytes = 16;

namespace {
/// What both schedules of attention say of their kernel.
struct AttentionTile {
  CacheAttentionInterface op;
  KVCacheType cache;
  int64_t headDim, tokens, rows, keys;
};
} // namespace

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
  const int64_t group = q.getDimSize(1) / cache.getKvHeads();
  auto append = findOp<KVAppendOp>(kernel);
  if (kernel.getGrid() && ((!op.getKvHead() && cache.getKvHeads() > 1) ||
                           (append && !append.getKvHead())))
    return fail("a tile of attention, and an append beside it, have a kv_head");
  if (!op.getKvHead() && cache.getKvHeads() > 1 && heads != group)
    return fail("workgroup heads (" + Twine(heads) + ") must be the " +
                Twine(group) + " that share a KV head");
  if (!q.isDynamicDim(0))
    tokens = std::clamp<int64_t>(q.getDimSize(0), 1, tokens);
  return AttentionTile{op,     cache,          q.getDimSize(2),
                       tokens, tokens * heads, keys};
}

FailureOr<KernelShape> mlir::kf::getAttentionShape(KernelOp kernel,
                                                   FlashScheduleAttr schedule,
                                                   FailFn fail) {
  auto tile = getAttentionTile(kernel, "#kf.flash", schedule.getWorkgroup(),
                               schedule.getKeys(), fail);
  if (failed(tile))
    return failure();
  KernelShape shape;
  setThreads(shape, kernel, schedule.getThreads());
  if (findOp<KVAppendOp>(kernel) && shape.threadCount % HeldShape::lanes != 0)
    return fail("an append beside attention takes warps of " +
                Twine(HeldShape::lanes) + " threads, found " +
                Twine(shape.threadCount));
  shape.flash =
      getFlashShape(tile->headDim, tile->rows, tile->keys, shape.threadCount);
  if (shape.flash->keysOfThread() > flashSums)
    return fail("keys (" + Twine(tile->keys) + ") are more than " +
                Twine(flashSums) + " for each of " +
                Twine(shape.flash->keysAtOnce()) + " groups of threads");
  shape.workgroupBytes += shape.flash->bytes();
  return shape;
}

bool mlir::kf::isForMatrixUnits(CacheAttentionInterface op) {
  KVCacheType cache = op.getCache().getType();
  if (op.getSoftcap() || op.getSinks())
    return false;
  if (cache.getHeadDim() % 8 != 0 || cache.getHeadDim() > flashMmaColumns)
    return false;
  if (auto quant = dyn_cast<QuantType>(cache.getType()))
    return quant.getFormat() == BlockFormat::Q8_0;
  return multiplies(MatrixUnit::MmaSync, cache.getType());
}

bool mlir::kf::isForWarpgroups(int64_t headDim) {
  return headDim == 64 || headDim == 128;
}

bool mlir::kf::isForCoop(CacheAttentionInterface op) {
  KVCacheType cache = op.getCache().getType();
  if (isa<AttentionPartialOp>(op.getOperation()) ||
      cache.getHeadDim() % FlashCoopShape::vectorColumns != 0 ||
      cache.getHeadDim() > flashCoopColumns)
    return false;
  if (auto quant = dyn_cast<QuantType>(cache.getType()))
    return quant.getFormat() == BlockFormat::Q8_0;
  return cache.getType().isF16() || cache.getType().isBF16();
}

MatrixUnit mlir::kf::getCoopUnit(KVCacheType cache) {
  return cache.getType().isBF16() ? MatrixUnit::CoopBF16 : MatrixUnit::CoopF16;
}

/// The shape of a kernel of attention on cooperative matrices.
static FailureOr<KernelShape> getCoopShape(KernelOp kernel,
                                           FlashMmaScheduleAttr schedule,
                                           AttentionTile tile, FailFn fail) {
  const std::string unit =
      ("unit = " + stringifyMatrixUnit(schedule.getUnit())).str();
  const int64_t rows = getUnitShape(schedule.getUnit()).rows;
  const int64_t subgroup = getMachine(kernel).subgroupThreads;
  if (subgroup == 0)
    return fail(unit +
                " is of Vulkan devices whose subgroups multiply matrices");
  if (isa<AttentionPartialOp>(tile.op.getOperation()))
    return fail(unit + " is for kf.attention; parts of one token's keys take "
                       "#kf.flash");
  if (!isForCoop(tile.op))
    return fail(unit + " takes heads of a multiple of " +
                Twine(FlashCoopShape::vectorColumns) + " up to " +
                Twine(flashCoopColumns) +
                " columns in caches of f16, bf16 and q8_0, found " +
                debugString(tile.cache));
  if (const MatrixUnit own = getCoopUnit(tile.cache); schedule.getUnit() != own)
    return fail("the cache, of " + debugString(tile.cache.getType()) +
                ", takes unit = " + stringifyMatrixUnit(own) + ", found " +
                unit);
  if (schedule.getThreads()[0] != subgroup || subgroup % rows != 0)
    return fail(unit + " takes threads = [" + Twine(subgroup) +
                ", warps, 1], of the device's subgroups, a multiple of " +
                Twine(rows) + ", found [" + Twine(schedule.getThreads()[0]) +
                ", " + Twine(schedule.getThreads()[1]) + ", 1]");
  KernelShape shape;
  FlashCoopShape &coop = shape.flashCoop.emplace();
  coop.unit = rows;
  coop.warps = schedule.getThreads()[1];
  coop.subgroup = subgroup;
  coop.keys = tile.keys;
  coop.headDim = tile.headDim;
  coop.isQuantized = tile.cache.isQuantized();
  setThreads(shape, kernel, {coop.threads()});
  const int64_t keys = std::gcd(tile.cache.getPage(), flashMmaSpareKeys);
  shape.flash = getFlashShape(tile.headDim, tile.rows, keys, shape.threadCount);
  coop.spareElements = shape.flash->bytes() / 4;
  // Beside it, positions of rows, and of threads, and whether rows are computed
  // again.
  shape.workgroupBytes += coop.bytes() + 4 * shape.flash->rows +
                          4 * shape.partialSums() + rowRangeBytes(0);
  return shape;
}

/// Columns of a head whose gradients a thread has registers for, of which units
/// take 16 at a time; rows that workgroups of one warp divide; and offsets that
/// 32 bits count with these.
static constexpr int64_t batchColumns = 128, batchStep = 16,
                         mostBatchRows =
                             kMostGroups * BatchAttentionShape::rowsOfWarp,
                         mostBatchOffset = int64_t(1) << 28;

bool mlir::kf::isForBatchKernel(BatchAttentionInterface op, Type type) {
  auto shapeOf = [](Value x) {
    return cast<RankedTensorType>(x.getType()).getShape();
  };
  const int64_t columns = shapeOf(op.getQ()).back();
  auto isSmall = [](uint64_t number) {
    return std::abs(static_cast<int64_t>(number)) <= mostBatchOffset;
  };
  // Those of a tile may be `?`, which is negative.
  auto areFew = [&](Value x) {
    ArrayRef<int64_t> extents = shapeOf(x).take_back(3);
    return extents[0] <= static_cast<int64_t>(kMostGroups) &&
           extents[1] <= mostBatchRows;
  };
  Value mask = op.getMask();
  return type.isBF16() && !op.getSoftcap() &&
         columns == shapeOf(op.getV()).back() && columns % batchStep == 0 &&
         columns <= batchColumns && areFew(op.getQ()) && areFew(op.getK()) &&
         isSmall(op.getOffset()) && isSmall(op.getWindow().value_or(0)) &&
         (!mask || getElementTypeOrSelf(mask.getType()).isInteger(1));
}

BatchAttentionShape
mlir::kf::getBatchAttentionShape(BatchAttentionInterface op,
                                 FlashMmaScheduleAttr schedule) {
  BatchAttentionShape shape;
  shape.warps = schedule.getThreads()[1];
  shape.others = schedule.getKeys();
  shape.columns = cast<RankedTensorType>(op.getQ().getType()).getShape().back();
  shape.ownTensors =
      isa<ScaledDotProductAttentionOp>(op.getOperation()) ? 1 : 2;
  return shape;
}

/// The shape of a kernel of attention to keys that are tensors.
static FailureOr<KernelShape> getBatchShape(BatchAttentionInterface op,
                                            FlashMmaScheduleAttr schedule,
                                            KernelOp kernel, FailFn fail) {
  auto q = cast<RankedTensorType>(op.getQ().getType());
  if (!isForBatchKernel(op, q.getElementType()))
    return fail(
        "#kf.flash_mma multiplies heads of a multiple of " + Twine(batchStep) +
        " up to " + Twine(batchColumns) + " columns of bf16, up to " +
        Twine(kMostGroups) + " of them with up to " + Twine(mostBatchRows) +
        " rows, with no softcap and a mask of i1, found " + debugString(q));
  ArrayRef<int64_t> workgroup = schedule.getWorkgroup();
  if (schedule.getUnit() != MatrixUnit::MmaSync ||
      schedule.getRows() != RowForm::Rounded)
    return fail("attention to tensors needs unit = mma_sync, rows = rounded");
  KernelShape shape;
  const BatchAttentionShape batch = getBatchAttentionShape(op, schedule);
  if (static_cast<int64_t>(workgroup.size()) != q.getRank() - 1 ||
      workgroup.back() != batch.rows() ||
      llvm::any_of(workgroup.drop_back(),
                   [](int64_t size) { return size != 1; }))
    return fail(
        "attention to tensors needs a workgroup of 1 for each batch and "
        "head, and of " +
        Twine(batch.rows()) + " rows, " +
        Twine(BatchAttentionShape::rowsOfWarp) + " of each warp");
  setThreads(shape, kernel, {batch.threads()});
  shape.workgroupBytes += batch.bytes();
  return shape;
}

FailureOr<KernelShape>
mlir::kf::getAttentionShape(KernelOp kernel, FlashMmaScheduleAttr schedule,
                            FailFn fail) {
  if (auto batches = findOp<BatchAttentionInterface>(kernel))
    return getBatchShape(batches, schedule, kernel, fail);
  auto tile = getAttentionTile(kernel, "#kf.flash_mma", schedule.getWorkgroup(),
                               schedule.getKeys(), fail);
  if (failed(tile))
    return failure();
  if (isCooperative(schedule.getUnit()))
    return getCoopShape(kernel, schedule, *tile, fail);
  if (tile->headDim % 8 != 0 || tile->headDim > flashMmaColumns)
    return fail("#kf.flash_mma takes heads of a multiple of 8 up to " +
                Twine(flashMmaColumns) + " columns, found " +
                Twine(tile->headDim));
  if (tile->op.getSoftcap())
    return fail("#kf.flash_mma has no softcap; use #kf.flash");
  if (tile->op.getSinks())
    return fail("#kf.flash_mma has no sinks; use #kf.flash");
  if (!isForMatrixUnits(tile->op))
    return fail("#kf.flash_mma is for caches of f16, bf16 and q8_0");
  KernelShape shape;
  setThreads(shape, kernel, schedule.getThreads());
  FlashMmaShape &mma = shape.flashMma.emplace();
  mma.rowWarps = schedule.getThreads()[1];
  mma.keyWarps = schedule.getThreads()[2];
  mma.keys = tile->keys;
  mma.headDim = tile->headDim;
  mma.isQuantized = tile->cache.isQuantized();
  mma.isPacked = tile->rows <= 8;
  mma.parts = schedule.getParts();
  mma.isStaged = schedule.getHeld() == OperandPlace::Shared;
  mma.isForWarpgroups = schedule.getUnit() == MatrixUnit::Wgmma;
  if (mma.isStaged && mma.isPacked)
    return fail("held = shared is for more than 8 rows, found " +
                Twine(tile->rows));
  if (mma.isForWarpgroups && !isForWarpgroups(mma.headDim))
    return fail("unit = wgmma takes heads of 64 or 128 columns, found " +
                Twine(mma.headDim));
  if (mma.parts > 1) {
    if (isa<AttentionPartialOp>(tile->op.getOperation()))
      return fail("kf.attention_partial has its parts; parts are for "
                  "kf.attention");
    if (tile->tokens != 1)
      return fail("parts are for one token's keys: workgroup = [1, heads]");
  }
  // What it computes again goes by the widest blocks that there is room for.
  int64_t keys = std::gcd(tile->cache.getPage(), flashMmaSpareKeys);
  shape.flash =
      getFlashShape(tile->headDim, tile->rows, keys, shape.threadCount);
  shape.workgroupBytes += std::max(mma.bytes(), shape.flash->bytes()) +
                          mma.partBytes() + flashMmaFlagBytes;
  if (mma.isStaged)
    shape.workgroupBytes += mma.rangeBytes();
  return shape;
}
