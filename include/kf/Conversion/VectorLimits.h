//===- VectorLimits.h - Bounds of vector code -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_VECTORLIMITS_H
#define KF_CONVERSION_VECTORLIMITS_H

#include <cstdint>

namespace mlir::kf {

/// Vector registers that a register tile may take; more than there are, for a
/// tile that spills is slow and not wrong.
inline constexpr int64_t maxTileVectors = 256;

/// Multiplications of vectors that the unrolled steps of a register tile may
/// hold; the time of LLVM's scheduler grows with their square.
inline constexpr int64_t maxUnrolledProducts = 4096;

/// The same of register tiles of all heights together, where rows are divided
/// evenly, each of which is code of its own: tiles of five rows that share a
/// panel, which CPUs with 16 registers have, with `maxUnrolledProducts` each.
inline constexpr int64_t maxEvenProducts = 6 * maxUnrolledProducts;

/// Bytes of scratch memory that one workgroup may take; every thread has them.
inline constexpr int64_t maxScratchBytes = int64_t(1) << 30;

} // namespace mlir::kf

#endif // KF_CONVERSION_VECTORLIMITS_H
