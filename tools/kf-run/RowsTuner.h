//===- RowsTuner.h - What products read rows in, measured -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_ROWSTUNER_H
#define KF_TOOLS_KF_RUN_ROWSTUNER_H

#include "KernelTuner.h"

#include <optional>

namespace kf {

/// A step whose products read their rows as one of RowChoice::rows says.
using MakeWay = std::function<Result<TunedStep>(const std::string &rows)>;

/// Finds the fastest of `choice.rows`, each of which `makeWay` makes the step
/// with. What is measured of a way are the dispatches that others have not,
/// each kernel by the schedule that it gets: of the product, of what makes its
/// rows, and of what else reads these. What cannot be made, and kernels whose
/// results differ from the reference's, reject their way, unless it is the
/// first. None where a way has nothing that others have not. Searches for
/// `seconds`, beside what the reference takes; `onProgress` as in
/// SearchOptions. The devices must outlive the call. Errors: those of the first
/// way, and those of searchSchedules().
Result<std::optional<TuneResult>>
tuneRows(const RowChoice &choice, const MakeWay &makeWay, Device &device,
         Device &reference, const TunerOptions &options, double seconds,
         const std::function<void(double)> &onProgress);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_ROWSTUNER_H
