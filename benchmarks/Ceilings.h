//===- Ceilings.h - What this machine can do at most ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_BENCHMARKS_CEILINGS_H
#define KF_BENCHMARKS_CEILINGS_H

#include <cstddef>
#include <cstdint>

namespace kf::bench {

/// Runs `iterations` rounds of independent f32 fused multiply-adds in registers
/// on the calling thread, and returns how many floating-point operations those
/// are (a multiply-add is two).
double fmaLoop(int64_t iterations);

/// Sums `bytes` at `data` with wide loads; the result only keeps the loads
/// alive.
float readLoop(const float *data, size_t bytes);

} // namespace kf::bench

#endif // KF_BENCHMARKS_CEILINGS_H
