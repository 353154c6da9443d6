//===- KernelLimits.h - How large kernels may be ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TRANSFORMS_KERNELLIMITS_H
#define KF_TRANSFORMS_KERNELLIMITS_H

#include <cstddef>

namespace mlir::kf {

/// Ops of a kernel before it is tiled, views and kf.yield among them. What
/// follows the operands of ops calls itself for each.
inline constexpr size_t maxKernelOps = 1024;

} // namespace mlir::kf

#endif // KF_TRANSFORMS_KERNELLIMITS_H
