//===- ThreadGroup.h - Ranks in one process ---------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_THREADGROUP_H
#define KF_RUNTIME_COLLECTIVE_THREADGROUP_H

#include "runtime/collective/Group.h"

namespace kf {

/// The ranks of a group, by number, each for a thread of its own. Sums are in
/// the order of the ranks, so that all ranks and all runs have equal bits. A
/// rank ends when its Group does. Waits spin briefly, then sleep. Errors: fewer
/// than 2 ranks, more than kMaxRanks; calls of ranks that are not the same.
Result<std::vector<std::unique_ptr<Group>>> createThreadGroup(int64_t ranks);

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_THREADGROUP_H
