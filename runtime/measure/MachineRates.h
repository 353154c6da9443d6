//===- MachineRates.h - What a machine can do at most -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain data, which the compiler's cost models read too; Ceilings.h measures
// it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MEASURE_MACHINERATES_H
#define KF_RUNTIME_MEASURE_MACHINERATES_H

#include <algorithm>
#include <array>
#include <cstdint>

namespace kf {

/// What a device does at most with `threads` threads together. 0 stands for
/// what is not known. A multiply-add is two operations. Of devices that are not
/// the host, the first is what copies in their memory read and write.
struct MachineRates {
  double readBytesPerSecond = 0; ///< from memory, far beyond all caches
  double f32FlopsPerSecond = 0;  ///< fused multiply-adds of f32 in registers
  double i8OpsPerSecond = 0;     ///< multiply-adds of 8 bits, in vectors
  double i8TileOpsPerSecond = 0; ///< the same in tiles
  double bf16FlopsPerSecond = 0; ///< multiply-adds of bf16, in tiles or vectors
  int64_t threads = 0;           ///< of the host; 0 for other devices
};

inline constexpr std::array kMachineRates = {
    &MachineRates::readBytesPerSecond, &MachineRates::f32FlopsPerSecond,
    &MachineRates::i8OpsPerSecond, &MachineRates::i8TileOpsPerSecond,
    &MachineRates::bf16FlopsPerSecond};

/// Of `count` machines, or devices of one, each of which has `rates`.
inline MachineRates ratesOf(MachineRates rates, int64_t count) {
  for (double MachineRates::*rate : kMachineRates)
    rates.*rate *= static_cast<double>(count);
  rates.threads *= count;
  return rates;
}

/// Of each kind of weights the rate of the unit that multiplies them fastest:
/// blocks, whose rows may be rounded to 8 bits, in i8OpsPerSecond, and bf16 in
/// bf16FlopsPerSecond.
inline MachineRates fastestUnits(MachineRates rates) {
  rates.bf16FlopsPerSecond =
      std::max(rates.bf16FlopsPerSecond, rates.f32FlopsPerSecond);
  rates.i8OpsPerSecond =
      std::max({rates.i8OpsPerSecond, rates.i8TileOpsPerSecond,
                rates.bf16FlopsPerSecond});
  return rates;
}

} // namespace kf

#endif // KF_RUNTIME_MEASURE_MACHINERATES_H
