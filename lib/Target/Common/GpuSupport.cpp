//===- GpuSupport.cpp - Schedules that GPUs can run -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether a device has what a schedule asks for. Which kernels there is code
// for is decided in Conversion/KernelSupport.h, which schedule one gets in
// GpuSchedules.cpp.
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/GpuSupport.h"

#include "kf/Conversion/KernelShape.h"
#include "kf/Conversion/KernelSupport.h"

using namespace mlir;
using namespace mlir::kf;

LogicalResult
mlir::kf::verifyGpuSchedule(KernelOp kernel, ScheduleAttrInterface schedule,
                            const MachineDescription &machine,
                            function_ref<InFlightDiagnostic()> emitError) {
  FailureOr<KernelShape> shape = getKernelShape(kernel, schedule, emitError);
  if (failed(shape))
    return failure();
  auto fail = [&](const Twine &message) {
    if (emitError)
      emitError() << "schedule cannot run on this device: " << message;
    return failure();
  };
  if (shape->flashMma && !machine.has(MatrixUnit::MmaSync))
    return fail("#kf.flash_mma needs matrix units of 16-bit floats; use "
                "#kf.flash");
  if (shape->coop || shape->flashCoop) {
    const MatrixUnit unit =
        shape->coop ? cast<MmaScheduleAttr>(schedule).getUnit()
                    : cast<FlashMmaScheduleAttr>(schedule).getUnit();
    if (!machine.has(unit))
      return fail(Twine("unit = ") + stringifyMatrixUnit(unit) +
                  " is of Vulkan devices whose subgroups multiply matrices of "
                  "that type");
  }
  if (shape->mma && !machine.has(MatrixUnit::MmaSync))
    return fail("#kf.mma is for the matrix units of NVIDIA GPUs");
  if (((shape->mma && shape->mma->isForWarpgroups) ||
       (shape->flashMma && shape->flashMma->isForWarpgroups)) &&
      !machine.has(MatrixUnit::Wgmma))
    return fail("unit = wgmma is of sm_90a; use unit = mma_sync");
  if (auto stream = dyn_cast<StreamScheduleAttr>(schedule);
      stream && !machine.has(stream.getUnit()))
    return fail("#kf.stream needs the matrix units of NVIDIA GPUs");
  if (shape->lanes && machine.has(MatrixUnit::MmaSync))
    return fail("#kf.lanes is for GPUs whose matrix units have no code; use "
                "#kf.stream");
  if (shape->lanes && shape->lanes->hasHalves && !machine.hasHalves)
    return fail("codes = halves is for devices with f16 and i16; use codes = "
                "words");
  if (schedule.getParts() > machine.clusterWorkgroups)
    return fail(
        "parts are a cluster of workgroups, which sm_90 and later have");
  if (shape->threadCount > machine.threads)
    return fail("threads are " + Twine(shape->threadCount) +
                " a workgroup, the device allows " + Twine(machine.threads));
  if (shape->workgroupBytes > machine.memory)
    return fail("it needs " + Twine(shape->workgroupBytes) +
                " bytes of workgroup memory, the device has " +
                Twine(machine.memory));
  return success();
}

LogicalResult mlir::kf::verifyGpuSchedule(KernelOp kernel,
                                          const MachineDescription &machine,
                                          int64_t rows) {
  return failure(
      failed(checkGpuSupport(kernel, machine, rows)) ||
      failed(verifyGpuSchedule(kernel, kernel.getScheduleAttr(), machine,
                               [&] { return kernel.emitError(); })));
}
