//===- TimeRatio.cpp - How much longer one thing takes --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/TimeRatio.h"

#include <algorithm>
#include <cassert>
#include <vector>

using namespace kf;

namespace {

/// How often the sign test may err, on either side.
constexpr double kSignError = 1e-6;
/// How many deviations from its mean the rank sum of Mann and Whitney may be:
/// beyond, it errs once in thirty thousand times.
constexpr double kRankDeviations = 4;
/// The most times of each side whose quotients are sorted.
constexpr size_t kMostRanks = 200;

double medianOf(const std::vector<double> &sorted) {
  return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}

/// How many of `count` fair coins fall on one side at most, but for a chance of
/// kSignError; -1 where even none of them is likelier than that.
int64_t fewestHeads(size_t count) {
  const double n = static_cast<double>(count);
  double chance = 0;
  int64_t heads = -1;
  for (size_t k = 0; k < count; ++k) {
    const double i = static_cast<double>(k);
    chance += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) -
                       std::lgamma(n - i + 1) - n * std::log(2.0));
    if (chance > kSignError)
      break;
    heads = static_cast<int64_t>(k);
  }
  return heads;
}

/// The median of `sorted`, and the values that `rank` others lie beyond; no
/// bounds where it is negative.
TimeRatio between(const std::vector<double> &sorted, int64_t rank) {
  TimeRatio result;
  result.ratio = medianOf(sorted);
  if (rank >= 0 && 2 * static_cast<size_t>(rank) < sorted.size()) {
    result.low = sorted[static_cast<size_t>(rank)];
    result.high = sorted[sorted.size() - 1 - static_cast<size_t>(rank)];
  }
  return result;
}

/// Sorted, at most kMostRanks of them.
std::vector<double> ranksOf(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  if (sorted.size() <= kMostRanks)
    return sorted;
  std::vector<double> some(kMostRanks);
  for (size_t i = 0; i < kMostRanks; ++i)
    some[i] = sorted[i * (sorted.size() - 1) / (kMostRanks - 1)];
  return some;
}

} // namespace

TimeRatio kf::ratioOfPairs(std::span<const double> now,
                           std::span<const double> before) {
  assert(now.size() == before.size() && "pairs");
  if (now.empty())
    return {};
  std::vector<double> ratios;
  for (size_t i = 0; i < now.size(); ++i)
    ratios.push_back(now[i] / before[i]);
  std::ranges::sort(ratios);
  return between(ratios, fewestHeads(ratios.size()));
}

TimeRatio kf::ratioOfSamples(std::span<const double> now,
                             std::span<const double> before) {
  const std::vector<double> a = ranksOf(now), b = ranksOf(before);
  if (a.empty() || b.empty())
    return {};
  std::vector<double> ratios;
  ratios.reserve(a.size() * b.size());
  for (const double x : a)
    for (const double y : b)
      ratios.push_back(x / y);
  std::ranges::sort(ratios);
  const double n = static_cast<double>(a.size()),
               m = static_cast<double>(b.size());
  const double rank =
      n * m / 2 - kRankDeviations * std::sqrt(n * m * (n + m + 1) / 12);
  return between(ratios, rank >= 0 ? static_cast<int64_t>(rank) : -1);
}

TimeVerdict kf::verdictOf(const TimeRatio &ratio, double slower) {
  if (ratio.low > 1 + slower)
    return TimeVerdict::Slower;
  if (ratio.high < 1 / (1 + slower))
    return TimeVerdict::Faster;
  return ratio.high <= std::pow(1 + slower, 3) ? TimeVerdict::Same
                                               : TimeVerdict::Unclear;
}
