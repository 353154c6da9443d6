//===- CudaMachine.cpp - What NVIDIA GPUs have ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only place that knows chips by their numbers. Their sizes are those of
// the CUDA C++ Programming Guide's table of compute capabilities; rates of
// units those of NVIDIA's papers on architectures.
//
//===----------------------------------------------------------------------===//

#include "kf/Target/NVVM/Codegen.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

constexpr int64_t kibibyte = 1024;

struct Chip {
  unsigned number;
  int64_t memory; ///< that a workgroup may ask for
  Multiprocessor ofEach;
};
/// Multiprocessors of chips for servers, and of those that draw pictures, too,
/// whose units do half as much.
constexpr Multiprocessor large{/*lanes=*/128,
                               /*threads=*/2048,
                               /*workgroups=*/32,
                               /*registers=*/65536,
                               /*memory=*/228 * kibibyte,
                               /*memoryBytesPerCycle=*/128,
                               /*mmaProductsPerCycle=*/1024};
constexpr Multiprocessor small{/*lanes=*/128,
                               /*threads=*/1536,
                               /*workgroups=*/24,
                               /*registers=*/65536,
                               /*memory=*/100 * kibibyte,
                               /*memoryBytesPerCycle=*/128,
                               /*mmaProductsPerCycle=*/512};
constexpr Chip chips[] = {
    {80, 163 * kibibyte, {64, 2048, 32, 65536, 164 * kibibyte, 128, 1024}},
    {86, 99 * kibibyte, {128, 1536, 16, 65536, 100 * kibibyte, 128, 512}},
    {87, 163 * kibibyte, {128, 1536, 16, 65536, 164 * kibibyte, 128, 1024}},
    {89, 99 * kibibyte, small},
    {90, 227 * kibibyte, large},
    {100, 227 * kibibyte, large},
    {103, 227 * kibibyte, large},
    {110, 227 * kibibyte, {128, 1536, 24, 65536, 228 * kibibyte, 128, 1024}},
    {120, 99 * kibibyte, small},
    {121, 99 * kibibyte, small}};

/// Of a chip that is not known, no more memory is taken than every chip has.
constexpr Chip unknown{0, kCudaStaticSharedBytes, small};

const Chip &chipOf(StringRef name) {
  const unsigned number = CudaTargetAttr::parseNumber(name).value_or(0);
  const Chip *found = llvm::find_if(
      chips, [&](const Chip &chip) { return chip.number == number; });
  return found == std::end(chips) ? unknown : *found;
}

} // namespace

int64_t mlir::kf::getCudaSharedBytes(StringRef chip) {
  return chipOf(chip).memory;
}

MachineDescription mlir::kf::describeCudaMachine(CudaTargetAttr target) {
  const StringRef chip = target.getChip();
  const bool isHopperOrLater = CudaTargetAttr::parseNumber(chip) >= 90u;
  MachineDescription machine;
  machine.name = "CUDA";
  machine.chip = chip;
  machine.units = {MatrixUnit::MmaSync, MatrixUnit::Tf32Pairs};
  if (chip == "sm_90a") // no later chip has these instructions
    machine.units.push_back(MatrixUnit::Wgmma);
  machine.threads = 1024;
  machine.memory = target.getMemory();
  machine.multiprocessors =
      target.getMultiprocessors() > 0 ? target.getMultiprocessors() : 128;
  machine.ofEach = chipOf(chip).ofEach;
  if (isHopperOrLater)
    machine.clusterWorkgroups = kMostClusterParts;
  machine.asyncCopyBytes = 16;
  machine.warpThreads = 32;
  machine.hasDependentLaunch = isHopperOrLater;
  machine.convertsFloat8 = isHopperOrLater; // sm_89 needs PTX 8.1
  machine.sharesRegisters = true;
  return machine;
}
