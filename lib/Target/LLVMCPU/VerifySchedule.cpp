//===- VerifySchedule.cpp - Schedules that a CPU can run ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifySchedule.h"

#include "kf/Conversion/VectorSchedule.h"

using namespace mlir;
using namespace mlir::kf;

LogicalResult mlir::kf::verifyCpuSchedule(KernelOp kernel,
                                          CpuTargetAttr target) {
  auto begin = [&] {
    return kernel.emitError("schedule cannot run on this CPU: ");
  };
  if (auto schedule = dyn_cast<VectorScheduleAttr>(kernel.getScheduleAttr())) {
    if (schedule.getLanes() > target.getLanes())
      return begin() << "lanes = " << schedule.getLanes()
                     << " exceeds the register's " << target.getLanes();
    if (schedule.getDot() == DotKind::I8 && !target.getInt8Dot())
      return begin() << "dot = i8 needs VNNI";
  }
  return verifyVectorSchedule(kernel, begin);
}
