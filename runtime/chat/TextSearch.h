//===- TextSearch.h - Where a text is in another ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CHAT_TEXTSEARCH_H
#define KF_RUNTIME_CHAT_TEXTSEARCH_H

#include "runtime/chat/Budget.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace kf::jinja {

/// Finds one text in others in time that is linear in both, whatever they are
/// (Knuth, Morris and Pratt), and lets the budget pay for it. The texts must
/// outlive it.
class TextSearch {
public:
  TextSearch(std::string_view needle, bool fromRight, Budget &budget);

  /// The first place of the needle in `text`, or the last one if `fromRight`;
  /// npos if it is not there. An empty needle is at the end where the search
  /// begins.
  size_t find(std::string_view text) const;

private:
  /// A byte of `text`, counted in the direction of the search.
  char at(std::string_view text, size_t index) const {
    return text[fromRight ? text.size() - 1 - index : index];
  }

  /// Where the needle may begin next, counted in the direction of the search.
  size_t skip(std::string_view text, size_t from) const;

  std::string_view needle;
  bool fromRight;
  Budget &budget;
  /// For each prefix of the needle that matched, how much of it still does
  /// when the byte behind it does not.
  std::vector<uint32_t> borders;
};

} // namespace kf::jinja

#endif // KF_RUNTIME_CHAT_TEXTSEARCH_H
