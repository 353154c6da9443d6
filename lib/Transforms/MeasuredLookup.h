//===- MeasuredLookup.h - What a pass looks up of measurements --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TRANSFORMS_MEASUREDLOOKUP_H
#define KF_LIB_TRANSFORMS_MEASUREDLOOKUP_H

#include "kf/Transforms/KernelKey.h"
#include "kf/Transforms/Passes.h"

namespace mlir::kf {

/// A tuning database as one pass reads it.
class MeasuredLookup {
public:
  /// `pass` begins messages, and is the category of remarks.
  explicit MeasuredLookup(StringRef pass) : pass(pass) {}

  /// Takes the database of `given`, or else loads the file `db` for `device`,
  /// where one is named, and finds what its measurements have to hold for.
  /// Fails with a diagnostic on `module`.
  LogicalResult open(ModuleOp module, TargetAttrInterface target,
                     const MeasuredSchedules &given, StringRef db,
                     StringRef device);

  bool hasDatabase() const { return measured.database != nullptr; }
  const ::kf::TuningDatabase &database() const { return *measured.database; }
  const std::string &file() const { return measured.file; }
  const ::kf::TuningScope &scope() const { return held; }

  /// What there is for `key` of something at `loc` that is called `name`; null:
  /// nothing. A remark says what was looked for.
  const ::kf::TuningEntry *find(Location loc, StringRef name,
                                const ::kf::TuningKey &key) const;

private:
  LogicalResult findDevice(ModuleOp module);

  StringRef pass;
  MeasuredSchedules measured;
  ::kf::TuningScope held;
};

} // namespace mlir::kf

#endif // KF_LIB_TRANSFORMS_MEASUREDLOOKUP_H
