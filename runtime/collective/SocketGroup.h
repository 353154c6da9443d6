//===- SocketGroup.h - Collectives over connections -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_SOCKETGROUP_H
#define KF_RUNTIME_COLLECTIVE_SOCKETGROUP_H

#include "runtime/collective/Group.h"
#include "runtime/collective/RankLinks.h"

namespace kf {

/// A rank of a group whose links, which must outlive it, are those of rank 0 to
/// all others, or of another rank to rank 0 alone. Rank 0 gets what all ranks
/// have, puts it together, in the order of the ranks, as a ThreadGroup does,
/// and sends it to all. Errors: the links'; calls of ranks that are not the
/// same.
std::unique_ptr<Group> createSocketGroup(int64_t rank, int64_t size,
                                         RankLinks &links);

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_SOCKETGROUP_H
