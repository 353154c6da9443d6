//===- SentencePieceFile.h - The fields of a tokenizer.model ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tokenizer.model is a ModelProto in the wire format of protocol buffers.
// Here only the fields are read that decide on ids; the rest, which is about
// training, is skipped.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_SENTENCEPIECEFILE_H
#define KF_RUNTIME_TEXT_SENTENCEPIECEFILE_H

#include "runtime/core/Status.h"
#include "runtime/text/Vocabulary.h"

#include <string_view>
#include <vector>

namespace kf {

/// Views point into the file's bytes, which must outlive this.
struct SentencePieceFile {
  struct Piece {
    std::string_view text; ///< not empty
    float score = 0;       ///< finite
    TokenKind kind = TokenKind::Normal;
  };
  enum class Model { Unigram = 1, Bpe = 2, Word = 3, Char = 4 };

  std::vector<Piece> pieces; ///< by id

  // The trainer's specification.
  Model model = Model::Unigram;
  bool byteFallback = false;
  bool whitespaceAsSuffix = false;
  std::string_view unknownSurface = " \u2047 ";
  std::string_view beginPiece = "<s>", endPiece = "</s>";

  // The normalizer's.
  std::string_view charsMap; ///< empty: characters stay
  bool addDummyPrefix = true;
  bool removeExtraWhitespaces = true;
  bool escapeWhitespaces = true;
  /// Decoding normalizes too.
  bool hasDenormalizer = false;

  /// Reads `bytes`; errors name the byte or the piece.
  static Result<SentencePieceFile> parse(std::string_view bytes);
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_SENTENCEPIECEFILE_H
