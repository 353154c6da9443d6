//===- VectorDraft.h - A schedule for a CPU in the making -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TARGET_LLVMCPU_VECTORDRAFT_H
#define KF_LIB_TARGET_LLVMCPU_VECTORDRAFT_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// The fields of a `#kf.vector` while it is put together.
struct VectorDraft {
  SmallVector<int64_t> workgroup, tile;
  int64_t reduction = 0, lanes = 1, unroll = 1, accumulators = 1;
  DotKind dot = DotKind::F32;
  PrefetchKind prefetch = PrefetchKind::Twice;
  int64_t hardwareRows = 0;
  PanelUse panels = PanelUse::Apart;
  RowDivision rowTiles = RowDivision::Whole;
  GroupOrder groups = GroupOrder::Together;

  VectorDraft() = default;
  explicit VectorDraft(VectorScheduleAttr schedule)
      : workgroup(schedule.getWorkgroup()), tile(schedule.getTile()),
        reduction(schedule.getReduction()), lanes(schedule.getLanes()),
        unroll(schedule.getUnroll()), accumulators(schedule.getAccumulators()),
        dot(schedule.getDot()), prefetch(schedule.getPrefetch()),
        hardwareRows(schedule.getHardwareRows()), panels(schedule.getPanels()),
        rowTiles(schedule.getRowTiles()), groups(schedule.getGroups()) {}

  VectorScheduleAttr get(MLIRContext *context) const {
    return VectorScheduleAttr::get(context, workgroup, tile, reduction, lanes,
                                   unroll, accumulators, dot, prefetch,
                                   hardwareRows, panels, rowTiles, groups);
  }
};

} // namespace mlir::kf

#endif // KF_LIB_TARGET_LLVMCPU_VECTORDRAFT_H
