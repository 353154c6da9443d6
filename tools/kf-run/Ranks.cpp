//===- Ranks.cpp - Processes that a launcher has started ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"

#include "Report.h"

#include "runtime/program/ProgramIdentity.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unistd.h>

using namespace kf;

static RankProcesses *led = nullptr;

RankProcesses *kf::ledProcesses() { return led; }

/// A rank that is lost is said at once, whatever goes on. The command fails by
/// that, and ends; where it does not, the process is ended.
static RankEvents eventsOf(const LaunchedRank &launched) {
  const std::string own =
      launched.rank == 0 ? "" : "rank " + std::to_string(launched.rank) + ": ";
  return {.lost =
              [own](const Status &status) {
                printLastError(own + status.message());
              },
          .overdue =
              [] {
                std::fflush(stdout);
                _exit(ExitFailure);
              }};
}

/// What no rank 0 can say for this rank.
static int reportFollower(const LaunchedRank &launched, const Status &status) {
  if (status.isCancelled())
    return ExitFailure;
  return report(status.in("rank " + std::to_string(launched.rank)));
}

int kf::runRanked(const LaunchedRank &launched, int (*command)(Arguments),
                  Arguments arguments, const SessionSources &sources) {
  const bool leads = launched.rank == 0;
  // An interrupt is for rank 0, which ends the others.
  if (!leads)
    std::signal(SIGINT, SIG_IGN);
  Result<std::string> build = programIdentity();
  if (!build.ok())
    return report(build.status());
  Result<std::unique_ptr<RankProcesses>> met =
      RankProcesses::meet({.launched = launched,
                           .build = build.take(),
                           .events = eventsOf(launched)},
                          [](const char *name) { return std::getenv(name); });
  if (!met.ok())
    return leads ? report(met.status())
                 : reportFollower(launched, met.status());
  int code = ExitSuccess;
  if (leads) {
    led = met->get();
    code = command(arguments);
    led = nullptr;
  } else if (const Status status =
                 followSessions(**met, sources.device, sources.embedded);
             !status.ok()) {
    code = reportFollower(launched, status);
  }
  // What MPI does when a process ends may wait for a rank that is gone.
  if ((*met)->hasFailed()) {
    std::fflush(stdout);
    _exit(code);
  }
  return code;
}
