//===- DummyModel.h - Models by name, without their files -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_DUMMYMODEL_H
#define KF_TOOLS_KF_RUN_DUMMYMODEL_H

#include "OptionParser.h"

#include "runtime/core/Status.h"

#include <optional>
#include <string>

namespace kf {

/// Options that make MODEL the name of a known configuration (NamedConfigs.h)
/// whose weights are random.
struct DummyOptions {
  std::optional<std::string> seed; ///< given: MODEL is a name
  std::string weightType;          ///< empty: what the configuration says
  std::string tokenizer;           ///< path of one to use; empty: none

  bool used() const { return seed.has_value(); }
  /// Adds the options to `parser`, and a check of them against `model`, which
  /// holds MODEL once `parser` has run.
  void addTo(OptionParser &parser, const std::string &model);

private:
  Status check(const std::string &model) const;
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_DUMMYMODEL_H
