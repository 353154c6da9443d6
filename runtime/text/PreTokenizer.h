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
#include <variant>
#include <vector>

namespace kf {

/// What to look for in text.
struct TextPattern {
  std::optional<Regex> regex; ///< else `literal` is the pattern
  std::string literal;        ///< not empty when it is used

  /// Every match in `text`, valid UTF-8, left to right, without overlaps.
  /// `cancelled` ends it between two.
  Result<std::vector<Regex::Match>> findAll(std::string_view text,
                                            CancelFlag cancelled) const;
};

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

  TextPattern pattern;
  Behavior behavior = Behavior::Isolated;
  bool invert = false; ///< swaps matches and what lies between
};

/// Puts a space before every word that does not start with one.
struct PrefixSpaceStep {};

/// Hugging Face's Metaspace: writes spaces as a mark.
struct MetaspaceStep {
  /// Which words get a mark at their start, if they have none.
  enum class Prepend { Always, First, Never };

  std::string mark = "\u2581";
  Prepend prepend = Prepend::Always;
  bool split = true; ///< a word starts at every mark
};

/// Steps in order. Read-only once filled.
struct PreTokenizer {
  using Step = std::variant<SplitStep, PrefixSpaceStep, MetaspaceStep>;
  std::vector<Step> steps;

  /// Calls `emit` with every word of `text`, any bytes, in order, until it
  /// fails. Where a step
  /// splits, bytes that are no UTF-8 are words of their own that no step
  /// touches. `first` says that the text starts what is encoded. Fails when a
  /// pattern needs too many steps; `cancelled` ends it between two words.
  Status run(std::string_view text, bool first,
             const std::function<Status(std::string_view)> &emit,
             CancelFlag cancelled = nullptr) const;
};

/// The pattern of ByteLevel with use_regex.
std::string_view gpt2SplitPattern();

} // namespace kf

#endif // KF_RUNTIME_TEXT_PRETOKENIZER_H
