//===- Normalizer.h - What is done to text before it is split ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_NORMALIZER_H
#define KF_RUNTIME_TEXT_NORMALIZER_H

#include "runtime/text/PreTokenizer.h"

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kf {

class SentencePieceNormalizer;

/// Unicode's canonical composition.
struct NfcStep {};
/// Puts `text` before text that is not empty.
struct PrependStep {
  std::string text;
};
/// Puts `by` wherever the pattern matches.
struct ReplaceStep {
  TextPattern pattern;
  std::string by;
};
/// Drops white space at the ends.
struct StripStep {
  bool left, right;
};
/// What tokenizer.model asks for.
using SentencePieceStep = std::shared_ptr<const SentencePieceNormalizer>;

/// Steps in order. Read-only once filled.
struct Normalizer {
  using Step = std::variant<NfcStep, PrependStep, ReplaceStep, StripStep,
                            SentencePieceStep>;
  std::vector<Step> steps;

  bool isIdentity() const { return steps.empty(); }
  /// `text`, any bytes, normalized. Bytes that are no UTF-8 stay as they are,
  /// except that tokenizer.model has its own rule for them. Fails when a
  /// pattern needs too many steps, or when steps blow the text up; `cancelled`
  /// ends it between two steps, and between matches of a pattern.
  Result<std::string> normalize(std::string_view text,
                                CancelFlag cancelled = nullptr) const;
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_NORMALIZER_H
