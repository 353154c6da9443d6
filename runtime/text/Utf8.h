//===- Utf8.h - UTF-8, valid and not ----------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_UTF8_H
#define KF_RUNTIME_TEXT_UTF8_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kf {

/// What the start of some bytes is.
struct Utf8Step {
  enum class Kind {
    Character, ///< a well-formed character
    Invalid,   ///< bytes that no continuation makes well-formed
    Incomplete ///< the start of a character that the bytes' end cuts off
  };
  Kind kind;
  /// Bytes of it; for Invalid and Incomplete the maximal well-formed prefix of
  /// a character, at least 1 (Unicode's "substitution of maximal subparts").
  size_t length;
  char32_t character = 0; ///< of a Character
};

/// Looks at the start of `text`, which is not empty. Surrogates, overlong
/// forms and values past U+10FFFF are Invalid.
Utf8Step stepUtf8(std::string_view text);

/// Bytes of the longest valid prefix of `text`.
size_t validUtf8Prefix(std::string_view text);

/// Appends `character`'s UTF-8 form.
void appendUtf8(std::string &out, char32_t character);

/// Unicode's White_Space.
bool isWhiteSpace(char32_t character);
/// `text`, of any bytes, without the white space at its start or end.
std::string_view trimLeft(std::string_view text);
std::string_view trimRight(std::string_view text);

/// `bytes` with every ill-formed sequence replaced by U+FFFD, as Rust's
/// from_utf8_lossy and Python's errors="replace" do.
std::string toValidUtf8(std::string_view bytes);

} // namespace kf

#endif // KF_RUNTIME_TEXT_UTF8_H
