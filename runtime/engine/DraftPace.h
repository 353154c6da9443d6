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

/// The most tokens that are drafted at a time, and how many are where nobody
/// says.
inline constexpr int64_t kMostDraftTokens = 64, kDefaultDraftTokens = 8;

/// What steps of an engine take, by what the last ones took. One thread.
class StepTimes {
public:
  /// A step took `seconds` for `rows` rows. The first one of so many is not
  /// counted: it finds nothing in caches.
  void add(int64_t rows, double seconds);
  /// Whether a step of as few rows was counted.
  bool has(int64_t rows) const;
  /// Seconds of a step of as few rows as has() some; of more than were counted,
  /// as of the most.
  double of(int64_t rows) const;

private:
  std::map<int64_t, double> seconds; ///< by rows; 0: not counted yet
};

/// What a step takes that drafts a token for each of some texts, and one that
/// reads rows of them.
struct DraftTimes {
  StepTimes drafting, reading;
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

  /// Drafts nothing any more behind as many tokens or more.
  void stop(size_t length);

  /// Whether nothing is drafted behind a text of `length` tokens.
  bool isResting(size_t length) const {
    return length >= restsFrom && length < restsUntil;
  }
  /// How likely a token that follows those that came true does, too.
  double acceptance() const;

private:
  double tried = 0, right = 0; ///< tokens, the last ones more than those before
  size_t rest = 0;             ///< tokens, the last time; 0: some were worth it
  size_t restsFrom = 0, restsUntil = 0; ///< lengths of the text
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_DRAFTPACE_H
