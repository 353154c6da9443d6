//===- MeasuredLookup.cpp - What a pass looks up of measurements ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MeasuredLookup.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::kf;

LogicalResult MeasuredLookup::open(ModuleOp module, TargetAttrInterface target,
                                   const MeasuredSchedules &given, StringRef db,
                                   StringRef device) {
  measured = given;
  if (!db.empty() && !measured.database) {
    ::kf::Result<::kf::TuningDatabase> loaded =
        ::kf::TuningDatabase::loadExisting(db.str());
    if (!loaded.ok())
      return emitError(module.getLoc()) << pass << ": " << loaded.message();
    measured = {std::make_shared<const ::kf::TuningDatabase>(loaded.take()),
                db.str(), device.str()};
  }
  if (!measured.database)
    return success();
  held = getTuningScope(target, measured.device);
  return held.device.empty() ? findDevice(module) : success();
}

/// Takes the only device that measurements are of.
LogicalResult MeasuredLookup::findDevice(ModuleOp module) {
  for (const ::kf::TuningScope &known : measured.database->scopes()) {
    if (known.target != held.target || known.identity != held.identity ||
        known.compiler != held.compiler)
      continue;
    if (!held.device.empty())
      return emitError(module.getLoc())
             << pass << ": " << measured.file
             << " has measurements of several devices; say with device="
                " whether '"
             << held.device << "' or '" << known.device << "' is meant";
    held.device = known.device;
  }
  return success();
}

const ::kf::TuningEntry *
MeasuredLookup::find(Location loc, StringRef name,
                     const ::kf::TuningKey &key) const {
  remark::analysis(
      loc, remark::RemarkOpts::name("TuningKey").category(pass).function(name))
      << remark::metric("Kernel", key.kernel)
      << remark::metric("Rows", key.rows)
      << remark::metric("Target", held.target)
      << remark::metric("Identity", held.identity)
      << remark::metric("Device", held.device)
      << remark::metric("Compiler", held.compiler);
  return measured.database->find(key);
}
