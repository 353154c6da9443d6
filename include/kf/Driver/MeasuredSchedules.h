//===- MeasuredSchedules.h - Schedules of the tuning database ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DRIVER_MEASUREDSCHEDULES_H
#define KF_DRIVER_MEASUREDSCHEDULES_H

#include "kf/Driver/Compiler.h"

#include <optional>
#include <string>

namespace kf {

/// Sets what `options` have of the tuning database `file`: "none" is none, and
/// nothing is that at TuningDatabase::defaultPath(), which may be missing. One
/// that cannot be read is a warning there, an error where the user names it.
/// `options.device`, `options.workers` and `options.onWarning` are to be set.
/// Warns where the database counts for other numbers of threads alone.
Status loadMeasuredSchedules(const std::optional<std::string> &file,
                             CompilerOptions &options);

} // namespace kf

#endif // KF_DRIVER_MEASUREDSCHEDULES_H
