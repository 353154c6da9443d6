//===- SelectRows.cpp - How kernels of products read their rows -----------===//
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

#include <set>

namespace mlir::kf {
#define GEN_PASS_DEF_SELECTROWS
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

#define DEBUG_TYPE "kf-select-rows"

namespace {

struct SelectRowsPass : mlir::kf::impl::SelectRowsBase<SelectRowsPass> {
  using SelectRowsBase::SelectRowsBase;
  SelectRowsPass(int64_t mostTokens, MeasuredSchedules measured)
      : measured(std::move(measured)) {
    maxTokens = mostTokens;
  }

  void runOnOperation() override {
    TargetAttrInterface target = getTarget(getOperation());
    if (!target ||
        failed(lookup.open(getOperation(), target, measured, db, device)))
      return signalPassFailure();
    warned.clear();
    for (const PlainProduct &product :
         findPlainProducts(getOperation(), maxTokens))
      select(target, product);
  }

private:
  void select(TargetAttrInterface target, const PlainProduct &product) {
    ProductOpInterface op = product.op;
    StringRef source = "given";
    if (!op.getRowsAttr()) {
      const SmallVector<Type> types = target.getRowTypes(op, product.rows);
      source = "measured";
      RowsAttr rows = findMeasured(product, types);
      if (!rows) {
        source = "chosen";
        rows = RowsAttr::get(&getContext(), types.front());
      }
      op.setRowsAttr(rows);
    }
    const Type type = op.getRowsAttr().getElement();
    LDBG() << op->getName() << " at " << op.getLoc() << ", up to "
           << product.rows << " rows: " << source << " " << type;
    remark::passed(op.getLoc(), remark::RemarkOpts::name("Rows")
                                    .category(DEBUG_TYPE)
                                    .function(nameOf(op)))
        << remark::add("{0}", source)
        << remark::metric("Type", debugString(type))
        << remark::metric("Rows", product.rows);
  }

  /// What was measured to be the fastest of `types`; null where nothing was.
  RowsAttr findMeasured(const PlainProduct &product, ArrayRef<Type> types) {
    if (!lookup.hasDatabase() || types.size() < 2)
      return {};
    ProductOpInterface op = product.op;
    const ::kf::TuningKey key = getTuningKey(product, lookup.scope());
    const ::kf::TuningEntry *entry = lookup.find(op.getLoc(), nameOf(op), key);
    if (!entry)
      return {};
    const RowsAttr rows = parseRows(entry->schedule);
    if (rows && llvm::is_contained(types, rows.getElement()))
      return rows;
    // Products of all layers share one.
    if (warned.insert(key).second)
      warn(op, *entry, types);
    return {};
  }

  /// Null, without an error, where `text` is something else.
  RowsAttr parseRows(StringRef text) {
    ScopedDiagnosticHandler quiet(&getContext(),
                                  [](Diagnostic &) { return success(); });
    return dyn_cast_if_present<RowsAttr>(parseAttribute(text, &getContext()));
  }

  void warn(ProductOpInterface op, const ::kf::TuningEntry &entry,
            ArrayRef<Type> types) {
    InFlightDiagnostic warning = op->emitWarning("kf-select-rows: ");
    warning << lookup.file() << ": '" << entry.schedule
            << "' is not used: the target reads these rows in ";
    llvm::interleave(types, warning, " or ");
  }

  static StringRef nameOf(ProductOpInterface op) {
    return op->getParentOfType<func::FuncOp>().getSymName();
  }

  MeasuredSchedules measured;
  MeasuredLookup lookup{DEBUG_TYPE};
  std::set<::kf::TuningKey> warned; ///< of this run
};

} // namespace

std::unique_ptr<Pass> mlir::kf::createSelectRows(int64_t maxTokens,
                                                 MeasuredSchedules measured) {
  return std::make_unique<SelectRowsPass>(maxTokens, std::move(measured));
}
