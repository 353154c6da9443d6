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

/// One thread's f32 multiply-adds in registers.
Entry multiplyAddCeiling();
/// One thread's reads of memory that no cache holds.
Entry readCeiling();

} // namespace kf::bench

#endif // KF_BENCHMARKS_CEILINGLOOPS_H
