//===- TextCursor.h - A place in a text that is parsed ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_TEXTCURSOR_H
#define KF_RUNTIME_GRAMMAR_TEXTCURSOR_H

#include <cstddef>
#include <string_view>

namespace kf::grammar {

/// A text, and how much of it was read.
struct TextCursor {
  std::string_view text;
  size_t next = 0; ///< the byte that is read next

  bool atEnd() const { return next == text.size(); }
  /// The next byte; 0 at the end.
  char peek() const { return atEnd() ? '\0' : text[next]; }
  /// Reads `word`, if it is what comes next.
  bool take(std::string_view word) {
    if (!text.substr(next).starts_with(word))
      return false;
    next += word.size();
    return true;
  }
};

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_TEXTCURSOR_H
