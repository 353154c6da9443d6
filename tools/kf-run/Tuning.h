//===- Tuning.h - The database of measured schedules ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_TUNING_H
#define KF_TOOLS_KF_RUN_TUNING_H

#include "OptionParser.h"

#include "kf/Driver/Compiler.h"

#include <optional>
#include <string>

namespace kf {

/// What `--tuning-db` says, of every command that compiles.
struct TuningFlags {
  /// The file, or "none"; without it, TuningDatabase::defaultPath().
  std::optional<std::string> file;

  /// Adds the option to `parser`.
  void addTo(OptionParser &parser);
  /// An error where `file` is "-", which is a stream of other options.
  Status check() const;
};

/// Sets what `options` have of the database. That at the default path may be
/// missing; one that cannot be read is a warning there, an error where the user
/// names it. `options.device` and `options.workers` are to be set. Says so
/// where the database counts for other numbers of threads alone.
Status loadTuning(const TuningFlags &flags, CompilerOptions &options);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_TUNING_H
