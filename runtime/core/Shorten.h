//===- Shorten.h - Long texts inside error lines ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_SHORTEN_H
#define KF_RUNTIME_CORE_SHORTEN_H

#include "runtime/core/Quote.h"

#include <string>
#include <string_view>

namespace kf {

/// `text` if it has at most `most` bytes, of which 100 are the least. Otherwise
/// its beginning and its end, where errors say what to do, in `most` bytes with
/// a note between them of how many are left out. Characters of UTF-8 are left
/// out as a whole.
inline std::string shorten(std::string_view text, size_t most) {
  if (text.size() <= most)
    return std::string(text);
  auto note = [](size_t bytes) {
    return "... (" + std::to_string(bytes) + " bytes left out) ...";
  };
  // The number of all bytes has no fewer digits than that of some.
  const size_t kept = most - note(text.size()).size();
  const std::string_view head = cutText(text, kept - kept / 4);
  std::string_view tail = text.substr(text.size() - kept / 4);
  for (int i = 0;
       i < 3 && (static_cast<unsigned char>(tail.front()) & 0xc0) == 0x80; ++i)
    tail.remove_prefix(1);
  std::string result(head);
  result += note(text.size() - head.size() - tail.size());
  return result += tail;
}

} // namespace kf

#endif // KF_RUNTIME_CORE_SHORTEN_H
