//===- CountWork.h - What a kernel has to move and compute ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TRANSFORMS_COUNTWORK_H
#define KF_TRANSFORMS_COUNTWORK_H

#include "kf/Dialect/KF/IR/KF.h"
#include "runtime/program/KernelWork.h"

#include <optional>

namespace mlir::kf {

/// What `kernel` has to do, by its ops and the types of its operands; a weight
/// with a layout counts as that lies in memory. Products are of 8 bits where x
/// is, or where the schedule says so, and of bf16 where it says that:
/// without a schedule, count again once there is one. Nothing for a kernel that
/// is tiled already, or with an op that is not known here.
std::optional<::kf::KernelWork> countWork(KernelOp kernel);

/// The bytes of it, with `rows` in place of every `?`, whatever ops `kernel`
/// has; what attention reads of a cache is left out. 0 where 64 bits cannot
/// count them.
double countBytes(KernelOp kernel, int64_t rows);

} // namespace mlir::kf

#endif // KF_TRANSFORMS_COUNTWORK_H
