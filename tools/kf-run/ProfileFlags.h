//===- ProfileFlags.h - What --profile asks for -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_PROFILEFLAGS_H
#define KF_TOOLS_KF_RUN_PROFILEFLAGS_H

#include "OptionParser.h"

#include "runtime/measure/Profile.h"

#include <memory>
#include <optional>
#include <string>

namespace kf {

/// `--profile`, which prints a table of kernels to stderr, and
/// `--profile=FILE`, which writes a trace as well; so does `--profile x.json`.
struct ProfileFlags {
  /// Where the trace goes; empty: the table alone. Nothing: no profile.
  std::optional<std::string> file;

  /// Adds the option to `parser`.
  void addTo(OptionParser &parser);
  /// What takes the times; null where nobody asks.
  std::unique_ptr<Profile> make() const;
};

/// Prints the table of `profile`, with the ceilings of `device`, which it
/// measures, and the tables of `others`, and writes the trace where one is
/// asked for. Errors name the file.
Status showProfile(const ProfileFlags &flags, const Profile &profile,
                   Device &device, const std::string &others = {});

} // namespace kf

#endif // KF_TOOLS_KF_RUN_PROFILEFLAGS_H
