//===- ForcedCall.h - Answers that have to be calls of tools ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_FORCEDCALL_H
#define KF_RUNTIME_SERVE_FORCEDCALL_H

#include "runtime/constraint/OutputFormat.h"
#include "runtime/core/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// A tool that may be called.
struct ToolSchema {
  std::string name;
  std::string parameters; ///< a JSON schema, as text; empty: there are none
};

/// What an answer is held to that calls one of `tools`, at least one, once, in
/// the form that the template `chatTemplate` wants of calls (AnswerText.h).
/// Error: a template whose form is not known.
Result<OutputFormat> formatOfCall(const std::vector<ToolSchema> &tools,
                                  std::string_view chatTemplate);

} // namespace kf

#endif // KF_RUNTIME_SERVE_FORCEDCALL_H
