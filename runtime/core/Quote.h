//===- Quote.h - Values from files inside error lines -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_QUOTE_H
#define KF_RUNTIME_CORE_QUOTE_H

#include <cstdio>
#include <string>
#include <string_view>

namespace kf {

/// At most `most` bytes of `text`, without a part of a UTF-8 character at the
/// end.
inline std::string_view cutText(std::string_view text, size_t most) {
  if (text.size() <= most)
    return text;
  // Bytes that are no UTF-8 have no characters to keep together.
  for (size_t back = 0; back < 4 && back < most; ++back)
    if ((static_cast<unsigned char>(text[most - back]) & 0xc0) != 0x80)
      return text.substr(0, most - back);
  return text.substr(0, most);
}

/// `text` in single quotes, fit for an error's one line: control characters
/// become '?', and what exceeds 80 bytes is cut off as "...".
inline std::string inQuotes(std::string_view text) {
  constexpr size_t limit = 80;
  std::string result = "'";
  for (char c : cutText(text, limit))
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

#endif // KF_RUNTIME_CORE_QUOTE_H
