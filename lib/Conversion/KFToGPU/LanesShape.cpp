//===- LanesShape.cpp - Few rows without matrix units ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelShapes.h"
#include "Products/LaneTiles.h"

#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;
using namespace mlir::kf;

/// Sums that a thread keeps in registers, and vectors of x that it reads before
/// it stores the first.
static constexpr int64_t lanesSums = 64, lanesBatch = 4;

/// Numbers of experts that a workgroup looks at for each row that goes with
/// others, about.
static constexpr int64_t windowOfRow = 512;

/// How a workgroup of `threads` threads finds up to `rows` rows of an expert.
/// Parts of the window are few where it is small: a thread looks at all of one,
/// and then at what was found in the others.
static ExpertGroups findExpertGroups(KernelOp kernel, int64_t rows,
                                     int64_t threads) {
  auto type = cast<RankedTensorType>(kernel.getResultTypes()[0]);
  ExpertGroups groups;
  groups.rows = rows;
  groups.top = type.getDimSize(1); // a tile of the product has one of them
  int64_t tokens = std::max<int64_t>(
      windowOfRow * rows / std::max<int64_t>(groups.top, 1), 1);
  if (!type.isDynamicDim(0))
    tokens = std::clamp<int64_t>(type.getDimSize(0), 1, tokens);
  groups.window = llvm::alignTo(tokens, rows);
  while (groups.parts * groups.parts < groups.window * groups.top &&
         2 * groups.parts * rows <= threads)
    groups.parts *= 2;
  return groups;
}

FailureOr<KernelShape> mlir::kf::getLanesShape(KernelOp kernel,
                                               LanesScheduleAttr schedule,
                                               FailFn fail) {
  ArrayRef<int64_t> workgroup = schedule.getWorkgroup();
  auto found = findProductOfFewRows(kernel, "#kf.lanes", workgroup, fail);
  if (failed(found))
    return failure();
  ProductOpInterface op = *found;
  auto experts = dyn_cast<ExpertMatmulOp>(op.getOperation());
  auto w = cast<RankedTensorType>(op.getW().getType());
  KernelShape shape;
  LanesShape &lanes = shape.lanes.emplace();
  lanes.rows = workgroup[0];
  if (lanes.rows > StreamShape::mostRows)
    return fail("#kf.lanes multiplies at most " + Twine(StreamShape::mostRows) +
                " rows, found " + Twine(lanes.rows));
  auto x = cast<RankedTensorType>(op.getX().getType());
  if (!experts && !x.isDynamicDim(0)) // of an expert, one may have all rows
    lanes.rows = std::clamp<int64_t>(x.getDimSize(0), 1, lanes.rows);
  lanes.warps = schedule.getWarps();
  lanes.tiles = schedule.getTiles();
  lanes.blockWarps = schedule.getBlockWarps();
  const ::kf::FragmentTile tile = *getFragmentTile(w.getElementType());
  lanes.tileColumns = tile.columns;
  lanes.tileBytes = tile.bytes;
  lanes.tilesOfRow = tile.tilesOf(w.getShape().back());
  if (lanes.stepColumns() % LanesShape::unitColumns != 0)
    return fail("tiles (" + Twine(lanes.tiles) + ") must be a multiple of " +
                Twine(LanesShape::unitColumns / tile.columns) +
                " where they have " + Twine(tile.columns) + " columns of K");
  if (auto quant = dyn_cast<QuantType>(w.getElementType())) {
    const ::kf::BlockFormat &format = getStorage(quant.getFormat());
    lanes.hasHalves = schedule.getCodes() == LaneCodes::Halves;
    lanes.hasTable = format.table != nullptr;
    if (lanes.hasHalves && lanes.hasTable)
      return fail("codes that are entries of a table have codes = words, found "
                  "codes = halves");
    if (lanes.hasHalves) {
      lanes.partColumns = tile.columns;
      lanes.sumColumns = format.minOffset >= 0 ? format.subBlock : 0;
    } else {
      lanes.partColumns = getPartSpans(format) * ::kf::FragmentTile::span;
      lanes.hasSumsOfX = needsSumsOfX(format);
    }
    if (lanes.tiles != 1)
      return fail("blocks have tiles = 1, a step is what codes says; found "
                  "tiles = " +
                  Twine(lanes.tiles));
  } else if (schedule.getCodes() == LaneCodes::Halves) {
    return fail("codes = halves are of blocks, found " + debugString(w));
  }
  shape.groups = op.getGlu() ? 2 : 1;
  lanes.blockColumns = ::kf::FragmentTile::rows / shape.groups;
  shape.columns = workgroup.back();
  lanes.rounds = schedule.getRounds();
  const int64_t ofWarp = lanes.rounds * lanes.blockWarps * lanes.blockColumns;
  if (shape.columns % ofWarp != 0)
    return fail("columns (" + Twine(shape.columns) +
                ") must be a multiple of " + Twine(ofWarp) +
                ", a row block for each of block_warps in each of rounds");
  lanes.blocks = shape.columns / ofWarp;
  if (lanes.sums() > lanesSums)
    return fail("a thread has " + Twine(lanes.sums()) +
                " sums, and registers for " + Twine(lanesSums));
  const int64_t round = lanes.shares() * lanes.stepColumns();
  const int64_t steps = llvm::divideCeil(
      lanes.partColumns ? w.getShape().back() : lanes.tilesOfRow,
      lanes.partColumns ? lanes.partColumns : lanes.tiles);
  lanes.steps = steps;
  lanes.sliceSteps =
      schedule.getReduction() == 0
          ? steps
          : std::min(schedule.getReduction() / lanes.stepColumns(), steps);
  if (lanes.sliceSteps == 0 || schedule.getReduction() % round != 0)
    return fail("reduction (" + Twine(schedule.getReduction()) +
                ") must be a multiple of " + Twine(round) +
                ", a step of all warps that divide K");
  lanes.slices = llvm::divideCeil(steps, lanes.sliceSteps);
  if (experts)
    lanes.experts = findExpertGroups(kernel, lanes.rows, lanes.threads());
  setThreads(shape, kernel, {lanes.threads()});
  shape.rows = lanes.rows;
  shape.statistics = statisticsOf(op.getX().getDefiningOp());
  shape.workgroupBytes += 4 * shape.statistics * shape.rows + lanes.bytes();
  shape.batch = lanesBatch;
  return shape;
}
