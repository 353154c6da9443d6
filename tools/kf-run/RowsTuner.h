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

namespace kf {

/// Finds the fastest of `choice.rows`. `ways` are the step as each of these
/// makes it, in their order. What is measured of a way are the dispatches that
/// others have not, each kernel by the schedule that it gets: of the product,
/// of what makes its rows, and of what else reads these. Kernels whose results
/// differ from the reference's reject their way. Searches for `seconds`;
/// `onProgress` as in SearchOptions. The devices must outlive the call. Errors:
/// those of searchSchedules().
Result<TuneResult> tuneRows(const RowChoice &choice,
                            std::span<const TunedStep> ways, Device &device,
                            Device &reference, const TunerOptions &options,
                            double seconds,
                            const std::function<void(double)> &onProgress);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_ROWSTUNER_H
