//===- MpiGroup.h - Collectives by MPI --------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_MPIGROUP_H
#define KF_RUNTIME_COLLECTIVE_MPIGROUP_H

#include "runtime/collective/Group.h"
#include "runtime/collective/MpiLibrary.h"
#include "runtime/collective/RankLinks.h"

namespace kf {

/// A rank whose collectives are those of a library that has started, and which
/// ends with the links: both must outlive it. Sums are in the order that MPI
/// chooses, with equal bits on all ranks, as each element is added up in one
/// order; f16 and bf16 go as f32. `isCrowded`: more ranks than CPUs.
std::unique_ptr<Group> createMpiGroup(int64_t rank, int64_t size,
                                      MpiLibrary &library, RankLinks &links,
                                      bool isCrowded);

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_MPIGROUP_H
