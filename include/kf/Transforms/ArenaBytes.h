//===- ArenaBytes.h - Memory of a tensor ------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TRANSFORMS_ARENABYTES_H
#define KF_TRANSFORMS_ARENABYTES_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// Bytes that a tensor with `rows` in place of `?` has in a program's arena;
/// fails where 64 bits cannot count them.
FailureOr<int64_t> getArenaBytes(RankedTensorType type, int64_t rows);

} // namespace mlir::kf

#endif // KF_TRANSFORMS_ARENABYTES_H
