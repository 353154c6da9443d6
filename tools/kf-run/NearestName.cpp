//===- NearestName.cpp - What a misspelt word was to be -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NearestName.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

using namespace kf;

namespace {

constexpr size_t kFewestLetters = 3;
/// No name is longer.
constexpr size_t kMostLetters = 64;

/// How many letters have to be put in, left out, changed, or swapped with their
/// neighbour.
size_t editsBetween(std::string_view a, std::string_view b) {
  // Of the letters before i - 1, i and i + 1 of `a`, by those of `b`.
  std::array<std::vector<size_t>, 3> edits;
  edits.fill(std::vector<size_t>(b.size() + 1));
  auto &[before, last, next] = edits;
  std::iota(last.begin(), last.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      next[j + 1] =
          std::min({last[j] + (a[i] != b[j]), last[j + 1] + 1, next[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    std::swap(before, last);
    std::swap(last, next);
  }
  return last.back();
}

} // namespace

std::string_view kf::nearestName(std::string_view word,
                                 std::span<const std::string_view> names) {
  if (word.size() < kFewestLetters || word.size() > kMostLetters)
    return {};
  const size_t limit = std::max<size_t>(word.size() / 3, 1);
  std::string_view nearest;
  size_t least = SIZE_MAX;
  for (std::string_view name : names) {
    const size_t edits = editsBetween(word, name);
    if (edits < least && (edits <= limit || name.starts_with(word))) {
      nearest = name;
      least = edits;
    }
  }
  return nearest;
}

std::string kf::didYouMean(std::string_view word,
                           std::span<const std::string_view> names,
                           std::string_view before) {
  const std::string_view nearest = nearestName(word, names);
  if (nearest.empty())
    return {};
  return ": did you mean " +
         inQuotes(std::string(before) + std::string(nearest)) + "?";
}
