//===- DummyModel.h - Models by name, without their files -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_DUMMYMODEL_H
#define KF_RUNTIME_SESSION_DUMMYMODEL_H

#include "runtime/engine/ModelFiles.h"

#include <optional>
#include <string>

namespace kf {

/// What makes a model's path the name of a known configuration
/// (NamedConfigs.h) whose weights are random.
struct DummyChoice {
  std::optional<std::string> seed = {}; ///< given: the path is a name
  std::string weightType = {};          ///< empty: what the configuration says
  std::string tokenizer = {};           ///< path of one to use; empty: none

  bool used() const { return seed.has_value(); }
};

/// Names of known configurations, with commas between them.
std::string knownModelNames();

/// An error where `choice` makes no model of `name`, or says what it has no use
/// for.
Status checkDummy(const DummyChoice &choice, const std::string &name);

/// The model called `name`, with the random weights that `choice`, which is
/// used(), asks for. Errors: checkDummy()'s, no
/// tokenizer where one is asked for, and those of its files.
Result<ModelFiles> openDummyModel(const std::string &name, bool withTokenizer,
                                  const DummyChoice &choice);

} // namespace kf

#endif // KF_RUNTIME_SESSION_DUMMYMODEL_H
