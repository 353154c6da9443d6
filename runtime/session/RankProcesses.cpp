//===- RankProcesses.cpp - Ranks that a launcher has started --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/RankProcesses.h"

#include "runtime/collective/MpiGroup.h"
#include "runtime/collective/SocketGroup.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/UsableThreads.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <sched.h>

using namespace kf;

namespace {

/// The CPUs that this process may use, as bits.
std::string cpuText() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string text;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0)
    for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      text += CPU_ISSET(cpu, &set) ? '1' : '0';
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

class LedRanks final : public OtherRanks {
public:
  LedRanks(Group &own, std::vector<std::unique_ptr<RankChannel>> channels,
           std::vector<std::string> names)
      : own(own), connections(std::move(channels), std::move(names)) {}

  Group &group() override { return own; }
  RankLeader &leader() override { return connections; }

private:
  Group &own;
  RankLeader connections;
};

} // namespace

Result<std::unique_ptr<RankProcesses>>
RankProcesses::meet(Options options, const Environment &environment) try {
  std::unique_ptr<RankProcesses> made(new RankProcesses());
  KF_RETURN_IF_ERROR(made->connect(options, environment));
  return made;
} catch (...) {
  return statusOfException();
}

/// Where rank 0 listens, which is told by MPI: there alone is the port known.
Result<uint16_t> RankProcesses::exchangePort(const LaunchedRank &launched,
                                             const RankTimes &times,
                                             uint16_t port) {
  struct Place {
    uint16_t port;
    char host[254];
  };
  Place here = {port, {}};
  hostName().copy(here.host, sizeof(here.host) - 1);
  std::vector<Place> places(static_cast<size_t>(launched.size));
  const auto deadline = std::chrono::steady_clock::now() + times.meeting;
  KF_RETURN_IF_ERROR(
      mpi->gather(&here, places.data(), sizeof(here), /*isCrowded=*/true, [&] {
        return std::chrono::steady_clock::now() < deadline
                   ? Status()
                   : Status::error("not all ranks have come to MPI's first "
                                   "collective in time",
                                   StatusCode::Unavailable);
      }));
  for (int64_t rank = 1; rank < launched.size; ++rank) {
    const char *host = places[static_cast<size_t>(rank)].host;
    if (launched.address != LaunchedRank().address ||
        std::string_view(host) == places[0].host)
      continue;
    if (launched.rank != 0)
      return Status::cancelled();
    return Status::error("rank " + std::to_string(rank) + " is on " + host +
                             ", and rank 0 on " + places[0].host +
                             "; set MASTER_ADDR to an address of the latter's "
                             "for all ranks",
                         StatusCode::Unavailable);
  }
  return places[0].port;
}

Status RankProcesses::connect(const Options &options,
                              const Environment &environment) {
  LaunchedRank launched = options.launched;
  const bool leads = launched.rank == 0;
  const RankIdentity identity = {launched.rank, launched.size, options.build,
                                 hostName(), cpuText()};
  KF_ASSIGN_OR_RETURN(const JobKey key, JobKey::find(environment));
  if (launched.mpi) {
    KF_ASSIGN_OR_RETURN(
        mpi, MpiLibrary::open(*launched.mpi, MpiLibrary::pluginFolder()));
    if (const Status started = mpi->start(launched); !started.ok())
      return leads ? started : Status::cancelled();
  }
  std::optional<Listener> listener;
  if (leads) {
    KF_ASSIGN_OR_RETURN(listener,
                        Listener::open(launched.address, launched.port));
    launched.port = listener->port();
  }
  if (mpi) {
    KF_ASSIGN_OR_RETURN(launched.port,
                        exchangePort(launched, options.times, launched.port));
  }
  own = static_cast<size_t>(launched.rank);
  std::vector<RankPeer> peers;
  if (leads) {
    KF_ASSIGN_OR_RETURN(peers,
                        meetFollowers(*listener, key, identity, options.times));
    all = {identity};
    for (const RankPeer &peer : peers)
      all.push_back(peer.facts);
  } else {
    KF_ASSIGN_OR_RETURN(MetLeader met,
                        meetLeader(launched.address, launched.port, key,
                                   identity, options.times));
    all = std::move(met.all);
    peers.push_back(std::move(met.leader));
  }
  KF_ASSIGN_OR_RETURN(links, RankLinks::start(identity, std::move(peers),
                                              options.times, options.events));
  group = mpi ? createMpiGroup(launched.rank, launched.size, *mpi, *links,
                               sharers() > usableThreads())
              : createSocketGroup(launched.rank, launched.size, *links);
  return Status();
}

/// MPI ends in order where nothing has failed; otherwise it would wait for
/// ranks that are gone.
RankProcesses::~RankProcesses() {
  if (!links || links->hasFailed())
    return;
  links->bye();
  if (mpi)
    mpi->end();
}

int64_t RankProcesses::sharers() const {
  return std::ranges::count_if(all, [&](const RankIdentity &other) {
    return other.host == all[own].host && other.cpus == all[own].cpus;
  });
}

Result<std::unique_ptr<OtherRanks>>
RankProcesses::lead(const RankSetup &setup) try {
  std::vector<std::unique_ptr<RankChannel>> channels;
  std::vector<std::string> names;
  for (size_t i = 0; i < links->size(); ++i) {
    channels.push_back(links->openChannel(i));
    names.push_back(nameOf(links->facts(i)));
    KF_RETURN_IF_ERROR(channels.back()->send(encode(setup)));
  }
  return std::unique_ptr<OtherRanks>(std::make_unique<LedRanks>(
      *group, std::move(channels), std::move(names)));
} catch (...) {
  return statusOfException();
}

Status RankProcesses::follow(const RunSetup &run) try {
  while (!links->hasLeft(0)) {
    const std::unique_ptr<RankChannel> leader = links->openChannel(0);
    Status status = catchExceptions([&]() -> Status {
      KF_ASSIGN_OR_RETURN(const std::optional<std::string> message,
                          leader->receive());
      if (!message) // a session without a beginning, or the end of all
        return Status();
      KF_ASSIGN_OR_RETURN(const RankSetup setup, decodeSetup(*message));
      return run(setup, *group, *leader);
    });
    if (status.ok())
      continue;
    (void)leader->send(encode(RankAnswer{status, {}}));
    links->abort(status.message());
    // A launcher may end all ranks when one has: rank 0 is to say why before.
    while (!links->hasEnded(0))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return Status::cancelled();
  }
  return Status();
} catch (...) {
  return statusOfException();
}
