//===- SentencePieceNormalizer.h - SentencePiece's normalization -*- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_SENTENCEPIECENORMALIZER_H
#define KF_RUNTIME_TEXT_SENTENCEPIECENORMALIZER_H

#include "runtime/core/Status.h"
#include "runtime/text/ByteTrie.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Replacements of characters, compiled by SentencePiece: a double-array trie
/// whose values are offsets into texts that end in NUL. Read-only.
class CharsMap {
public:
  /// Copies `blob`: the trie's size in bytes, the trie, the texts.
  static Result<CharsMap> parse(std::string_view blob);

  struct Match {
    size_t length; ///< of what is replaced
    std::string_view by;
  };
  /// The rule for the longest start of `text`; nothing if there is none.
  std::optional<Match> find(std::string_view text) const;

private:
  std::vector<uint32_t> units;
  std::string texts;
};

/// What SentencePiece does to text before it is cut into pieces.
class SentencePieceNormalizer {
public:
  std::optional<CharsMap> charsMap;
  ByteTrie userDefined; ///< pieces that stay as they are
  bool addDummyPrefix = true;
  bool removeExtraWhitespaces = true;
  bool escapeWhitespaces = true;
  bool whitespaceAsSuffix = false;

  /// `text`, any bytes, normalized; what is no UTF-8 becomes U+FFFD, one for
  /// each byte.
  std::string normalize(std::string_view text) const;

private:
  struct Prefix {
    size_t length; ///< of the text
    std::string_view by;
  };
  Prefix normalizePrefix(std::string_view text) const;
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_SENTENCEPIECENORMALIZER_H
