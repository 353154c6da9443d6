//===- TileRows.h - Rows that are worth tiles or pairs ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_LLVMCPU_TILEROWS_H
#define KF_TARGET_LLVMCPU_TILEROWS_H

#include <cstdint>

namespace mlir::kf {

/// Rows from which on the CPU target multiplies by tiles: fewer take longer to
/// unpack the weight for than to multiply.
inline constexpr int64_t fewestTileRows = 32, fewestTileRowsOfBlocks = 128;
/// The same for pairs of bf16: memory is the limit of fewer rows, which are not
/// rounded, then.
inline constexpr int64_t fewestPairRows = 8;

} // namespace mlir::kf

#endif // KF_TARGET_LLVMCPU_TILEROWS_H
