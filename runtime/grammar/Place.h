//===- Place.h - What a grammar knows of a text -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_PLACE_H
#define KF_RUNTIME_GRAMMAR_PLACE_H

#include <cstdint>
#include <vector>

namespace kf::grammar {

/// A way to read the end of the text: as the beginning of a lexeme that `row`
/// expects, after the lexemes that led there.
struct Thread {
  uint32_t row;
  uint32_t state; ///< of the lexer
  auto operator<=>(const Thread &) const = default;
};

/// All ways to read a text so far. Numbers are those of a MatchCache.
struct Place {
  std::vector<Thread> threads; ///< sorted, each once
  bool mayEnd = false;         ///< the text may end here
  bool operator==(const Place &) const = default;
};

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_PLACE_H
