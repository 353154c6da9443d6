//===- CeilingLoops.h - Ceilings as contenders ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_BENCHMARKS_CEILINGLOOPS_H
#define KF_BENCHMARKS_CEILINGLOOPS_H

#include "benchmarks/Comparison.h"

namespace kf::bench {

// Those of `threads` threads together. Errors: threads or memory that cannot be
// had, and a CPU without instructions for it.
Result<Entry> f32Ceiling(int threads);
/// Products of 8 bits, summed in 32.
Result<Entry> i8Ceiling(int threads);
/// Reading memory that no cache holds.
Result<Entry> readCeiling(int threads);

} // namespace kf::bench

#endif // KF_BENCHMARKS_CEILINGLOOPS_H
