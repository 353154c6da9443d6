//===- RankLeader.h - The rank that others follow ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_RANKLEADER_H
#define KF_RUNTIME_ENGINE_RANKLEADER_H

#include "runtime/collective/RankChannel.h"
#include "runtime/engine/RankCommand.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// Rank 0's connections to the others: what a Model and a StepExecutor tell
/// them ahead of doing it themselves. One thread.
///
/// Failure: an error names the rank that it is of. What goes wrong in a command
/// that is not answered ends the rank, and its group: the next call here, or
/// the collective in which this rank waits for it, fails with what it said, and
/// so do all later calls.
class RankLeader {
public:
  /// `channels` lead to ranks 1, 2, ..., which errors call `names`; "rank 1"
  /// and so on without.
  explicit RankLeader(std::vector<std::unique_ptr<RankChannel>> channels,
                      std::vector<std::string> names = {})
      : channels(std::move(channels)), names(std::move(names)) {}

  /// Waits until all ranks are ready to follow. Errors: one that is not, or
  /// whose part of the model does not have the key that `models` has for it, by
  /// rank from 1 on.
  Status awaitReady(std::span<const std::string> models);

  /// Tells all ranks something that is not answered, at the next flush().
  Status tell(const RankCommand &command);
  /// Sends what they were told.
  Status flush();
  /// Has all ranks do something that is answered, while this one does `own`,
  /// and waits for all of them: one thing, or, by rank from 1 on, as many as
  /// there are ranks. The error is that of `own`, or the first rank's that has
  /// one.
  Status together(std::span<const RankCommand> commands,
                  const std::function<Status()> &own);
  /// The texts of all ranks' answers, by rank from 1 on. Nothing that ranks
  /// wait for each other in may be under way. The error is the first rank's
  /// that has one.
  Result<std::vector<std::string>> ask(const RankCommand &command);
  /// What errors call rank `index` + 1.
  std::string nameOfRank(size_t index) const;

private:
  Status hasEnded(size_t index) const;
  Result<RankAnswer> receive(size_t index);
  void findEnd(size_t index);
  Status endOfException();
  Status sendTold(std::span<const RankCommand> commands);
  Result<std::vector<std::string>>
  answersTo(std::span<const RankCommand> commands,
            const std::function<Status()> &own);

  std::vector<std::unique_ptr<RankChannel>> channels;
  std::vector<std::string> names; ///< of as many; none: their numbers
  std::string told;               ///< commands that are not sent yet
  Status end; ///< the error of the first rank that has ended
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_RANKLEADER_H
