//===- Prompt.h - Where a prompt comes from ---------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_PROMPT_H
#define KF_TOOLS_KF_RUN_PROMPT_H

#include "OptionParser.h"

#include "runtime/core/Status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Any bytes: `text` if it is given, else what the file `file` ("-": stdin)
/// holds, unchanged.
Result<std::string> readBytes(const std::optional<std::string> &text,
                              const std::string &file);

/// Reads the prompt, any bytes: `text` if it is given, else the file `file`
/// ("-": stdin), else stdin unless it is a terminal, else nothing. What comes
/// from a file or stdin loses one line break at its end.
Result<std::string> readPrompt(const std::optional<std::string> &text,
                               const std::string &file);

/// `text` with what \n, \r, \t, \', \", \\ and \xHH stand for in C in their
/// place; other backslashes stay.
std::string unescaped(std::string_view text);

/// Adds --no-escape. Without it, `replace` is called once all arguments are
/// read, to have texts of the command line unescaped().
void addEscapeFlag(OptionParser &parser, bool &off,
                   std::function<void()> replace);

/// Reads token ids, "1,2,3"; the error names --ids.
Result<std::vector<int32_t>> parseIds(std::string_view text);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_PROMPT_H
