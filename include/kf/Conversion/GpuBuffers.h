//===- GpuBuffers.h - What GPU code reads and writes ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_GPUBUFFERS_H
#define KF_CONVERSION_GPUBUFFERS_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// The flat memref that a kernel of convert-kf-to-gpu has for an argument or a
/// result of `type`, a tensor or a cache that checkGpuSupport() found good.
MemRefType getGpuBuffer(Type type);

} // namespace mlir::kf

#endif // KF_CONVERSION_GPUBUFFERS_H
