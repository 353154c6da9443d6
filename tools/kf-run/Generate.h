//===- Generate.h - Continuing a text ---------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_GENERATE_H
#define KF_TOOLS_KF_RUN_GENERATE_H

#include "FormatFlags.h"
#include "SamplerFlags.h"
#include "SessionFlags.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// What to continue, and how.
struct GenerateOptions {
  std::optional<std::string> prompt;
  std::string file, ids, json;
  int64_t tokens = 256; ///< -1: until the context is full
  std::vector<std::string> stops;
  bool ignoreEos = false, quiet = false, noEscape = false;
  bool echo = false; ///< prints the prompt first
  PartialSamplerOptions sampler;
  FormatFlags format;

  /// Adds the options to `parser`, and checks of them.
  void addTo(OptionParser &parser);
};

/// Opens the model, with its tokenizer or without one.
using OpenSession =
    std::function<Result<std::unique_ptr<Session>>(bool withTokenizer)>;

/// Continues a text with the model of `flags`, which `open` opens, and says how
/// it went; returns the exit code.
int runGeneration(const GenerateOptions &options, const SessionFlags &flags,
                  const OpenSession &open);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_GENERATE_H
