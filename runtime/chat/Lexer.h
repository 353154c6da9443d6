//===- Lexer.h - A template's text to tokens --------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CHAT_LEXER_H
#define KF_RUNTIME_CHAT_LEXER_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf::jinja {

struct Token {
  enum class Kind : uint8_t {
    Data,          ///< text between tags, with white space taken off
    VariableBegin, ///< {{
    VariableEnd,   ///< }}
    BlockBegin,    ///< {%
    BlockEnd,      ///< %}
    Name,
    String,
    Integer,
    Float,
    Operator,
    End
  };
  Kind kind = Kind::End;
  int line = 1;
  std::string text; ///< of Data, Name, String, Operator
  int64_t integer = 0;
  double real = 0;
};

/// Cuts `source` as Jinja does with trim_blocks and lstrip_blocks: line breaks
/// become "\n", the last one goes, comments go, raw blocks are data. The last
/// token is End. Throws Failure.
std::vector<Token> tokenize(std::string_view source);

} // namespace kf::jinja

#endif // KF_RUNTIME_CHAT_LEXER_H
