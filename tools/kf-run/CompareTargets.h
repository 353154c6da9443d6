//===- CompareTargets.h - Whose answers are compared ---------- -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_COMPARETARGETS_H
#define KF_TOOLS_KF_RUN_COMPARETARGETS_H

#include "ModelFlags.h"

#include "runtime/client/RemoteServer.h"
#include "runtime/session/ChatPrompts.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// What somebody made of the requests: outcomes in their order.
struct TargetRun {
  std::string name;  ///< the server's address, or the model's file
  std::string model; ///< as the server calls it
  bool isOwn = false;
  double inputPrice = 0, outputPrice = 0; ///< of a million tokens
  bool hasPrices = false;
  std::vector<RemoteOutcome> outcomes;
  double seconds = 0; ///< from the first request to the last answer
};

/// Told how many requests are done.
using OnCompared = std::function<void(size_t done)>;

/// Has the model that `flags` say answer, `parallel` requests at once, by what
/// 'kf-run serve' answers with, but for HTTP. An interrupt ends what is not
/// done. An error is one of opening the model.
Status askModel(const ModelFlags &flags, const TemplateOptions &chatTemplate,
                const std::vector<RemoteRequest> &requests, int64_t parallel,
                const OnCompared &onDone, TargetRun &run);

/// Has a server answer, by `parallel` connections. `run.model` empty is the
/// first model that it lists. Where the server answers nobody, all outcomes say
/// so.
Status askServer(const RemoteServer &server,
                 const std::vector<RemoteRequest> &requests, int64_t parallel,
                 const OnCompared &onDone, TargetRun &run);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_COMPARETARGETS_H
