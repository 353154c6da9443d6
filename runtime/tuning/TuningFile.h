//===- TuningFile.h - The text of a tuning database -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TUNING_TUNINGFILE_H
#define KF_RUNTIME_TUNING_TUNINGFILE_H

#include "runtime/tuning/TuningDatabase.h"

#include <map>
#include <string>
#include <string_view>

namespace kf {

/// An error says what of `entry` no file may have.
Status checkTuningEntry(const TuningEntry &entry);

/// The entries of a file's text, which is as TuningDatabase.h has it. Errors
/// name the entry; `text` is checked in full.
Result<std::map<TuningKey, TuningEntry>>
readTuningEntries(std::string_view text);

/// The inverse.
std::string tuningFileText(const std::map<TuningKey, TuningEntry> &entries);

} // namespace kf

#endif // KF_RUNTIME_TUNING_TUNINGFILE_H
