//===- SplitAttention.cpp - Attention over parts of the keys --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/SplitAttention.h"

#include "kf/Conversion/KernelShape.h"
#include "kf/Target/Common/GpuSchedules.h"

using namespace mlir;
using namespace mlir::kf;

/// Keys of the longest context from which on combining parts is less than what
/// they save, in a kernel and in a cluster, and keys of a part of it.
static constexpr int64_t leastKeys = 1024, leastClusterKeys = 256;
static constexpr int64_t keysPerPart = 128;
/// Parts that a thread combines in a short time.
static constexpr int64_t mostParts = 64;

void mlir::kf::splitAttention(AttentionOp op, int64_t splits) {
  OpBuilder b(op);
  auto parts = AttentionPartialOp::create(
      b, op.getLoc(), op.getQ(), op.getCache(), op.getPositions(),
      op.getSequences(), op.getPageTable(), /*tile=*/ValueRange(),
      b.getI64IntegerAttr(splits), op.getLayerAttr(), op.getScaleAttr(),
      op.getWindowAttr(), op.getChunkedAttr(), op.getSoftcapAttr());
  auto combined = AttentionCombineOp::create(b, op.getLoc(), parts.getMaxima(),
                                             parts.getTotals(),
                                             parts.getValues(), op.getSinks());
  op.replaceAllUsesWith(combined.getResult());
  op.erase();
}

/// Parts in contexts of at least `least` keys.
static int64_t countParts(CacheAttentionInterface op, int64_t rows,
                          const MachineDescription &machine, int64_t least) {
  auto q = cast<RankedTensorType>(op.getQ().getType());
  KVCacheType cache = op.getCache().getType();
  int64_t groups = rows * cache.getKvHeads(), keys;
  if (llvm::MulOverflow(
          cast<RankedTensorType>(op.getPageTable().getType()).getDimSize(1),
          cache.getPage(), keys))
    keys = INT64_MAX;
  if (!q.getElementType().isF32() || groups == 0 || keys < least)
    return 1;
  int64_t pagesOfPart =
      llvm::divideCeil(keysPerPart, std::min(cache.getPage(), keysPerPart));
  return std::clamp<int64_t>(std::min(machine.multiprocessors / groups,
                                      keys / cache.getPage() / pagesOfPart),
                             1, mostParts);
}

int64_t mlir::kf::countAttentionParts(CacheAttentionInterface op, int64_t rows,
                                      const MachineDescription &machine) {
  return countParts(op, rows, machine, leastKeys);
}

int64_t mlir::kf::countClusterParts(CacheAttentionInterface op, int64_t rows,
                                    const MachineDescription &machine) {
  const int64_t most = machine.clusterWorkgroups;
  int64_t parts = countParts(op, rows, machine, leastClusterKeys);
  constexpr int64_t leastBlock = 16; // keys that matrix units take at a time
  KVCacheType cache = op.getCache().getType();
  if (!machine.hasClusters() || parts > 2 * most || rows > kGpuFewRows ||
      !isForMatrixUnits(op) || cache.getPage() % leastBlock != 0)
    return 1;
  return llvm::bit_floor<uint64_t>(std::min(parts, most));
}
