//===- Regex.h - Split patterns of tokenizers -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tokenizer.json holds patterns in Oniguruma's Ruby syntax; here PCRE2 runs
// them. The two agree on what real tokenizers use, except for what \s and \w
// contain, which is spelled out for PCRE2. Whatever else could mean something
// different in the two is an error, so that no text is split differently in
// silence. (Characters younger than the Unicode version of the PCRE2 at hand,
// 14 in 10.42, are unassigned to it and no letters.)
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_REGEX_H
#define KF_RUNTIME_TEXT_REGEX_H

#include "runtime/core/Cancellation.h"
#include "runtime/core/Status.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// The PCRE2 pattern that means what `pattern` means to Oniguruma.
Result<std::string> translateRegex(std::string_view pattern);

/// A compiled pattern. Any number of threads may match with it at once.
class Regex {
public:
  struct Match {
    size_t begin, end;
  };

  /// Compiles an Oniguruma pattern; an error shows what it does not take.
  static Result<Regex> compile(std::string_view pattern);

  /// Every match in `text`, left to right, without overlaps. `text` must be
  /// valid UTF-8. Fails when the pattern needs too many steps; `cancelled` ends
  /// it between two matches.
  Result<std::vector<Match>> findAll(std::string_view text,
                                     CancelFlag cancelled = nullptr) const;

private:
  explicit Regex(std::shared_ptr<const void> code) : code(std::move(code)) {}

  std::shared_ptr<const void> code; ///< pcre2_code, never null
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_REGEX_H
