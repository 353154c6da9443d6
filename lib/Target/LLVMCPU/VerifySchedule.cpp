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

LogicalResult
mlir::kf::verifyCpuSchedule(KernelOp kernel, ScheduleAttrInterface schedule,
                            CpuTargetAttr target,
                            function_ref<InFlightDiagnostic()> emitError) {
  auto fail = [&](const Twine &message) {
    if (emitError)
      emitError() << message;
    return failure();
  };
  if (auto vector = dyn_cast<VectorScheduleAttr>(schedule)) {
    if (vector.getLanes() > target.getLanes())
      return fail("lanes = " + Twine(vector.getLanes()) +
                  " exceeds the register's " + Twine(target.getLanes()));
    if (vector.getDot() == DotKind::I8 && !target.getInt8Dot())
      return fail("dot = i8 needs VNNI");
  }
  return verifyVectorSchedule(kernel, schedule, emitError);
}
