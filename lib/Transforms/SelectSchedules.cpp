//===- SelectSchedules.cpp - The target's schedules for kernels -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MeasuredLookup.h"

#include "mlir/AsmParser/AsmParser.h"
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

/// Takes the errors that are reported while it lives.
class TakeErrors {
public:
  explicit TakeErrors(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
            return failure();
          if (first.empty())
            first = diagnostic.str();
          return success();
        }) {}

  std::string first; ///< empty: there was none

private:
  ScopedDiagnosticHandler handler;
};

struct SelectSchedulesPass
    : mlir::kf::impl::SelectSchedulesBase<SelectSchedulesPass> {
  using SelectSchedulesBase::SelectSchedulesBase;
  explicit SelectSchedulesPass(MeasuredSchedules measured)
      : measured(std::move(measured)) {}

  void runOnOperation() override {
    TargetAttrInterface target = getTarget(getOperation());
    if (!target)
      return signalPassFailure();
    if (!target.isInterpreted()) {
      if (failed(lookup.open(getOperation(), target, measured, db, device)))
        return signalPassFailure();
      warnOfUnused();
    }
    DenseMap<StringAttr, int64_t> rows = getMostRows(getOperation());
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      auto known = rows.find(kernel.getSymNameAttr());
      if (failed(select(target, kernel,
                        known == rows.end() ? unknownRows : known->second)))
        return signalPassFailure();
    }
  }

private:
  /// Says what keeps measurements that the pass's options name from being used,
  /// if all are of another scope: of those that differ least. Or that there are
  /// none.
  void warnOfUnused() {
    if (measured.database || !lookup.hasDatabase())
      return;
    const ::kf::TuningScope &scope = lookup.scope();
    const std::vector<::kf::TuningScope> scopes = lookup.database().scopes();
    std::string least = scopes.empty() ? "it is empty" : "";
    size_t leastCount = 0;
    for (const ::kf::TuningScope &known : scopes) {
      std::string differences;
      size_t count = 0;
      auto compare = [&](StringRef of, StringRef has, StringRef here) {
        if (has == here || here.empty())
          return;
        differences += (count++ ? "; " : "") + of.str() + " '" + has.str() +
                       "', not '" + here.str() + "'";
      };
      compare("of compiler", known.compiler, scope.compiler);
      compare("for target", known.target, scope.target);
      // What a target's text leaves open is a hash, which tells nobody
      // anything.
      if (known.target == scope.target && known.identity != scope.identity)
        differences += (count++ ? "; " : "") +
                       std::string("on a machine with other features");
      compare("of device", known.device, scope.device);
      if (count == 0)
        return;
      if (least.empty() || count < leastCount) {
        least = "it has some " + differences;
        leastCount = count;
      }
    }
    if (!least.empty())
      emitWarning(getOperation().getLoc())
          << "kf-select-schedules: " << lookup.file()
          << " has no measurements for this module; " << least;
  }

  /// The schedule that was measured for `kernel`; null where there is none that
  /// the target can run.
  ScheduleAttrInterface findMeasured(TargetAttrInterface target,
                                     KernelOp kernel, int64_t rows) {
    if (!lookup.hasDatabase())
      return {};
    const ::kf::TuningEntry *entry =
        lookup.find(kernel.getLoc(), kernel.getSymName(),
                    getTuningKey(kernel, rows, lookup.scope()));
    if (!entry)
      return {};
    std::string reason;
    {
      TakeErrors errors(&getContext());
      auto schedule = dyn_cast_if_present<ScheduleAttrInterface>(
          parseAttribute(entry->schedule, &getContext()));
      kernel.setScheduleAttr(schedule);
      if (schedule && succeeded(target.verifySchedule(kernel, rows)))
        return schedule;
      kernel.removeScheduleAttr();
      reason = errors.first.empty() ? "it is no schedule" : errors.first;
    }
    kernel.emitWarning("kf-select-schedules: ")
        << lookup.file() << ": the schedule of kernel @" << kernel.getSymName()
        << ", '" << entry->schedule << "', is not used: " << reason;
    return {};
  }

  LogicalResult select(TargetAttrInterface target, KernelOp kernel,
                       int64_t rows) {
    if (target.isInterpreted())
      return target.verifySchedule(kernel, rows);
    StringRef source = "given";
    ScheduleAttrInterface schedule = kernel.getScheduleAttr();
    if (!schedule) {
      source = "measured";
      schedule = findMeasured(target, kernel, rows);
    }
    if (!schedule) {
      source = "chosen";
      schedule = target.selectSchedule(kernel, rows);
      if (!schedule)
        return failure();
    }
    kernel.setScheduleAttr(schedule);
    if (failed(target.verifySchedule(kernel, rows)))
      return failure();
    LDBG() << kernel.getSymName() << ", up to " << rows << " rows: " << source
           << " " << schedule;
    remark::passed(kernel.getLoc(), remark::RemarkOpts::name("Schedule")
                                        .category(DEBUG_TYPE)
                                        .function(kernel.getSymName()))
        << remark::add("{0}", source)
        << remark::metric("Schedule", debugString(schedule))
        << remark::metric("Rows", rows);
    return success();
  }

  MeasuredSchedules measured;
  MeasuredLookup lookup{DEBUG_TYPE};
};

} // namespace

std::unique_ptr<Pass>
mlir::kf::createSelectSchedules(MeasuredSchedules measured) {
  return std::make_unique<SelectSchedulesPass>(std::move(measured));
}
