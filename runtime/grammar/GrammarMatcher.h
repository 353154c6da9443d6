//===- GrammarMatcher.h - Which tokens a grammar allows next ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_GRAMMARMATCHER_H
#define KF_RUNTIME_GRAMMAR_GRAMMARMATCHER_H

#include "runtime/grammar/Grammar.h"
#include "runtime/grammar/GrammarVocabulary.h"
#include "runtime/grammar/Place.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kf {

namespace grammar {
class MatchCache;
} // namespace grammar

/// A text that follows a grammar, as far as it has come.
///
/// Copies are cheap, and go their own ways; but they share what makes masks
/// fast, so that a matcher and its copies belong to one thread at a time. For
/// many requests with one grammar, copy a matcher that has read nothing: masks
/// that were made for one of them serve the others. A copy takes some memory,
/// and throws std::bad_alloc where there is none, as one of a vector does.
///
/// All calls that fail leave the text as it was. After an error of code
/// OutOfMemory that says "no memory left" a matcher and its copies are of no
/// use.
class GrammarMatcher {
public:
  /// A matcher in front of an empty text.
  static Result<GrammarMatcher>
  create(const Grammar &grammar,
         std::shared_ptr<const GrammarVocabulary> vocabulary,
         const MatchLimits &limits = {});

  /// Sets bit i % 32 of word i / 32 of `mask`, of the vocabulary's maskWords(),
  /// if token i may come next, and clears the others. End tokens may come where
  /// the text may end. If no token may come, since the vocabulary lacks what
  /// the grammar asks for, or the text is finished, that is an error.
  Status fillMask(std::span<uint32_t> mask);

  /// Whether that token may come next.
  Result<bool> allows(int32_t id);
  /// Appends a token. One that may not come next is an error. An end token
  /// finishes the text.
  Status accept(int32_t id);
  /// Takes the last tokens back, at most MatchLimits::maxRollback.
  Status rollback(size_t tokens);

  /// Whether the text may end here.
  bool mayEnd() const { return now.mayEnd; }
  /// Whether an end token was accepted.
  bool isFinished() const { return finished; }
  /// Whether nothing may come but an end token, or one was accepted.
  bool isComplete() const {
    return finished || (now.mayEnd && now.threads.empty());
  }
  /// Tokens accepted, without those taken back.
  size_t length() const { return accepted; }

  /// The bytes that every continuation begins with, at most `most`. Empty where
  /// the text may end. Tokens of these bytes may be appended without asking the
  /// model; which ones the model would have used its tokenizer says.
  Result<std::string> forcedBytes(size_t most);
  /// The only token that may come next, if there is but one.
  Result<std::optional<int32_t>> forcedToken();

  /// Whether it, and what its copies share with it, is of use and has not grown
  /// past MatchLimits::maxBytes: else new copies gain nothing by it.
  bool hasRoom() const;

private:
  struct Past {
    grammar::Place place;
    bool finished;
  };

  GrammarMatcher() = default;
  template <typename Fn> auto run(Fn &&fn) -> decltype(fn());
  Status renewCache();

  std::shared_ptr<grammar::MatchCache> cache;
  MatchLimits limits;
  grammar::Place now;
  bool finished = false;
  size_t accepted = 0;
  std::vector<Past> past; ///< in front of the last tokens
};

} // namespace kf

#endif // KF_RUNTIME_GRAMMAR_GRAMMARMATCHER_H
