//===- LocalRanks.cpp - Other ranks in this process -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/LocalRanks.h"

#include "runtime/collective/ThreadGroup.h"
#include "runtime/core/Exceptions.h"

#include <system_error>
#include <utility>

using namespace kf;

/// A thread's whole life. The leader learns of an error from the group, or from
/// the connection's last message, whichever it waits for.
static void runThread(const RunRank &run, std::unique_ptr<Group> group,
                      std::unique_ptr<RankChannel> leader) {
  const Status status = catchExceptions([&] { return run(*group, *leader); });
  if (status.ok())
    return;
  group->abort(status.message());
  (void)catchExceptions(
      [&] { return leader->send(encode(RankAnswer{status, {}})); });
}

Result<std::unique_ptr<LocalRanks>> LocalRanks::start(int64_t ranks,
                                                      RunRank run) try {
  KF_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Group>> groups,
                      createThreadGroup(ranks));
  std::unique_ptr<LocalRanks> local(new LocalRanks());
  local->own = std::move(groups.front());
  std::vector<std::unique_ptr<RankChannel>> channels;
  std::vector<std::unique_ptr<RankChannel>> others;
  for (int64_t rank = 1; rank < ranks; ++rank) {
    auto [here, there] = createThreadChannel();
    channels.push_back(std::move(here));
    others.push_back(std::move(there));
  }
  local->connections = std::make_unique<RankLeader>(std::move(channels));
  for (size_t i = 0; i < others.size(); ++i)
    local->threads.emplace_back(runThread, run, std::move(groups[i + 1]),
                                std::move(others[i]));
  return local;
} catch (const std::system_error &error) {
  return Status::error("cannot start a thread for each of " +
                           std::to_string(ranks) + " ranks: " + error.what(),
                       StatusCode::Unavailable);
} catch (...) {
  return statusOfException();
}

LocalRanks::~LocalRanks() {
  connections.reset();
  own.reset();
  for (std::thread &thread : threads)
    thread.join();
}
