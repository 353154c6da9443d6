//===- BatchOptions.h - What kf-run batch takes -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_BATCHOPTIONS_H
#define KF_TOOLS_KF_RUN_BATCHOPTIONS_H

#include "EmbeddingFlags.h"
#include "FormatFlags.h"
#include "ModelFlags.h"
#include "SamplerFlags.h"
#include "TemplateFlags.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

struct BatchOptions {
  ModelFlags model;
  std::string file, json;
  TemplateFlags chatTemplate;
  /// Of a request that does not say; -1: no limit; none: 256.
  std::optional<int64_t> tokens;
  int64_t parallel = 0; ///< 0: as many as the device is good for
  std::vector<std::string> stops;
  bool ignoreEos = false, quiet = false, noEscape = false;
  PartialSamplerOptions sampler;
  FormatFlags format;
  EmbeddingFlags embedding; ///< of OpenAI's requests

  void addTo(OptionParser &parser);
};

/// Whether the first line of a file of requests, `text`, is of OpenAI's
/// batches, and so all have to be.
bool isOpenAiBatch(std::string_view text);

/// Answers a file of OpenAI's batches, as kf-run serve would by HTTP. Returns
/// whether all requests were answered well. Errors are of the command as a
/// whole: options that bodies say, for one.
Result<bool> runOpenAiBatch(const BatchOptions &options, std::string_view text);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_BATCHOPTIONS_H
