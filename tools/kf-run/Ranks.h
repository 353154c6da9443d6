//===- Ranks.h - Processes that a launcher has started ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_RANKS_H
#define KF_TOOLS_KF_RUN_RANKS_H

#include "Commands.h"
#include "OptionParser.h"

#include "runtime/collective/Launcher.h"
#include "runtime/session/RankProcesses.h"
#include "runtime/session/Session.h"

#include <optional>

namespace kf {

/// Runs a command of one of several ranks, whose sessions have all of them, and
/// returns the exit code: rank 0 runs `command` when it has met the others,
/// which follow its sessions with `sources`, whatever their arguments, and
/// print nothing but that rank 0 is lost.
int runRanked(const LaunchedRank &launched, int (*command)(Arguments),
              Arguments arguments, const SessionSources &sources);

/// The ranks that this process leads; null: it leads none.
RankProcesses *ledProcesses();

} // namespace kf

#endif // KF_TOOLS_KF_RUN_RANKS_H
