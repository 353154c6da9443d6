//===- OtherRanks.h - The ranks that a session leads ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_OTHERRANKS_H
#define KF_RUNTIME_SESSION_OTHERRANKS_H

#include "runtime/collective/Group.h"
#include "runtime/engine/RankLeader.h"

namespace kf {

/// Ranks 1, 2, ... of a session's model, wherever they are. They end with it.
/// One thread.
class OtherRanks {
public:
  virtual ~OtherRanks() = default;
  OtherRanks(const OtherRanks &) = delete;
  OtherRanks &operator=(const OtherRanks &) = delete;

  virtual Group &group() = 0; ///< as rank 0
  virtual RankLeader &leader() = 0;

protected:
  OtherRanks() = default;
};

} // namespace kf

#endif // KF_RUNTIME_SESSION_OTHERRANKS_H
