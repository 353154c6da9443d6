//===- CharacterSet.cpp - Sets of Unicode characters ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/CharacterSet.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <string>

using namespace kf;
using namespace kf::grammar;

static constexpr char32_t kLast = 0x10ffff;

std::vector<CharacterSet::Range> CharacterSet::normalized() const {
  std::vector<Range> parts;
  for (auto [first, last] : ranges) {
    last = std::min(last, kLast);
    if (first < 0xd800 && last >= 0xd800)
      parts.push_back({first, 0xd7ff});
    else if (first < 0xd800)
      parts.push_back({first, last});
    if (last > 0xdfff)
      parts.push_back({std::max<char32_t>(first, 0xe000), last});
  }
  std::ranges::sort(parts);
  std::vector<Range> joined;
  for (const auto &[first, last] : parts) {
    if (first > last)
      continue;
    if (!joined.empty() && first <= joined.back().second + 1)
      joined.back().second = std::max(joined.back().second, last);
    else
      joined.push_back({first, last});
  }
  return joined;
}

CharacterSet CharacterSet::complement() const {
  CharacterSet result;
  char32_t next = 0;
  for (const auto &[first, last] : normalized()) {
    if (next < first)
      result.add(next, first - 1);
    next = last + 1;
  }
  if (next <= kLast)
    result.add(next, kLast);
  return result;
}

CharacterSet CharacterSet::within(char32_t first, char32_t last) const {
  CharacterSet result;
  for (const auto &[low, high] : ranges)
    if (low <= last && high >= first)
      result.add(std::max(low, first), std::min(high, last));
  return result;
}

bool CharacterSet::has(char32_t character) const {
  return std::ranges::any_of(ranges, [&](const Range &range) {
    return range.first <= character && character <= range.second;
  });
}

ExprId CharacterSet::utf8(Expressions &expressions) const {
  std::vector<ExprId> forms;
  ByteSet ascii;
  std::vector<Range> todo = normalized();
  while (!todo.empty()) {
    auto [first, last] = todo.back();
    todo.pop_back();
    // Cut until all characters have as many bytes, and each byte is any of a
    // range, whatever the others are.
    bool isCut = false;
    for (const char32_t most : {0x7f, 0x7ff, 0xffff})
      if (!isCut && first <= most && last > most) {
        todo.push_back({first, most});
        todo.push_back({most + 1, last});
        isCut = true;
      }
    if (isCut)
      continue;
    if (last <= 0x7f) {
      ascii.addRange(static_cast<int>(first), static_cast<int>(last));
      continue;
    }
    const int more = last <= 0x7ff ? 1 : last <= 0xffff ? 2 : 3;
    for (int i = 1; i <= more && !isCut; ++i) {
      const char32_t low = (char32_t(1) << 6 * i) - 1;
      if ((first & ~low) == (last & ~low))
        continue;
      if (first & low) {
        todo.push_back({first, first | low});
        todo.push_back({(first | low) + 1, last});
        isCut = true;
      } else if ((last & low) != low) {
        todo.push_back({first, (last & ~low) - 1});
        todo.push_back({last & ~low, last});
        isCut = true;
      }
    }
    if (isCut)
      continue;
    std::string from, to;
    appendUtf8(from, first);
    appendUtf8(to, last);
    ExprId form = Expressions::kEmpty;
    for (size_t i = from.size(); i-- > 0;)
      form = expressions.concat(
          expressions.bytes(ByteSet::range(static_cast<uint8_t>(from[i]),
                                           static_cast<uint8_t>(to[i]))),
          form);
    forms.push_back(form);
  }
  forms.push_back(expressions.bytes(ascii));
  return expressions.either(std::move(forms));
}
