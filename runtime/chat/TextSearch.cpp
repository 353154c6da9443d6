//===- TextSearch.cpp - Where a text is in another ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/TextSearch.h"

#include <algorithm>
#include <cstring>

using namespace kf;
using namespace kf::jinja;

/// Bytes after which the next ones are paid for.
static constexpr size_t kBlock = 512;

TextSearch::TextSearch(std::string_view needle, bool fromRight, Budget &budget)
    : needle(needle), fromRight(fromRight), budget(budget) {
  budget.characters(needle.size());
  borders.resize(needle.size());
  for (size_t i = 1, matched = 0; i < needle.size(); ++i) {
    while (matched && at(needle, matched) != at(needle, i))
      matched = borders[matched - 1];
    matched += at(needle, matched) == at(needle, i);
    borders[i] = static_cast<uint32_t>(matched);
  }
}

size_t TextSearch::skip(std::string_view text, size_t from) const {
  const size_t rest = text.size() - from;
  if (fromRight) {
    const auto *last =
        static_cast<const char *>(memrchr(text.data(), needle.back(), rest));
    return last ? static_cast<size_t>(text.data() + text.size() - 1 - last)
                : text.size();
  }
  const size_t first = text.find(needle.front(), from);
  return std::min(first, text.size());
}

size_t TextSearch::find(std::string_view text) const {
  if (needle.empty())
    return fromRight ? text.size() : 0;
  size_t matched = 0, paid = 0;
  auto pay = [&](size_t done) {
    budget.steps(1 + (done - paid) / 16);
    paid = done;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (matched == 0)
      i = skip(text, i);
    if (i - paid >= kBlock)
      pay(i);
    if (i == text.size())
      break;
    const char c = at(text, i);
    while (matched && at(needle, matched) != c)
      matched = borders[matched - 1];
    matched += at(needle, matched) == c;
    if (matched == needle.size()) {
      pay(i + 1);
      return fromRight ? text.size() - 1 - i : i + 1 - matched;
    }
  }
  pay(text.size());
  return std::string_view::npos;
}
