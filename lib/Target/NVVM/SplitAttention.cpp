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

struct SplitNvvmAttentionPass
    : mlir::kf::impl::SplitNvvmAttentionBase<SplitNvvmAttentionPass> {
  using SplitNvvmAttentionBase::SplitNvvmAttentionBase;

  void runOnOperation() override {
    TargetAttrInterface target = getTarget(getOperation());
    if (!isa_and_nonnull<CudaTargetAttr>(target)) {
      if (target)
        getOperation().emitError("the module is for ")
            << target << ", and this pass is for a #kf.cuda_target";
      return signalPassFailure();
    }
    const MachineDescription machine = target.getMachine();
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) { ops.push_back(op); });
    for (AttentionOp op : ops) {
      auto q = cast<RankedTensorType>(op.getQ().getType());
      const int64_t rows = getMostRows(getOperation(), q, maxTokens);
      // The schedule divides what a cluster computes.
      if (countClusterParts(op, rows, machine) > 1)
        continue;
      int64_t splits = countAttentionParts(op, rows, machine);
      if (splits > 1)
        splitAttention(op, splits);
    }
  }
};

} // namespace
