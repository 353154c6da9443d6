//===- PreTokenizer.h - Cutting text into words -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_PRETOKENIZER_H
#define KF_RUNTIME_TEXT_PRETOKENIZER_H

#include "runtime/text/Regex.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Hugging Face's Split pre-tokenizer.
struct SplitStep {
  /// What becomes of the matches and of what lies between them.
  enum class Behavior {
    Removed,            ///< matches are dropped
    Isolated,           ///< a match is a word
    MergedWithPrevious, ///< a match belongs to the word before it
    MergedWithNext,     ///< a match belongs to the word after it
    Contiguous          ///< matches that touch are one word
  };

  std::optional<Regex> regex; ///< else `literal` is the pattern
  std::string literal;        ///< not empty when it is used
  Behavior behavior = Behavior::Isolated;
  bool invert = false; ///< swaps matches and what lies between
};

/// A sequence of splits that ends in ByteLevel. Read-only once filled.
struct PreTokenizer {
  std::vector<SplitStep> steps;
  /// ByteLevel puts a space before every piece that does not start with one...
  bool addPrefixSpace = false;
  /// ...and splits by this: GPT-2's pattern, when it is told to.
  std::optional<SplitStep> byteLevelSplit;

  /// Calls `emit` with every word of `text`, valid UTF-8, in order.
  Status run(std::string_view text,
             const std::function<void(std::string_view)> &emit) const;
};

/// The pattern of ByteLevel with use_regex.
std::string_view gpt2SplitPattern();

} // namespace kf

#endif // KF_RUNTIME_TEXT_PRETOKENIZER_H
