//===- SplitAttention.cpp - Keys of few rows for many multiprocessors -----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/SplitAttention.h"
#include "kf/Target/NVVM/Codegen.h"
#include "kf/Target/NVVM/Passes.h"
#include "kf/Transforms/KernelKey.h"

namespace mlir::kf {
#define GEN_PASS_DEF_SPLITNVVMATTENTION
#include "kf/Target/NVVM/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Keys of the longest context from which on combining parts is less than what
/// they save, and of a part of it.
constexpr int64_t leastKeys = 1024, keysPerPart = 128;
/// Parts that a thread combines in a short time.
constexpr int64_t mostParts = 64;

struct SplitNvvmAttentionPass
    : mlir::kf::impl::SplitNvvmAttentionBase<SplitNvvmAttentionPass> {
  using SplitNvvmAttentionBase::SplitNvvmAttentionBase;

  void runOnOperation() override {
    TargetAttrInterface target = getTarget(getOperation());
    auto cuda = dyn_cast_if_present<CudaTargetAttr>(target);
    if (!cuda) {
      if (target)
        getOperation().emitError("the module is for ")
            << target << ", and this pass is for a #kf.cuda_target";
      return signalPassFailure();
    }
    const int64_t multiprocessors = getMultiprocessors(cuda);
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) { ops.push_back(op); });
    for (AttentionOp op : ops)
      if (int64_t splits = splitsOf(op, multiprocessors); splits > 1)
        splitAttention(op, splits);
  }

private:
  /// 1 where there are as many KV heads of rows as multiprocessors, or the
  /// context is too short for parts.
  int64_t splitsOf(AttentionOp op, int64_t multiprocessors) {
    auto q = cast<RankedTensorType>(op.getQ().getType());
    KVCacheType cache = op.getCache().getType();
    int64_t groups =
        getMostRows(getOperation(), q, maxTokens) * cache.getKvHeads();
    int64_t keys;
    if (llvm::MulOverflow(
            cast<RankedTensorType>(op.getPageTable().getType()).getDimSize(1),
            cache.getPage(), keys))
      keys = INT64_MAX;
    if (!q.getElementType().isF32() || groups == 0 || keys < leastKeys)
      return 1;
    int64_t pagesOfPart =
        llvm::divideCeil(keysPerPart, std::min(cache.getPage(), keysPerPart));
    return std::min({multiprocessors / groups,
                     keys / cache.getPage() / pagesOfPart, mostParts});
  }
};

} // namespace
