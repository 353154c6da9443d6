//===- TuningFlags.h - The option --tuning-db -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_TUNINGFLAGS_H
#define KF_TOOLS_KF_RUN_TUNINGFLAGS_H

#include "OptionParser.h"

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

} // namespace kf

#endif // KF_TOOLS_KF_RUN_TUNINGFLAGS_H
