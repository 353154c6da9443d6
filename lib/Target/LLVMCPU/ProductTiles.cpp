//===- ProductTiles.cpp - What register tiles of a product share ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductTiles.h"
#include "Workers.h"

#include "kf/Conversion/VectorSchedule.h"
#include "kf/Transforms/ArenaBytes.h"

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

/// Rows of a workgroup with fewer of which products wait for memory.
static constexpr int64_t fewestRowsOfCompute = 32;

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

/// Register tiles of a workgroup's rows, or of those of an expert at a time.
static int64_t countTiles(const VectorDraft &draft, ProductOpInterface op) {
  int64_t rows = isa<ExpertMatmulOp>(op.getOperation()) ? draft.tile[2]
                                                        : draft.workgroup[0];
  if (rows == 0)
    rows = cast<RankedTensorType>(op.getX().getType()).getDimSize(0);
  return llvm::divideCeil(rows, draft.tile[0]);
}

bool mlir::kf::hasSmallWeight(ProductOpInterface op, CpuTargetAttr target) {
  auto w = cast<RankedTensorType>(op.getW().getType());
  FailureOr<int64_t> bytes = getArenaBytes(w, /*rows=*/1);
  return succeeded(bytes) &&
         isSmallWeight(op, *bytes, describeCpuMachine(target));
}

/// Rows of codes in 8 bits that are multiplied faster than the weight comes,
/// where that is one stream: low and high bits of codes are two.
static int64_t rowsThatWait(ProductOpInterface op) {
  auto w = cast<RankedTensorType>(op.getW().getType());
  const ::kf::BlockFormat &format =
      getStorage(cast<QuantType>(w.getElementType()).getFormat());
  return format.high.bits ? 0 : format.codeBits() / 2;
}

bool mlir::kf::waitsForMemory(const VectorDraft &draft, ProductOpInterface op) {
  return countTiles(draft, op) * draft.tile[0] < fewestRowsOfCompute;
}

void mlir::kf::setPrefetch(VectorDraft &draft, ProductOpInterface op,
                           CpuTargetAttr target) {
  draft.prefetch = PrefetchKind::Twice;
  draft.hardwareRows = 0;
  if (draft.dot == DotKind::BF16)
    return;
  const bool isOfBytes = multipliesBytes(draft.dot);
  const int64_t tileRows = draft.tile[0], tiles = countTiles(draft, op);
  if (tiles == 1 && (!isOfBytes || tileRows == 1)) {
    if (!hasSmallWeight(op, target))
      draft.prefetch = target.getPrefetch();
  } else if (target.getPrefetch() != PrefetchKind::Hardware) {
    return;
  } else if (isOfBytes) {
    const int64_t most = rowsThatWait(op);
    if (draft.panels != PanelUse::Unpacked &&
        canHaveLoneTile(op, draft.workgroup[0], tileRows, most))
      draft.hardwareRows = most;
  } else if (waitsForMemory(draft, op)) {
    draft.prefetch = PrefetchKind::Hardware;
  }
}

void mlir::kf::setSharing(VectorDraft &draft, ProductOpInterface op,
                          int64_t registers) {
  draft.panels = PanelUse::Apart;
  draft.rowTiles = RowDivision::Whole;
  draft.groups = GroupOrder::Together;
  if (draft.dot == DotKind::BF16)
    return;
  auto w = cast<RankedTensorType>(op.getW().getType());
  const bool isOfBytes = multipliesBytes(draft.dot);
  const int64_t tileRows = draft.tile[0], tiles = countTiles(draft, op);
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
