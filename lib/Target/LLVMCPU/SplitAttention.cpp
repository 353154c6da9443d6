//===- SplitAttention.cpp - Keys of few rows for many workers -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Workers.h"

#include "kf/Target/Common/SplitAttention.h"
#include "kf/Target/LLVMCPU/Passes.h"
#include "kf/Transforms/KernelKey.h"

namespace mlir::kf {
#define GEN_PASS_DEF_SPLITCPUATTENTION
#include "kf/Target/LLVMCPU/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Parts of a row's keys for each worker.
constexpr int64_t partsPerWorker = 2;
/// Keys of a part of the longest context: fewer are not worth being combined.
constexpr int64_t keysPerPart = 256;
/// Parts that one workgroup combines in a short time.
constexpr int64_t mostParts = 1024;

struct SplitCpuAttentionPass
    : mlir::kf::impl::SplitCpuAttentionBase<SplitCpuAttentionPass> {
  using SplitCpuAttentionBase::SplitCpuAttentionBase;

  void runOnOperation() override {
    target = getCpuTarget(getOperation());
    if (!target)
      return signalPassFailure();
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) { ops.push_back(op); });
    for (AttentionOp op : ops)
      if (int64_t splits = splitsOf(op); splits > 1)
        splitAttention(op, splits);
  }

private:
  /// 1 where KV heads and rows divide evenly among the workers, 0 where the
  /// context is too short for parts.
  int64_t splitsOf(AttentionOp op) {
    auto q = cast<RankedTensorType>(op.getQ().getType());
    KVCacheType cache = op.getCache().getType();
    const int64_t threads = target.getWorkers(); // 0 where that is unknown
    int64_t groups =
        getMostRows(getOperation(), q, maxTokens) * cache.getKvHeads();
    if (!q.getElementType().isF32() || threads == 0 || groups % threads == 0)
      return 1;
    int64_t pages =
        cast<RankedTensorType>(op.getPageTable().getType()).getDimSize(1);
    int64_t most = pages / std::max<int64_t>(keysPerPart / cache.getPage(), 1);
    int64_t wanted = llvm::divideCeil(partsPerWorker * threads, groups);
    return std::min({wanted, most, mostParts});
  }

  CpuTargetAttr target;
};

} // namespace
