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
#include "kf/Dialect/KF/IR/Machine.h"
#include "kf/Dialect/KF/IR/MatrixUnits.h"

namespace mlir::kf {

/// Fails where convert-kf-to-vector has no code for `kernel` by `schedule`,
/// before the kernel is tiled or after. `emitError` begins the diagnostic;
/// null: there is none.
LogicalResult
verifyVectorSchedule(KernelOp kernel, ScheduleAttrInterface schedule,
                     function_ref<InFlightDiagnostic()> emitError);

/// Rows of a tile of AMX, and its columns of 32 bits.
inline constexpr int64_t amxTile = getUnitShape(MatrixUnit::Amx).lines;

/// Whether products with `dot = bf16` take `weight`: blocks, or bf16. Its
/// layout, if it has one, has panels of one or two tiles' columns, and
/// interleaves halves of bf16 as far apart as a tile's columns.
bool fitsTiles(RankedTensorType weight);
/// Steps of K, of 2 * amxTile elements, that make a turn.
inline constexpr int64_t amxTurn = 8;
/// Whether workgroups of `rowTiles` tiles of rows unpack a panel while they
/// multiply the one before: a step beside each turn, and an equal number of
/// steps beside each tile of rows. They have up to `panels` panels. K has
/// `extent` elements, and `reduction` of them in a part, or 0 if it has none: a
/// panel that is alone, in one part, has nothing to be unpacked beside.
bool unpacksAhead(int64_t rowTiles, int64_t panels, int64_t extent,
                  int64_t reduction);
/// Whether attention with `dot = bf16` takes `op`: its cache is not of f32,
/// which would be rounded, and its heads are whole steps of tiles.
bool fitsTiles(CacheAttentionInterface op);

/// Whether products with `dot = bf16_pairs` take `weight`: bf16, with pairs
/// along all of K. Its layout, if it has one, interleaves halves by vectors'
/// lanes, or not at all.
bool fitsPairs(RankedTensorType weight);

/// Whether the second-level cache of `machine` holds the weight of `op`, which
/// takes `bytes`, so that models of such are in some cache, and much of what is
/// ahead is behind the end. Adapters', which experts' products read, are as
/// small beside any model.
bool isSmallWeight(ProductOpInterface op, int64_t bytes,
                   const MachineDescription &machine);

/// Whether a workgroup of `groupRows` rows, or of all for 0, may have a single
/// register tile, of at most `most` rows, where whole tiles have `tileRows`.
bool canHaveLoneTile(ProductOpInterface op, int64_t groupRows, int64_t tileRows,
                     int64_t most);

/// Whether codes of `weight`, which is block-quantized, are bytes that have a
/// sign until they are packed (::kf::PackedBlock).
bool hasCodesOf8Bits(RankedTensorType weight);

} // namespace mlir::kf

#endif // KF_CONVERSION_VECTORSCHEDULE_H
