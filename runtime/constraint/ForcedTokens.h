//===- ForcedTokens.h - Tokens that a grammar leaves no choice of *- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a grammar leaves one continuation, of some bytes, there are still many
// ways to cut it into tokens. Held texts take the tokenizer's: it is the one
// that models were trained on, and it is known without asking the model.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONSTRAINT_FORCEDTOKENS_H
#define KF_RUNTIME_CONSTRAINT_FORCEDTOKENS_H

#include "runtime/core/Status.h"
#include "runtime/grammar/GrammarMatcher.h"
#include "runtime/text/Tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// The tokens of one text that are certain, as it goes on. One thread.
class ForcedTokens {
public:
  /// Both outlive this; the vocabulary is the tokenizer's.
  ForcedTokens(const Tokenizer &tokenizer, const GrammarVocabulary &vocabulary)
      : tokenizer(tokenizer), vocabulary(vocabulary) {}

  /// The tokens that come next, of kMostBytes bytes at most: those that the
  /// tokenizer makes of the bytes that the grammar of `matcher`, at this place
  /// of the text, leaves no choice of. Maybe none: the tokenizer would not
  /// begin a token here, or would in a longer text make another one of the
  /// last bytes. `matcher` has to allow any other token while there are none.
  /// Errors: the matcher's. Valid until accept().
  Result<std::span<const int32_t>> find(GrammarMatcher &matcher);
  /// `id`, the first of those if there are any, is now part of the text.
  void accept(int32_t id);

  static constexpr size_t kMostBytes = 256;

private:
  std::vector<int32_t> cut(std::string_view bytes) const;
  Result<size_t> countCertain(GrammarMatcher matcher,
                              std::span<const int32_t> ids,
                              std::string_view bytes) const;

  const Tokenizer &tokenizer;
  const GrammarVocabulary &vocabulary;
  std::string before;       ///< the last bytes of the text
  std::vector<int32_t> ids; ///< that are certain, from `next` on
  size_t next = 0;
  bool isKnown = false; ///< what comes next was looked for
};

} // namespace kf

#endif // KF_RUNTIME_CONSTRAINT_FORCEDTOKENS_H
