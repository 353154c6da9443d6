//===- GpuTarget.h - What GPUs answer alike ---------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_GPUTARGET_H
#define KF_TARGET_COMMON_GPUTARGET_H

#include "kf/Target/Common/GpuCostModel.h"
#include "kf/Target/Common/GpuCosts.h"
#include "kf/Target/Common/GpuSchedules.h"
#include "runtime/core/ExpertTiles.h"

namespace mlir::kf {

/// The base of a GPU's model of TargetAttrInterface. `Model` has a static
/// MachineDescription describe(TargetAttr).
template <typename Model, typename TargetAttr>
struct GpuTargetModel : TargetAttrInterface::ExternalModel<Model, TargetAttr> {
  MachineDescription getMachine(Attribute target) const {
    return Model::describe(cast<TargetAttr>(target));
  }
  FusionRules getFusionRules(Attribute) const { return getGpuFusionRules(); }
  /// The order in which lanes of matrix units, or threads like them, read it.
  Attribute getWeightLayout(Attribute target, RankedTensorType weight) const {
    Type element = weight.getElementType();
    bool isPacked =
        getFragmentTile(element) && ::kf::hasRowBlocks(weight.getShape());
    return isPacked ? FragmentsAttr::get(target.getContext()) : Attribute();
  }
  StringRef getMeasuredMachine(Attribute target) const {
    return getGpuCosts(getMachine(target)).measuredOn;
  }
  KVCacheType getCacheLayout(Attribute, KVCacheType cache) const {
    return cache.withKeyBlock(1);
  }
  SmallVector<Type> getRowTypes(Attribute target, Operation *op,
                                int64_t rows) const {
    return getGpuRowTypes(op, getMachine(target), rows);
  }
  ScheduleAttrInterface selectSchedule(Attribute target, KernelOp kernel,
                                       int64_t rows) const {
    return selectGpuSchedule(kernel, getMachine(target), rows);
  }
  LogicalResult verifySchedule(Attribute target, KernelOp kernel,
                               int64_t rows) const {
    return verifyGpuSchedule(kernel, getMachine(target), rows);
  }
  SmallVector<ScheduleAttrInterface>
  getScheduleCandidates(Attribute target, KernelOp kernel, int64_t rows) const {
    return getGpuScheduleCandidates(kernel, getMachine(target), rows);
  }
  double predictSeconds(Attribute target, KernelOp kernel,
                        ScheduleAttrInterface schedule, int64_t rows,
                        const ::kf::MachineRates &rates) const {
    return predictGpuSeconds(kernel, schedule, rows, rates, getMachine(target));
  }
};

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_GPUTARGET_H
