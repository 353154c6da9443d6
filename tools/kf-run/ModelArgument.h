//===- ModelArgument.h - Options that choose a model ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_MODELARGUMENT_H
#define KF_TOOLS_KF_RUN_MODELARGUMENT_H

#include "OptionParser.h"

#include "runtime/session/OpenModel.h"

#include <optional>
#include <string>
#include <string_view>

namespace kf {

/// Adds MODEL, which `model` holds once `parser` has run, and --model, which is
/// the same; `named` has what that said.
void addModelArgument(OptionParser &parser, std::string &model,
                      std::optional<std::string> &named, std::string_view help);

/// Options that make MODEL the name of a known configuration.
struct DummyFlags : DummyChoice {
  /// Adds the options to `parser`, and a check of them against `model`, which
  /// holds MODEL once `parser` has run.
  void addTo(OptionParser &parser, const std::string &model);
};

/// What weights of F8_E4M3 are multiplied as.
struct Float8Flag {
  std::string type = "bf16";
  bool needsSome = true; ///< weights of 8 bits, if they are to be kept

  void addTo(OptionParser &parser);
  Float8Weights choice() const {
    return type != "f8" ? Float8Weights::Rounded
           : needsSome  ? Float8Weights::Kept
                        : Float8Weights::KeptIfAny;
  }
};

/// Prints what `config`, of the model at `path`, warns of.
void printModelWarnings(const std::string &path, const ModelConfig &config);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_MODELARGUMENT_H
