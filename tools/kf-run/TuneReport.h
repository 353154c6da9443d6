//===- TuneReport.h - What kf-run tune prints -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_TUNEREPORT_H
#define KF_TOOLS_KF_RUN_TUNEREPORT_H

#include "KernelTuner.h"

#include <span>
#include <string>

namespace kf {

/// "123.4 us".
std::string secondsText(double seconds);

/// The heads of a table's columns.
std::string tuneTableHead();
/// The rows of a kernel: its default, the fastest, what was rejected, and how
/// many others were tried.
std::string tuneTableRows(const TuneTask &task, const TuningEntry &entry);

/// The same of what products of the step of that name read their rows in.
std::string rowsTableRows(const std::string &step, const RowChoice &choice,
                          const TuningEntry &entry);

/// How the times of `step` change by the entries of those of its kernels that
/// have one, a line; empty if none has.
std::string gainText(const TunedStep &step, const TuningDatabase &database);

/// Every candidate of a kernel, and why its schedule is what it is. Without an
/// entry, what could be tried.
std::string explanation(const TuneTask &task, const TuningEntry *entry);

/// All entries, what they were measured with, and which of them are not used
/// where measurements have to be of `here`.
std::string databaseText(const TuningDatabase &database,
                         const std::string &path, const TuningScope &here);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_TUNEREPORT_H
