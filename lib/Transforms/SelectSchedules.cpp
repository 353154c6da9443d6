//===- SelectSchedules.cpp - The target's schedules for kernels -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/KernelKey.h"
#include "kf/Transforms/Passes.h"

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
    if (!target.isInterpreted() &&
        (failed(openDatabase()) || failed(findScope(target))))
      return signalPassFailure();
    DenseMap<StringAttr, int64_t> rows = getMostRows(getOperation());
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      auto known = rows.find(kernel.getSymNameAttr());
      if (failed(select(target, kernel,
                        known == rows.end() ? unknownRows : known->second)))
        return signalPassFailure();
    }
  }

private:
  /// Loads the database that the pass's options name.
  LogicalResult openDatabase() {
    if (db.empty() || measured.database)
      return success();
    ::kf::Result<::kf::TuningDatabase> loaded =
        ::kf::TuningDatabase::loadExisting(db);
    if (!loaded.ok())
      return emitError(getOperation().getLoc())
             << "kf-select-schedules: " << loaded.message();
    measured = {std::make_shared<const ::kf::TuningDatabase>(loaded.take()), db,
                device};
    isNamed = true;
    return success();
  }

  /// Sets what measurements have to hold for.
  LogicalResult findScope(TargetAttrInterface target) {
    if (!measured.database)
      return success();
    scope = getTuningScope(target, measured.device);
    if (scope.device.empty() && failed(findDevice()))
      return failure();
    warnOfUnused();
    return success();
  }

  /// Takes the only device that measurements are of.
  LogicalResult findDevice() {
    for (const ::kf::TuningScope &known : measured.database->scopes()) {
      if (known.target != scope.target || known.identity != scope.identity ||
          known.compiler != scope.compiler)
        continue;
      if (!scope.device.empty())
        return emitError(getOperation().getLoc())
               << "kf-select-schedules: " << measured.file
               << " has measurements of several devices; say with device="
                  " whether '"
               << scope.device << "' or '" << known.device << "' is meant";
      scope.device = known.device;
    }
    return success();
  }

  /// Says what keeps measurements that the pass's options name from being used,
  /// if all are of another scope: of those that differ least. Or that there are
  /// none.
  void warnOfUnused() {
    if (!isNamed)
      return;
    const std::vector<::kf::TuningScope> scopes = measured.database->scopes();
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
          << "kf-select-schedules: " << measured.file
          << " has no measurements for this module; " << least;
  }

  /// The schedule that was measured for `kernel`; null where there is none that
  /// the target can run.
  ScheduleAttrInterface findMeasured(TargetAttrInterface target,
                                     KernelOp kernel, int64_t rows) {
    if (!measured.database)
      return {};
    const ::kf::TuningKey key = getTuningKey(kernel, rows, scope);
    remark::analysis(kernel.getLoc(), remark::RemarkOpts::name("TuningKey")
                                          .category(DEBUG_TYPE)
                                          .function(kernel.getSymName()))
        << remark::metric("Kernel", key.kernel) << remark::metric("Rows", rows)
        << remark::metric("Target", scope.target)
        << remark::metric("Identity", scope.identity)
        << remark::metric("Device", scope.device)
        << remark::metric("Compiler", scope.compiler);
    const ::kf::TuningEntry *entry = measured.database->find(key);
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
        << measured.file << ": the schedule of kernel @" << kernel.getSymName()
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
  bool isNamed = false; ///< `measured` by the pass's options
  ::kf::TuningScope scope;
};

} // namespace

std::unique_ptr<Pass>
mlir::kf::createSelectSchedules(MeasuredSchedules measured) {
  return std::make_unique<SelectSchedulesPass>(std::move(measured));
}
