//===- ServedSession.h - A model behind the server's API ------ -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_SERVEDSESSION_H
#define KF_TOOLS_KF_RUN_SERVEDSESSION_H

#include "ModelFlags.h"

#include "runtime/serve/Api.h"
#include "runtime/session/ChatPrompts.h"

#include <memory>
#include <optional>
#include <string>

namespace kf {

struct ServedOptions {
  std::optional<int64_t> parallel = 1; ///< StartOptions'
  /// The same; nothing: half of Device::textsAtOnce(), so that each has its
  /// tokens sooner.
  std::optional<int64_t> texts = std::nullopt;
  double longestStep = kLongestServedStep; ///< EngineOptions'
  EmbeddingChoice embedding = {};          ///< before what the files say
};

/// A session whose engine a service owns, and what an Api needs of both. An Api
/// that it was given to has to be gone before close() and the end of its life.
class ServedSession {
public:
  /// Opens the model that `flags` say: finds what is wrong with files, options
  /// and the device, and takes no time beside serve(). A note says where there
  /// is no chat template.
  Status open(const ModelFlags &flags, const TemplateOptions &chatTemplate,
              ServedOptions options);
  /// Makes its programs ready, for `queued` more texts that wait, and opens
  /// `api` with it. A note says where there can be no embeddings.
  Status serve(int64_t queued, Api &api);
  /// Ends the service; nothing uses the session's device any more then.
  void close() { texts.reset(); }

  Session &session() { return *opened; }
  const Service &service() const { return *texts; }

private:
  Status openTemplate(const TemplateOptions &wanted);

  std::unique_ptr<Session> opened;
  std::optional<PromptEncoder> encoder; ///< where there is a template
  std::string templateText;             ///< its text
  ServedOptions options;
  std::unique_ptr<Service> texts;
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_SERVEDSESSION_H
