//===- AdapterFlags.h - Adapters that a model is opened with ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_ADAPTERFLAGS_H
#define KF_TOOLS_KF_RUN_ADAPTERFLAGS_H

#include "OptionParser.h"

#include "runtime/session/OpenModel.h"

#include <string>
#include <vector>

namespace kf {

/// `--lora`, and which of several adapters a command's texts have.
struct AdapterFlags {
  std::vector<AdapterChoice> choices;
  std::string adapter; ///< a name; empty: none
  /// What requests call the model, with addNamesTo(): one at least.
  std::vector<std::string> modelNames;

  /// Adds `--lora`.
  void addTo(OptionParser &parser);
  /// Adds `--adapter`, too, of commands whose texts all have the same: the only
  /// one, or that.
  void addOneTo(OptionParser &parser);
  /// Adds `--lora` and `--alias`, of commands whose requests name the model at
  /// `path`, or an adapter: none may be called as the model is.
  void addNamesTo(OptionParser &parser, const std::string &path);

private:
  std::vector<std::string> given;
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_ADAPTERFLAGS_H
