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

#include <cstdint>

namespace kf {

/// What a device does at most with `threads` threads together. 0 stands for
/// what is not known. A multiply-add is two operations. Of devices that are not
/// the host, the first is what copies in their memory read and write.
struct MachineRates {
  double readBytesPerSecond = 0; ///< from memory, far beyond all caches
  double f32FlopsPerSecond = 0;  ///< fused multiply-adds of f32 in registers
  double i8OpsPerSecond = 0;     ///< multiply-adds of 8 bits, in vectors
  double bf16FlopsPerSecond = 0; ///< multiply-adds of bf16, in tiles or vectors
  int64_t threads = 0;           ///< of the host; 0 for other devices
};

/// Of `count` machines, or devices of one, each of which has `rates`.
inline MachineRates ratesOf(const MachineRates &rates, int64_t count) {
  const auto times = static_cast<double>(count);
  return {.readBytesPerSecond = times * rates.readBytesPerSecond,
          .f32FlopsPerSecond = times * rates.f32FlopsPerSecond,
          .i8OpsPerSecond = times * rates.i8OpsPerSecond,
          .bf16FlopsPerSecond = times * rates.bf16FlopsPerSecond,
          .threads = count * rates.threads};
}

} // namespace kf

#endif // KF_RUNTIME_MEASURE_MACHINERATES_H
