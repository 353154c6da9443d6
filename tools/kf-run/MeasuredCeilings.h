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

/// measureRates(), with that warning where it is due.
Result<MachineRates> measureCeilings(Device &device,
                                     const CeilingOptions &options);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_MEASUREDCEILINGS_H
