//===- GrammarUse.h - What fuzz targets do with a grammar -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_FUZZ_GRAMMARUSE_H
#define KF_TEST_FUZZ_GRAMMARUSE_H

#include "runtime/grammar/GrammarMatcher.h"

#include <bit>
#include <cstdlib>
#include <string>
#include <vector>

namespace kf {

/// Limits that keep one input short.
inline GrammarLimits fuzzLimits() {
  GrammarLimits limits;
  limits.maxSize = 100'000;
  limits.maxSteps = 2'000'000;
  return limits;
}

/// Writes a text that `grammar` allows, of tokens that `seed` chooses, and ends
/// the process where masks and tokens do not agree.
inline void useGrammar(const Grammar &grammar, uint64_t seed) {
  constexpr int32_t kEnd = 256;
  static const auto vocabulary = [] {
    std::vector<GrammarToken> tokens;
    for (int byte = 0; byte < 256; ++byte)
      tokens.push_back({std::string(1, static_cast<char>(byte)), false});
    tokens.push_back({"", true});
    for (const char *bytes :
         {"\"a", "\":", "\",\"", "}}", "],", "{\"", "true", "ab", "\xc3",
          "\xc3\xa9", " \n", "12", "0.", "hello world", "abc\"}",
          "a long token that has more bytes than those that are short"})
      tokens.push_back({bytes, false});
    return GrammarVocabulary::create(tokens, {kEnd}).take();
  }();
  MatchLimits limits;
  limits.maxSteps = 500'000;
  limits.maxBytes = size_t(4) << 20;
  Result<GrammarMatcher> made =
      GrammarMatcher::create(grammar, vocabulary, limits);
  if (!made.ok())
    return;
  GrammarMatcher matcher = made.take();
  std::vector<uint32_t> mask(vocabulary->maskWords());
  for (int step = 0; step < 24 && matcher.fillMask(mask).ok(); ++step) {
    // Each token is allowed where the mask says so. A token's bytes one by one
    // lead where the token does.
    std::vector<int32_t> allowed;
    for (int32_t id = 0; id < int32_t(vocabulary->size()); ++id) {
      const bool isSet = mask[id / 32] >> id % 32 & 1;
      const Result<bool> asked = matcher.allows(id);
      if (asked.ok() && *asked != isSet)
        std::abort();
      if (isSet)
        allowed.push_back(id);
    }
    if (allowed.empty())
      std::abort();
    if (const auto bytes = matcher.forcedBytes(8);
        bytes.ok() && !bytes->empty())
      if (!(mask[static_cast<uint8_t>((*bytes)[0]) / 32] >>
                static_cast<uint8_t>((*bytes)[0]) % 32 &
            1))
        std::abort();
    seed = seed * 6364136223846793005 + 1442695040888963407;
    const int32_t next = allowed[(seed >> 33) % allowed.size()];
    const bool couldEnd = matcher.mayEnd();
    const Status accepted = matcher.accept(next);
    if (!accepted.ok()) {
      if (accepted.code() == StatusCode::Invalid &&
          accepted.message().find("is not allowed") != std::string::npos)
        std::abort();
      return;
    }
    if (step % 5 == 4) {
      if (!matcher.rollback(1).ok() || matcher.mayEnd() != couldEnd ||
          !matcher.accept(next).ok())
        std::abort();
    }
    if (matcher.isFinished())
      return;
  }
}

} // namespace kf

#endif // KF_TEST_FUZZ_GRAMMARUSE_H
