//===- SelectSchedules.cpp - The target's schedules for kernels -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/KernelKey.h"
#include "kf/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/Support/DebugLog.h"

namespace mlir::kf {
#define GEN_PASS_DEF_SELECTSCHEDULES
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

#define DEBUG_TYPE "kf-select-schedules"

namespace {

struct SelectSchedulesPass
    : mlir::kf::impl::SelectSchedulesBase<SelectSchedulesPass> {
  void runOnOperation() override {
    TargetAttrInterface target = getTarget(getOperation());
    if (!target)
      return signalPassFailure();
    if (target.isInterpreted())
      return;
    DenseMap<StringAttr, int64_t> rows = getMostRows(getOperation());
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      auto known = rows.find(kernel.getSymNameAttr());
      if (failed(select(target, kernel,
                        known == rows.end() ? unknownRows : known->second)))
        return signalPassFailure();
    }
  }

private:
  LogicalResult select(TargetAttrInterface target, KernelOp kernel,
                       int64_t rows) {
    bool isGiven = kernel.getScheduleAttr() != nullptr;
    if (!isGiven) {
      ScheduleAttrInterface schedule = target.selectSchedule(kernel, rows);
      if (!schedule)
        return failure();
      kernel.setScheduleAttr(schedule);
    }
    if (failed(target.verifySchedule(kernel, rows)))
      return failure();
    StringRef source = isGiven ? "given" : "chosen";
    LDBG() << kernel.getSymName() << ", up to " << rows << " rows: " << source
           << " " << kernel.getScheduleAttr();
    remark::passed(kernel.getLoc(), remark::RemarkOpts::name("Schedule")
                                        .category(DEBUG_TYPE)
                                        .function(kernel.getSymName()))
        << remark::add("{0}", source)
        << remark::metric("Schedule", debugString(kernel.getScheduleAttr()))
        << remark::metric("Rows", rows);
    return success();
  }
};

} // namespace
