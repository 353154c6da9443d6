//===- ProductTiles.cpp - What register tiles of a product share ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductTiles.h"

#include "kf/Conversion/VectorSchedule.h"

using namespace mlir;
using namespace mlir::kf;

/// Register tiles of a workgroup, and rows of all of them, that have to share a
/// panel for unpacking it to pay: while it is unpacked for the first of a few,
/// memory is the limit, and what was unpacked goes to the second cache and
/// back.
static constexpr int64_t fewestUnpackedTiles = 4, fewestUnpackedRows = 32;

/// Register tiles that share each part of a panel: two are as fast with codes
/// that both take apart.
static constexpr int64_t fewestSharingTiles = 3;

/// Rows of a tile from which on it pays to divide rows evenly.
static constexpr int64_t fewestRowsOfEvenTile = 3;

/// Vector registers that a product needs beside its sums: two for a row of the
/// panel, and one for an element of x.
static constexpr int64_t registersBesideSums = 3;

bool mlir::kf::areFewRows(int64_t rows) {
  return rows > 1 && rows < fewestUnpackedRows;
}

bool mlir::kf::hasUnknownRows(ProductOpInterface op, int64_t groupRows) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  if (isa<ExpertMatmulOp>(op.getOperation()) || x.isDynamicDim(0))
    return true;
  const int64_t rows = x.getDimSize(0);
  return groupRows != 0 && rows > groupRows && rows % groupRows != 0;
}

void mlir::kf::setSharing(VectorDraft &draft, ProductOpInterface op,
                          int64_t registers) {
  draft.panels = PanelUse::Apart;
  draft.rowTiles = RowDivision::Whole;
  draft.groups = GroupOrder::Together;
  if (draft.dot == DotKind::BF16)
    return;
  auto x = cast<RankedTensorType>(op.getX().getType());
  auto w = cast<RankedTensorType>(op.getW().getType());
  const bool isOfBytes = multipliesBytes(draft.dot);
  const bool hasExperts = isa<ExpertMatmulOp>(op.getOperation());
  const int64_t tileRows = draft.tile[0];
  int64_t rows = hasExperts ? draft.tile[2] : draft.workgroup[0];
  if (rows == 0)
    rows = x.getDimSize(0);
  const int64_t tiles = llvm::divideCeil(rows, tileRows);
  const int64_t most = tiles * tileRows;
  const bool sharesWell = isOfBytes && tileRows >= fewestRowsOfEvenTile &&
                          tileRows <= mostRowsOfSharingTile &&
                          most <= mostSharingRows;
  const bool hasFewRows = most < fewestUnpackedRows || sharesWell;
  // Of many rows, the smaller tiles of those that are left are little; of a
  // number that is known, the tile's height fits them.
  const bool isEven = hasFewRows && tileRows >= fewestRowsOfEvenTile &&
                      hasUnknownRows(op, draft.workgroup[0]);
  if (isEven)
    draft.rowTiles = RowDivision::Even;
  if (isEven && isOfBytes && tiles >= fewestSharingTiles)
    draft.panels = PanelUse::Shared;
  else if (!hasFewRows && tiles >= fewestUnpackedTiles &&
           !w.getElementType().isF32())
    draft.panels = PanelUse::Unpacked;
  // Of one row, memory is read from one end to the other then; of few, and
  // where registers do not hold the sums of both groups, they hold those of
  // more rows. Other tiles share what is loaded of x.
  if (!op.getGlu() || isOfBytes)
    return;
  const int64_t sums = tileRows * 2 * draft.tile[1] / draft.lanes;
  const bool holdsSums =
      registers == 0 || sums + registersBesideSums <= registers;
  if (most == 1 || isEven || !holdsSums)
    draft.groups = GroupOrder::InTurn;
}
