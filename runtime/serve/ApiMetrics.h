//===- ApiMetrics.h - What a server has done, for Prometheus ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_APIMETRICS_H
#define KF_RUNTIME_SERVE_APIMETRICS_H

#include "runtime/serve/Service.h"

#include <cstdint>
#include <map>
#include <string>

namespace kf {

/// What the server counts itself.
struct ApiCounts {
  std::map<int, int64_t> answers;          ///< begun, by status of HTTP
  std::map<std::string, int64_t> finished; ///< choices, by finish_reason
};

/// The text of /metrics: what ServiceCounts has, with the names that vLLM and
/// llama.cpp's server use for the same, and what `counts` has. `service` is
/// null while the model is loading.
std::string metricsText(const ServiceCounts *service, const ApiCounts &counts,
                        const std::string &model);

} // namespace kf

#endif // KF_RUNTIME_SERVE_APIMETRICS_H
