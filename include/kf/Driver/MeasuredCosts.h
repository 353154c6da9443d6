//===- MeasuredCosts.h - Which machine costs are from -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DRIVER_MEASUREDCOSTS_H
#define KF_DRIVER_MEASUREDCOSTS_H

#include "runtime/core/Status.h"

#include <string>

namespace kf {

/// The machine that those costs were measured on by which the compiler chooses
/// schedules for `target` (CompilerOptions::target): "NVIDIA H200". Empty: they
/// are estimated. Error: a target that there is no code for.
Result<std::string> measuredMachineOf(const std::string &target);

} // namespace kf

#endif // KF_DRIVER_MEASUREDCOSTS_H
