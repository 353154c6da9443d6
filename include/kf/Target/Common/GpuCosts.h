//===- GpuCosts.h - What tiles cost on a chip -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Costs belong to a chip. Those of one that was measured are in a file of
// lib/Target/Common/costs, which benchmarks/tile_costs.py writes; those of
// others are estimated: see docs/decisions/cost-model.md.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_GPUCOSTS_H
#define KF_TARGET_COMMON_GPUCOSTS_H

#include "kf/Dialect/KF/IR/Machine.h"

namespace mlir::kf {

/// A tile of a product of many rows on matrix units: rows of x and lines of the
/// weight, warps that divide them, K of a step, stages, and the unit that
/// multiplies it.
struct MmaTile {
  int64_t rows, lines, rowWarps, lineWarps, step, stages;
  MatrixUnit unit;
};

/// How long a tile takes for its size, relative to the first.
struct MmaTileCost {
  MmaTile tile;
  double slowness;
};

struct GpuCosts {
  /// The machine that was measured ("NVIDIA H200"); empty: none was.
  StringRef measuredOn;
  /// Of two that take as long, the first is taken.
  SmallVector<MmaTileCost, 16> tiles;
  /// What it takes longer to dequantize lines for 128 rows.
  double dequantization;
  /// How much longer a workgroup of 4 warps takes alone than where two take
  /// turns.
  double alone;
  /// Columns of K that another part of a product costs, whose workgroups wait
  /// for one another and read their sums.
  double exchange;
  /// Of twelve multiprocessors, those that are in clusters of more than two
  /// workgroups.
  int64_t clustered;

  /// Clusters of `parts` workgroups, one to a multiprocessor, that `machine`
  /// has at once, one at least. Two workgroups have neighbours everywhere; not
  /// all multiprocessors are in groups of four and of eight that one cluster
  /// can have.
  int64_t countClustersAtOnce(const MachineDescription &machine,
                              int64_t parts) const;
};

/// The costs of a GPU with matrix units.
GpuCosts getGpuCosts(const MachineDescription &machine);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_GPUCOSTS_H
