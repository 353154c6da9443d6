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

/// Whether a product in `kernel` has such a weight, before the kernel is tiled
/// or after.
static bool multipliesCodesOf8Bits(KernelOp kernel) {
  return kernel
      .walk([](MatmulOp op) {
        auto w = cast<RankedTensorType>(op.getW().getType());
        return isa<QuantType>(w.getElementType()) && hasCodesOf8Bits(w)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult mlir::kf::verifyCpuSchedule(KernelOp kernel,
                                          CpuTargetAttr target) {
  auto begin = [&] {
    return kernel.emitError("schedule cannot run on this CPU: ");
  };
  if (auto schedule = dyn_cast<VectorScheduleAttr>(kernel.getScheduleAttr())) {
    if (schedule.getLanes() > target.getLanes())
      return begin() << "lanes = " << schedule.getLanes()
                     << " exceeds the register's " << target.getLanes();
    StringRef dot = stringifyDotKind(schedule.getDot());
    if (schedule.getDot() != DotKind::F32 && !target.getInt8Dot())
      return begin() << "dot = " << dot << " needs int8_dot of the target";
    if (schedule.getDot() == DotKind::S8 && target.takesUnsignedBytes())
      return begin() << "dot = s8 is for CPUs that want a sign on codes of 8 "
                        "bits; dot = i8 is this one's";
    if (schedule.getDot() == DotKind::I8 && !target.takesUnsignedBytes() &&
        multipliesCodesOf8Bits(kernel))
      return begin() << "dot = i8 multiplies codes of 8 bits without a sign, "
                        "which "
                     << stringifyByteDot(target.getByteDot())
                     << " does not; dot = s8 does with one";
  }
  return verifyVectorSchedule(kernel, begin);
}
