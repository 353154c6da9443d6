//===- TemplateFlags.h - Options about the chat template --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_TEMPLATEFLAGS_H
#define KF_TOOLS_KF_RUN_TEMPLATEFLAGS_H

#include "OptionParser.h"

#include "runtime/session/ChatPrompts.h"

#include <optional>
#include <string>
#include <string_view>

namespace kf {

/// Which chat template there is, and what it is told.
struct TemplateFlags {
  TemplateOptions options;              ///< once all arguments are read
  std::optional<std::string> variables; ///< JSON

  /// `implied` stands in front of what the help says of each.
  void addTo(OptionParser &parser, std::string_view implied = {});
  bool isGiven() const { return !options.file.empty() || variables; }
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_TEMPLATEFLAGS_H
