//===- CopyProgram.h - A program that copies ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_COPYPROGRAM_H
#define KF_TOOLS_KF_RUN_COPYPROGRAM_H

#include "runtime/devices/Device.h"

namespace kf {

/// CeilingOptions::copyProgram: compiles for `device`, as it reports itself.
Result<Executable> compileCopy(const Device &device, int64_t rows);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_COPYPROGRAM_H
