//===- KernelSupport.h - Which kernels there is code for --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one answer to whether a kernel has code, whatever its schedule: its ops,
// their types and sizes, and what they read of one another. Targets ask before
// they choose a schedule or accept one, and emitters before they emit, of the
// tiled kernel. The diagnostic is on the op or on the kernel, and says what
// there is no code for and what there is instead.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KERNELSUPPORT_H
#define KF_CONVERSION_KERNELSUPPORT_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// Workgroups along a dimension that every GPU allows.
inline constexpr uint64_t kMostGroups = 65535;

/// Fails where convert-kf-to-vector has no code for `kernel`.
LogicalResult checkVectorSupport(KernelOp kernel);

/// Fails where the reference cannot interpret `kernel`.
LogicalResult checkReferenceSupport(KernelOp kernel);

/// Fails where convert-kf-to-gpu, or what lowers its code for `machine`, has
/// none for `kernel` with up to `rows` rows.
LogicalResult checkGpuSupport(KernelOp kernel,
                              const MachineDescription &machine, int64_t rows);

} // namespace mlir::kf

#endif // KF_CONVERSION_KERNELSUPPORT_H
