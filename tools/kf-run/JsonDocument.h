//===- JsonDocument.h - JSON that commands write ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Documents whose keys stay in the order in which they were set. What the
// library needs to write and read them takes each file that does so a second to
// compile, so that one does.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_JSONDOCUMENT_H
#define KF_TOOLS_KF_RUN_JSONDOCUMENT_H

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace kf {

/// `json` as text: each value in a line, `indent` spaces deeper than what it is
/// in, or, with -1, all in one. What is not UTF-8 becomes U+FFFD; with `ascii`,
/// what is not ASCII is escaped.
std::string documentText(const nlohmann::ordered_json &json, int indent = 2,
                         bool ascii = false);

/// What documentText() and the like have written. Text that is no JSON gives a
/// value whose is_discarded() is true.
nlohmann::ordered_json readDocument(std::string_view text);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_JSONDOCUMENT_H
