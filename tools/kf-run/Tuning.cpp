//===- Tuning.cpp - The database of measured schedules --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tuning.h"

#include "Report.h"

using namespace kf;

void TuningFlags::addTo(OptionParser &parser) {
  parser.text({"tuning-db", 0, "FILE|none"}, file,
              "the file of measured schedules, which 'kf-run tune' writes; by "
              "default tuning.json beside the cache of compiled programs, if "
              "it is there");
  parser.addCheck([this] { return check(); });
}

Status TuningFlags::check() const {
  if (file != "-")
    return Status();
  return Status::error("--tuning-db takes the path of a file; ./- is one that "
                       "is called so");
}

Status kf::loadTuning(const TuningFlags &flags, CompilerOptions &options) {
  // The reference has no schedules.
  if (flags.file == "none" || options.target == "reference")
    return Status();
  if (flags.file) {
    Result<TuningDatabase> database = TuningDatabase::loadExisting(*flags.file);
    if (!database.ok())
      return database.status().in("--tuning-db");
    options.tuning = std::make_shared<const TuningDatabase>(database.take());
    options.tuningFile = *flags.file;
    return Status();
  }
  const Result<std::string> path = TuningDatabase::defaultPath();
  if (!path.ok()) // nor is there a cache, which is warned of
    return Status();
  Result<TuningDatabase> database = TuningDatabase::load(*path);
  if (!database.ok()) {
    printWarning(database.message() + "; going on without measured schedules");
    return Status();
  }
  if (database->size() == 0)
    return Status();
  options.tuning = std::make_shared<const TuningDatabase>(database.take());
  options.tuningFile = *path;
  return Status();
}
