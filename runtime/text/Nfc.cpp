//===- Nfc.cpp - Canonical composition ------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Nfc.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <vector>

using namespace kf;

namespace {

struct Decomposition {
  char32_t whole, first, second; ///< second is 0 if there is one part
};
struct Composition {
  char32_t first, second, whole;
};
struct ClassRange {
  char32_t first, last;
  uint8_t combiningClass;
};

#include "runtime/text/NfcTables.inc"

/// Below this nothing decomposes to or combines with a character before it.
constexpr char32_t kFirstCombining = 0x300;

// Hangul syllables are composed by arithmetic (Unicode, section 3.12).
constexpr char32_t kSyllables = 0xac00, kLeads = 0x1100, kVowels = 0x1161,
                   kTrails = 0x11a7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTrailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTrailCount;

uint8_t combiningClass(char32_t c) {
  auto range = std::lower_bound(
      std::begin(kClassRanges), std::end(kClassRanges), c,
      [](const ClassRange &r, char32_t c) { return r.last < c; });
  return range != std::end(kClassRanges) && range->first <= c
             ? range->combiningClass
             : 0;
}

struct Mark {
  uint8_t combiningClass;
  uint32_t position;
  char32_t character;
};

void decompose(char32_t c, std::vector<Mark> &out) {
  auto put = [&](char32_t part) {
    out.push_back(
        {combiningClass(part), static_cast<uint32_t>(out.size()), part});
  };
  if (c >= kSyllables && c < kSyllables + kSyllableCount) {
    char32_t index = c - kSyllables;
    put(kLeads + index / (kVowelCount * kTrailCount));
    put(kVowels + index % (kVowelCount * kTrailCount) / kTrailCount);
    if (index % kTrailCount != 0)
      put(kTrails + index % kTrailCount);
    return;
  }
  auto found = std::lower_bound(
      std::begin(kDecompositions), std::end(kDecompositions), c,
      [](const Decomposition &d, char32_t c) { return d.whole < c; });
  if (found == std::end(kDecompositions) || found->whole != c)
    return put(c);
  // The table is of one step each; chains are at most four long.
  decompose(found->first, out);
  if (found->second != 0)
    decompose(found->second, out);
}

/// The character that `first` and `second` make together; 0 if none.
char32_t compose(char32_t first, char32_t second) {
  if (first >= kLeads && first < kLeads + kLeadCount && second >= kVowels &&
      second < kVowels + kVowelCount)
    return kSyllables +
           ((first - kLeads) * kVowelCount + second - kVowels) * kTrailCount;
  if (first >= kSyllables && first < kSyllables + kSyllableCount &&
      (first - kSyllables) % kTrailCount == 0 && second > kTrails &&
      second < kTrails + kTrailCount)
    return first + (second - kTrails);
  auto found = std::lower_bound(
      std::begin(kCompositions), std::end(kCompositions),
      std::pair(first, second), [](const Composition &c, const auto &pair) {
        return std::pair(c.first, c.second) < pair;
      });
  bool matches = found != std::end(kCompositions) && found->first == first &&
                 found->second == second;
  return matches ? found->whole : 0;
}

/// Sorts every run of combining characters by class, keeping the order within
/// a class.
void reorder(std::vector<Mark> &marks) {
  for (size_t i = 0; i < marks.size(); ++i) {
    size_t end = i;
    while (end < marks.size() && marks[end].combiningClass != 0)
      ++end;
    std::sort(marks.begin() + i, marks.begin() + end,
              [](const Mark &a, const Mark &b) {
                return std::tie(a.combiningClass, a.position) <
                       std::tie(b.combiningClass, b.position);
              });
    i = end;
  }
}

} // namespace

std::string kf::toNfc(std::string_view text) {
  std::vector<Mark> marks;
  bool simple = true;
  for (size_t at = 0; at < text.size();) {
    Utf8Step step = stepUtf8(text.substr(at));
    simple &= step.character < kFirstCombining;
    decompose(step.character, marks);
    at += step.length;
  }
  if (simple)
    return std::string(text);
  reorder(marks);

  // Every character joins the last starter unless one of its class or higher
  // stands between.
  std::vector<char32_t> result;
  size_t starter = SIZE_MAX;
  uint8_t lastClass = 0;
  for (const Mark &mark : marks) {
    bool adjacent = starter + 1 == result.size();
    if (starter != SIZE_MAX && (adjacent || lastClass < mark.combiningClass)) {
      if (char32_t whole = compose(result[starter], mark.character)) {
        result[starter] = whole;
        continue;
      }
    }
    lastClass = mark.combiningClass;
    if (mark.combiningClass == 0)
      starter = result.size();
    result.push_back(mark.character);
  }
  std::string bytes;
  bytes.reserve(text.size());
  for (char32_t c : result)
    appendUtf8(bytes, c);
  return bytes;
}
