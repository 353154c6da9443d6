//===- Quote.h - Values from files inside error lines ------------*- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_QUOTE_H
#define KF_RUNTIME_IO_QUOTE_H

#include <cstdio>
#include <string>
#include <string_view>

namespace kf {

/// `text` in single quotes, fit for an error's one line: control characters
/// become '?', and what exceeds 80 bytes is cut off as "...".
inline std::string inQuotes(std::string_view text) {
  constexpr size_t limit = 80;
  std::string result = "'";
  for (char c : text.substr(0, limit))
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  if (text.size() > limit)
    result += "...";
  return result + "'";
}

/// A number for an error's line, without trailing zeros.
inline std::string spellNumber(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%g", value);
  return buffer;
}

} // namespace kf

#endif // KF_RUNTIME_IO_QUOTE_H
