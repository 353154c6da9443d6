//===- GpuCosts.cpp - What tiles cost on a chip ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/GpuCosts.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// What one chip's file holds.
struct ChipCosts {
  StringLiteral chip;         ///< without the letter of its own instructions
  StringLiteral machine;      ///< that was measured
  double mmaProductsPerCycle; ///< of a multiprocessor
  double dequantization, alone, exchange;
  int64_t clustered;
  MmaTileCost tiles[24];
};

constexpr ChipCosts sm90 = {
#include "costs/sm_90.inc"
};

constexpr const ChipCosts *measured[] = {&sm90};
/// What others are estimated from.
constexpr const ChipCosts &model = sm90;

/// Bytes that come to a multiprocessor's workgroup memory in a cycle. With it,
/// cyclesOf() is within an eighth of the costs of `model`, but up to a fifth
/// below those of 32 and 48 rows.
constexpr double copiedBytesPerCycle = 53;

/// Cycles of a multiprocessor for a multiply-add of a tile: its unit's, and
/// those in which what it multiplies, of 16 bits, is copied.
double cyclesOf(const MmaTile &tile, double mmaProductsPerCycle) {
  const double units = tile.unit == MatrixUnit::Wgmma ? 2 : 1;
  const auto rows = static_cast<double>(tile.rows);
  const auto lines = static_cast<double>(tile.lines);
  return 1 / (units * mmaProductsPerCycle) +
         2 * (rows + lines) / (rows * lines) / copiedBytesPerCycle;
}

} // namespace

int64_t GpuCosts::countClustersAtOnce(const MachineDescription &machine,
                                      int64_t parts) const {
  const int64_t usable = parts > 2 ? machine.multiprocessors * clustered / 12
                                   : machine.multiprocessors;
  return std::max<int64_t>(usable / parts, 1);
}

GpuCosts mlir::kf::getGpuCosts(const MachineDescription &machine) {
  const StringRef chip = machine.chip.rtrim("af");
  const auto *found = llvm::find_if(
      measured, [&](const ChipCosts *costs) { return costs->chip == chip; });
  const bool isMeasured = found != std::end(measured);
  const ChipCosts &from = isMeasured ? **found : model;
  GpuCosts costs;
  if (isMeasured)
    costs.measuredOn = from.machine;
  costs.tiles.assign(std::begin(from.tiles), std::end(from.tiles));
  costs.dequantization = from.dequantization;
  costs.alone = from.alone;
  costs.exchange = from.exchange;
  costs.clustered = from.clustered;
  if (isMeasured)
    return costs;
  // What the formula says of the two chips, relative to their first tile.
  auto relative = [](const MmaTile &tile, double products) {
    return cyclesOf(tile, products) / cyclesOf(model.tiles[0].tile, products);
  };
  const auto products = static_cast<double>(machine.ofEach.mmaProductsPerCycle);
  for (auto &[tile, slowness] : costs.tiles)
    slowness *=
        relative(tile, products) / relative(tile, model.mmaProductsPerCycle);
  return costs;
}
