//===- VectorSchedule.h - What vector code asks of a schedule ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Legality of `#kf.vector`, whatever the machine: what targets check of the
// schedules that people write, and emitters rely on.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_VECTORSCHEDULE_H
#define KF_CONVERSION_VECTORSCHEDULE_H

#include "kf/Conversion/VectorLimits.h"
#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Dialect/KF/IR/MatrixUnits.h"

namespace mlir::kf {

/// Fails where convert-kf-to-vector has no code for `kernel` by `schedule`,
/// before the kernel is tiled or after. `emitError` begins the diagnostic;
/// null: there is none.
LogicalResult
verifyVectorSchedule(KernelOp kernel, ScheduleAttrInterface schedule,
                     function_ref<InFlightDiagnostic()> emitError);

/// Whether products with `dot` are of rows in 8 bits.
inline bool multipliesBytes(DotKind dot) {
  return dot == DotKind::I8 || dot == DotKind::S8;
}

/// Register tiles of a workgroup, and rows of all of them, that have to share a
/// panel for unpacking it to pay: while it is unpacked for the first of a few,
/// memory is the limit, and what was unpacked goes to the second cache and
/// back.
inline constexpr int64_t fewestUnpackedTiles = 4, fewestUnpackedRows = 32;

/// Vector registers that a product needs beside its sums: two for a row of the
/// panel, and one for an element of x.
inline constexpr int64_t registersBesideSums = 3;

/// Whether so many vector registers hold `sums` while they are made; 0 are of a
/// machine that does not say how many it has: yes.
inline bool holdsSums(int64_t registers, int64_t sums) {
  return registers == 0 || sums + registersBesideSums <= registers;
}

/// Whether there are few rows of `x`, `rows` at most, and any number of them.
inline bool hasAnyFewRows(RankedTensorType x, int64_t rows) {
  return x.isDynamicDim(0) && rows > 1 && rows < fewestUnpackedRows;
}

/// Where register tiles of 8-bit products have at most so many rows, a panel
/// that is unpacked is read too often. Up to so many rows share each part of it
/// instead, while it is in the nearest cache, and their sums with it.
inline constexpr int64_t mostRowsOfSharingTile = 5, mostSharingRows = 64;

/// Whether a workgroup of `rows` rows, of which a register tile has `tileRows`,
/// has too few for unpacking to pay.
inline bool hasFewRows(DotKind dot, int64_t tileRows, int64_t rows) {
  const bool shares =
      multipliesBytes(dot) && tileRows > 2 && tileRows <= mostRowsOfSharingTile;
  return rows < fewestUnpackedRows || (shares && rows <= mostSharingRows);
}

/// Whether it has any number of rows of `x` as few as that: it divides them
/// evenly, and sums up groups in turn. More than two register tiles of 8-bit
/// products share what one of them takes apart.
inline bool dividesEvenly(RankedTensorType x, DotKind dot, int64_t tileRows,
                          int64_t rows) {
  return x.isDynamicDim(0) && tileRows > 2 && hasFewRows(dot, tileRows, rows);
}

/// Rows of a tile of AMX, and its columns of 32 bits.
inline constexpr int64_t amxTile = getUnitShape(MatrixUnit::Amx).lines;

/// Whether products with `dot = bf16` take `weight`: blocks, or bf16. Its
/// layout, if it has one, has panels of one or two tiles' columns, and
/// interleaves halves of bf16 as far apart as a tile's columns.
bool fitsTiles(RankedTensorType weight);

/// Whether products with `dot = bf16_pairs` take `weight`: bf16, with pairs
/// along all of K. Its layout, if it has one, interleaves halves by vectors'
/// lanes, or not at all.
bool fitsPairs(RankedTensorType weight);

/// Whether codes of `weight`, which is block-quantized, are bytes that have a
/// sign until they are packed (::kf::PackedBlock).
bool hasCodesOf8Bits(RankedTensorType weight);

} // namespace mlir::kf

#endif // KF_CONVERSION_VECTORSCHEDULE_H
