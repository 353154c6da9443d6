//===- GrammarLimits.h - What grammars may cost -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_GRAMMARLIMITS_H
#define KF_RUNTIME_GRAMMAR_GRAMMARLIMITS_H

#include "runtime/core/Cancellation.h"

#include <cstddef>
#include <cstdint>

namespace kf {

/// What compiling a grammar may take. What exceeds a limit is an error.
struct GrammarLimits {
  size_t maxBytes = size_t(1) << 20; ///< of the schema's or grammar's text
  int maxDepth = 64;                 ///< of nested values, groups, patterns
  /// Rules, symbols and expressions of the compiled grammar, together; one
  /// takes about 100 bytes.
  size_t maxSize = 1'000'000;
  /// Steps of some tens of nanoseconds.
  uint64_t maxSteps = 10'000'000;
  CancelFlag cancelled = nullptr; ///< ends it within some milliseconds
};

/// What matching a text may take.
struct MatchLimits {
  /// Steps of one mask, and of each time that a token is read, which is twice
  /// where it is accepted. A call that has to make its memory anew starts again
  /// with as many.
  uint64_t maxSteps = 20'000'000;
  /// Of what is remembered of a text and to make masks faster, beyond what a
  /// matcher takes in front of an empty text. Past it, what can be made again
  /// is dropped.
  size_t maxBytes = size_t(64) << 20;
  /// How many of the last tokens can be taken back.
  size_t maxRollback = 64;
  CancelFlag cancelled = nullptr; ///< ends a call within some milliseconds
};

} // namespace kf

#endif // KF_RUNTIME_GRAMMAR_GRAMMARLIMITS_H
