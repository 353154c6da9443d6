//===- RankFollower.h - A rank that does as it is told ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_RANKFOLLOWER_H
#define KF_RUNTIME_ENGINE_RANKFOLLOWER_H

#include "runtime/collective/RankChannel.h"
#include "runtime/engine/KVCache.h"
#include "runtime/engine/Model.h"
#include "runtime/engine/RankCommand.h"
#include "runtime/engine/StepPrograms.h"
#include "runtime/measure/Profile.h"

#include <optional>

namespace kf {

/// The other end of a RankLeader: has the leader's programs and buffers, with
/// its own part of the weights and the cache, and runs them when it is told.
/// One thread.
class RankFollower {
public:
  /// Of the rank's part of a model, on a device that has joined the group;
  /// `device` and `weights` must outlive it. Of `options`, programs and ranks
  /// are of no use.
  RankFollower(ModelConfig part, Device &device, const WeightSource &weights,
               ModelOptions options);

  /// Does what it is told until the connection is closed. No message makes it
  /// write or copy outside of its buffers; that executables, and the pages and
  /// ids that they are given, are right is for the leader to see to. An error
  /// that is no answer ends it, and aborts the group.
  Status follow(RankChannel &leader);

private:
  Status obey(const LoadProgram &command);
  Status obey(const OpenCache &command);
  Status obey(const BindProgram &command);
  Status obey(const WriteInput &command);
  Status obey(const CopyInput &command);
  Status obey(const CopyPages &command);
  Status obey(const StartProgram &command);
  Status obey(const BeginProfile &);
  Status obey(const ShowProfile &);
  std::string textFor(const RankCommand &command) const;
  Result<ProgramRunner *> find(const StepShape &shape) const;
  Status followAll(RankChannel &leader);

  std::optional<Executable> given; ///< for the model to take
  Model model;
  std::optional<Profile> profile; ///< nothing: runs are not measured
  std::optional<KVCache> cache;
  std::optional<StepPrograms> programs; ///< nothing before there is a cache
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_RANKFOLLOWER_H
