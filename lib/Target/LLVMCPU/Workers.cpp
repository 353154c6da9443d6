//===- Workers.cpp - How work is shared by a CPU's threads ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Workers.h"

#include "kf/Conversion/VectorSchedule.h"
#include "kf/Target/LLVMCPU/TileRows.h"

using namespace mlir;
using namespace mlir::kf;

MachineDescription mlir::kf::describeCpuMachine(CpuTargetAttr target) {
  MachineDescription machine;
  machine.name = "CPU";
  if (target.getInt8Dot())
    machine.units.push_back(MatrixUnit::Bytes);
  if (target.getBf16Dot())
    machine.units.push_back(MatrixUnit::Bf16Pairs);
  if (target.getAmx())
    machine.units.push_back(MatrixUnit::Amx);
  machine.multiprocessors = threadsOf(target);
  machine.sharesRegisters = false;
  machine.vectorLanes = target.getLanes();
  machine.vectorRegisters = target.countRegisters();
  // x86 does where it has vectors of 8 lanes.
  machine.fusesMultiplyAdd =
      machine.vectorLanes != 4 || machine.vectorRegisters == 32;
  machine.usualHertz = 3e9;
  machine.usualReadBytesPerSecond = 1e10;
  return machine;
}

bool mlir::kf::usesTiles(CpuTargetAttr target, RankedTensorType weight,
                         int64_t rows) {
  return target.getAmx() && fitsTiles(weight) &&
         rows >= (isa<QuantType>(weight.getElementType())
                      ? fewestTileRowsOfBlocks
                      : fewestTileRows);
}

bool mlir::kf::usesPairs(CpuTargetAttr target, RankedTensorType weight,
                         int64_t rows) {
  return target.getBf16Dot() && fitsPairs(weight) && rows >= fewestPairRows &&
         !usesTiles(target, weight, rows);
}

CpuTargetAttr mlir::kf::getCpuTarget(func::FuncOp function) {
  TargetAttrInterface target = getTarget(function);
  auto cpu = dyn_cast_if_present<CpuTargetAttr>(target);
  if (target && !cpu)
    function.emitError("the module is for ")
        << target << ", and this pass is for a #kf.cpu_target";
  return cpu;
}
