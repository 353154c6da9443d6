//===- Workers.h - How work is shared by a CPU's threads --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the parts of the CPU's policy agree on: the schedules of kernels, and
// which ops become kernels of their own.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TARGET_LLVMCPU_WORKERS_H
#define KF_LIB_TARGET_LLVMCPU_WORKERS_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <algorithm>

namespace mlir::kf {

/// Workgroups for each worker: enough for workers to end at about the same
/// time, even where one of them loses its processor for a while.
inline constexpr int64_t groupsPerWorker = 4;
/// Workers where their number is not known.
inline constexpr int64_t unknownWorkers = 8;
inline int64_t threadsOf(CpuTargetAttr target) {
  return target.getWorkers() ? target.getWorkers() : unknownWorkers;
}

/// What the CPU has, by what the target says.
MachineDescription describeCpuMachine(CpuTargetAttr target);

/// Columns of the panels that weights are laid out in: two vectors. A workgroup
/// has whole panels.
inline int64_t panelOf(CpuTargetAttr target) { return 2 * target.getLanes(); }

/// Columns of a workgroup of 8-bit products of many rows that rounds its rows
/// itself, which takes about a tenth of the time.
inline constexpr int64_t int8Columns = 512;

/// Groups that an 8-bit product of `rows` rows and `columns` columns should be
/// divided into where each rounds its rows: of columns, unless there are groups
/// of rows as well.
inline int64_t int8ColumnGroups(int64_t rows, int64_t columns,
                                int64_t workers) {
  int64_t wanted = groupsPerWorker * workers;
  if (workers == 1)
    return 1;
  return rows == 1 ? wanted
                   : std::clamp(columns / int8Columns, workers, wanted);
}

/// Whether a product of so many rows with `weight` is one of tiles.
bool usesTiles(CpuTargetAttr target, RankedTensorType weight, int64_t rows);

/// Whether it is one of pairs of bf16.
bool usesPairs(CpuTargetAttr target, RankedTensorType weight, int64_t rows);

/// The CPU that the module around `function` is for; null, with a diagnostic,
/// where it is for none.
CpuTargetAttr getCpuTarget(func::FuncOp function);

} // namespace mlir::kf

#endif // KF_LIB_TARGET_LLVMCPU_WORKERS_H
