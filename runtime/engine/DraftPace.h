//===- DraftPace.h - How many tokens are worth drafting ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_DRAFTPACE_H
#define KF_RUNTIME_ENGINE_DRAFTPACE_H

#include <cstddef>
#include <cstdint>
#include <map>

namespace kf {

/// The most tokens that are drafted at a time.
inline constexpr int64_t kMostDraftTokens = 64;

/// What drafting a token takes, and a step that reads drafts, by what the last
/// ones took. One thread.
class DraftTimes {
public:
  /// A step took `seconds` for `rows` rows. The first one of so many is not
  /// counted: it finds nothing in caches.
  void addStep(int64_t rows, double seconds);
  /// Drafting `tokens` tokens one after another, of some texts at once, took
  /// `seconds`.
  void addDrafts(size_t tokens, double seconds);

  /// Whether a step of as few rows was measured.
  bool hasStep(int64_t rows) const;
  /// Seconds of a step; of more rows than were measured, as of the most. Of
  /// as few as hasStep().
  double step(int64_t rows) const;
  /// Seconds of a token; 0 before any was drafted.
  double draft() const { return draftSeconds; }

private:
  std::map<int64_t, double> steps; ///< seconds by rows; 0: not counted yet
  double draftSeconds = 0;
};

/// How many tokens to draft for a text, by how many of the last ones came true.
/// One thread.
class DraftPace {
public:
  /// As many tokens as give the most for the time: the expected tokens of a
  /// step that reads so many drafts, by what drafting them and the step take
  /// (Leviathan et al., 2023, 3.3). At most `most`, of each of `texts` texts.
  /// Where none is worth it, 0, and for some tokens behind the text's `length`;
  /// then a single one is tried.
  size_t worth(const DraftTimes &times, size_t most, size_t texts,
               size_t length);
  /// Drafts nothing for some tokens, the longer the more often one after
  /// another.
  void takeRest(size_t length);
  /// Of `drafted` tokens, at least 1, the first `accepted` came true.
  void learn(size_t drafted, size_t accepted);

  /// Whether nothing is drafted behind a text of `length` tokens.
  bool isResting(size_t length) const { return length < restsUntil; }
  /// How likely a token that follows those that came true does, too.
  double acceptance() const;

private:
  double tried = 0, right = 0; ///< tokens, the last ones more than those before
  size_t rest = 0;             ///< tokens, the last time; 0: some were worth it
  size_t restsUntil = 0;       ///< length of the text
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_DRAFTPACE_H
