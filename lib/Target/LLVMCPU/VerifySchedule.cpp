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
      .walk([](ProductOpInterface op) {
        auto w = cast<RankedTensorType>(op.getW().getType());
        return isa<QuantType>(w.getElementType()) && hasCodesOf8Bits(w)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

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
    StringRef dot = stringifyDotKind(vector.getDot());
    if (vector.getDot() == DotKind::BF16 && !target.getAmx())
      return fail("dot = bf16 needs amx of the target");
    if (vector.getDot() == DotKind::BF16Pairs && !target.getBf16Dot())
      return fail("dot = " + dot + " needs bf16_dot of the target");
    if (multipliesBytes(vector.getDot()) && !target.getInt8Dot())
      return fail("dot = " + dot + " needs int8_dot of the target");
    if (vector.getDot() == DotKind::S8 && target.takesUnsignedBytes())
      return fail("dot = s8 is for CPUs that want a sign on codes of 8 bits; "
                  "dot = i8 is this one's");
    if (vector.getDot() == DotKind::I8 && !target.takesUnsignedBytes() &&
        multipliesCodesOf8Bits(kernel))
      return fail("dot = i8 multiplies codes of 8 bits without a sign, which " +
                  stringifyByteDot(target.getByteDot()) +
                  " does not; dot = s8 does with one");
  }
  return verifyVectorSchedule(kernel, schedule, emitError);
}
