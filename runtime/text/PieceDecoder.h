//===- PieceDecoder.h - From tokens to the text they stand for --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_PIECEDECODER_H
#define KF_RUNTIME_TEXT_PIECEDECODER_H

#include "runtime/text/Vocabulary.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kf {

/// How tokens become text: what each stands for, and what is dropped where a
/// text starts. Read-only once filled.
struct PieceDecoder {
  /// The space that encoding put before a text, taken away again.
  enum class Lead {
    Keep,        ///< there is none
    Spaces,      ///< up to `leadSpaces` spaces
    FirstToken,  ///< every mark in the first token
    OneMark,     ///< a mark at the start of the first piece
    MarkPerPiece ///< the same for every piece until there is text
  };
  /// How far a text is.
  struct State {
    bool hasToken = false, hasText = false, sawMark = false;
    size_t spacesDropped = 0;
  };

  bool byteLevel = false;    ///< pieces are letters of GPT-2's alphabet
  bool byteFallback = false; ///< <0x0A> is a byte, of whatever kind
  /// Done to every other piece, in order.
  std::vector<std::pair<std::string, std::string>> replacements;
  Lead lead = Lead::Keep;
  size_t leadSpaces = 0;
  std::string mark = "\u2581";
  std::string unknownText; ///< what Unknown stands for; empty: its own text

  /// The bytes that a token stands for inside a text.
  std::string bytesOf(const Vocabulary::Token &token,
                      std::string_view text) const;
  /// Appends what `token` adds to a text that is at `state`.
  void append(const Vocabulary &vocabulary, const Vocabulary::Token &token,
              State &state, std::string &out) const;
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_PIECEDECODER_H
