//===- ProductTiles.h - What register tiles of a product share --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The policy of the fields `panels`, `row_tiles` and `groups` of `#kf.vector`,
// which follow from the tile and the workgroup that were chosen before.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TARGET_LLVMCPU_PRODUCTTILES_H
#define KF_LIB_TARGET_LLVMCPU_PRODUCTTILES_H

#include "VectorDraft.h"

namespace mlir::kf {

/// Where register tiles of 8-bit products have at most so many rows, a panel
/// that is unpacked is read too often. Up to so many rows share each part of it
/// instead, while it is in the nearest cache, and their sums with it.
inline constexpr int64_t mostRowsOfSharingTile = 5, mostSharingRows = 64;

/// Whether `rows` are more than one, and too few for unpacking a panel to pay.
bool areFewRows(int64_t rows);

/// Whether some number of rows that a workgroup of `op` multiplies is unknown
/// before it runs: of experts, of a dynamic x, and of the rows that workgroups
/// of `groupRows` (0: all) leave to the last one.
bool hasUnknownRows(ProductOpInterface op, int64_t groupRows);

/// Sets the three fields of `draft`, whose other fields are those of `op`, on a
/// CPU with so many vector registers.
void setSharing(VectorDraft &draft, ProductOpInterface op, int64_t registers);

/// Whether memory is slower than a workgroup of `draft`, a schedule of `op`, as
/// it has few rows.
bool waitsForMemory(const VectorDraft &draft, ProductOpInterface op);

/// Whether isSmallWeight() says so of the weight of `op` as `target` packs it.
bool hasSmallWeight(ProductOpInterface op, CpuTargetAttr target);

/// Sets how `draft`, whose tile, workgroup and panels are those of `op`, asks
/// for lines of the weight on `target`.
void setPrefetch(VectorDraft &draft, ProductOpInterface op,
                 CpuTargetAttr target);

} // namespace mlir::kf

#endif // KF_LIB_TARGET_LLVMCPU_PRODUCTTILES_H
