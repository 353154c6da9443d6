//===- PrintScheduleCandidates.cpp - What a target would measure ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/KernelKey.h"
#include "kf/Transforms/Passes.h"

#include "runtime/measure/MachineRates.h"

#include "llvm/Support/Format.h"

namespace mlir::kf {
#define GEN_PASS_DEF_PRINTSCHEDULECANDIDATES
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

struct PrintScheduleCandidatesPass
    : mlir::kf::impl::PrintScheduleCandidatesBase<PrintScheduleCandidatesPass> {
  using PrintScheduleCandidatesBase::PrintScheduleCandidatesBase;

  void runOnOperation() override {
    TargetAttrInterface target = getTarget(getOperation());
    if (!target)
      return signalPassFailure();
    markAllAnalysesPreserved();
    if (target.isInterpreted())
      return;
    DenseMap<StringAttr, int64_t> rows = getMostRows(getOperation());
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      auto known = rows.find(kernel.getSymNameAttr());
      if (failed(print(target, kernel,
                       known == rows.end() ? unknownRows : known->second)))
        return signalPassFailure();
    }
  }

private:
  LogicalResult print(TargetAttrInterface target, KernelOp kernel,
                      int64_t rows) {
    SmallVector<ScheduleAttrInterface> candidates =
        target.getScheduleCandidates(kernel, rows);
    if (candidates.empty())
      return failure();
    ::kf::MachineRates machine;
    machine.readBytesPerSecond = read;
    machine.f32FlopsPerSecond = f32;
    machine.i8OpsPerSecond = i8;
    machine.threads = threads;
    SmallVector<std::pair<double, size_t>> ranked; // seconds, candidate
    for (auto [number, candidate] : llvm::enumerate(candidates))
      ranked.emplace_back(
          target.predictSeconds(kernel, candidate, rows, machine), number);
    llvm::sort(ranked);
    llvm::raw_ostream &out = llvm::outs();
    out << "kernel @" << kernel.getSymName() << ", up to " << rows
        << " rows: " << candidates.size() << " candidates\n";
    for (auto [place, each] : llvm::enumerate(ranked)) {
      bool isDefault = each.second == 0;
      if (most > 0 && static_cast<int64_t>(place) >= most && !isDefault)
        continue;
      out << "  " << llvm::format("%.3e", each.first) << " s "
          << candidates[each.second] << (isDefault ? " (default)" : "") << "\n";
    }
    return success();
  }
};

} // namespace
