//===- MeasuredCeilings.h - Ceilings, and whether they hold -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_MEASUREDCEILINGS_H
#define KF_TOOLS_KF_RUN_MEASUREDCEILINGS_H

#include "runtime/measure/Ceilings.h"

namespace kf {

/// Warns that others had cores while ceilings were measured.
void warnOfLowCeilings();

/// Has GPUs measured with programs that `compile` makes as well, as
/// CeilingOptions::copyProgram: for main() of a program that has a compiler,
/// once.
void installCopyCompiler(Result<Executable> (*compile)(const Device &device,
                                                       int64_t rows));

/// measureRates() with these programs, and a warning where others had cores;
/// where `disturbed` is not null, that is set instead.
Result<MachineRates> measureCeilings(Device &device, CeilingOptions options,
                                     bool *disturbed = nullptr);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_MEASUREDCEILINGS_H
