//===- OwnApi.cpp - The server's API without a server ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OwnApi.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

using namespace kf;
using namespace std::chrono_literals;

/// Wakes the thread that waits for any of several answers.
class OwnApi::Bell {
public:
  void ring() {
    const std::scoped_lock lock(mutex);
    hasRung = true;
    changed.notify_one();
  }
  /// Waits for ring() since the last wait.
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, 100ms, [this] { return hasRung; });
    hasRung = false;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool hasRung = false;
};

Status OwnApi::open(const ModelFlags &flags,
                    const TemplateOptions &chatTemplate,
                    const ServedOptions &wanted, int64_t queued,
                    ApiOptions options) {
  bell = std::make_shared<Bell>();
  api = std::make_unique<Api>(std::move(options));
  KF_RETURN_IF_ERROR(served.open(flags, chatTemplate, wanted));
  return served.serve(queued, *api);
}

std::unique_ptr<HttpAnswer> OwnApi::post(std::string path, std::string body) {
  HttpRequest request;
  request.method = "POST";
  request.path = std::move(path);
  request.body = std::move(body);
  return api->handle(std::move(request), [bell = bell] { bell->ring(); });
}

void OwnApi::wait() { bell->wait(); }
