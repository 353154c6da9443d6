//===- OwnApi.h - The server's API without a server -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_OWNAPI_H
#define KF_TOOLS_KF_RUN_OWNAPI_H

#include "ServedSession.h"

#include <cstdint>
#include <memory>
#include <string>

namespace kf {

/// A session behind the server's API, which answers requests of this process.
/// One thread.
class OwnApi {
public:
  /// Opens the model that `flags` say and makes its programs ready, for
  /// `queued` more texts than are worked on at once.
  Status open(const ModelFlags &flags, const TemplateOptions &chatTemplate,
              const ServedOptions &wanted, int64_t queued, ApiOptions options);

  /// Begins to answer `body`, which is sent to `path`. The answer has to be
  /// gone before this is.
  std::unique_ptr<HttpAnswer> post(std::string path, std::string body);
  /// Waits until some answer may have more, a tenth of a second at most: an
  /// interrupt is no news of an answer.
  void wait();

  Session &session() { return served.session(); }

private:
  class Bell;

  ServedSession served;
  std::unique_ptr<Api> api; ///< goes before what it refers to
  // The service's thread may ring it while an answer is destroyed.
  std::shared_ptr<Bell> bell;
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_OWNAPI_H
