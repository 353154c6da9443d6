//===- DraftPace.cpp - How many tokens are worth drafting -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/DraftPace.h"

#include <algorithm>
#include <cassert>

using namespace kf;

/// What a text is thought to accept before it has tried, and how many tokens
/// that weighs.
static constexpr double kPriorAcceptance = 0.7, kPriorTokens = 2;
/// What is left of tokens that were tried when others are.
static constexpr double kRemembered = 0.95;
/// Steps differ for reasons that are not theirs: the fastest counts, until some
/// more were slower.
static constexpr double kSlower = 1.05;
/// What was not measured for long may be faster by now, and is tried again.
static constexpr double kForgotten = 0.9995;
/// Tokens to draft where nobody knows what that takes.
static constexpr size_t kFirst = 2;
/// Tokens that nothing is drafted behind.
static constexpr size_t kShortestRest = 8, kLongestRest = 256;

static double settled(double before, double taken) {
  return before == 0 ? taken : std::min(taken, before * kSlower);
}

void StepTimes::add(int64_t rows, double taken) {
  for (auto &[others, time] : seconds)
    if (others > rows)
      time *= kForgotten;
  if (const auto [entry, isFirst] = seconds.try_emplace(rows, 0); !isFirst)
    entry->second = settled(entry->second, taken);
}

bool StepTimes::has(int64_t rows) const {
  return std::ranges::any_of(seconds, [&](const auto &step) {
    return step.first <= rows && step.second > 0;
  });
}

double StepTimes::of(int64_t rows) const {
  assert(has(rows) && "nothing is known of so few rows");
  int64_t fewer = 0;
  double known = 0;
  for (const auto &[others, time] : seconds) {
    if (time == 0)
      continue;
    if (others > rows)
      return known + static_cast<double>(rows - fewer) /
                         static_cast<double>(others - fewer) * (time - known);
    fewer = others;
    known = time;
  }
  return known;
}

double DraftPace::acceptance() const {
  return (right + kPriorAcceptance * kPriorTokens) / (tried + kPriorTokens);
}

void DraftPace::learn(size_t drafted, size_t accepted) {
  // Those behind the first wrong one say nothing.
  const size_t counted = std::min(accepted + 1, drafted);
  tried = tried * kRemembered + static_cast<double>(counted);
  right = right * kRemembered + static_cast<double>(accepted);
}

void DraftPace::takeRest(size_t length) {
  rest = std::clamp(2 * rest, kShortestRest, kLongestRest);
  restsFrom = length;
  restsUntil = length + rest;
}

void DraftPace::stop(size_t length) {
  restsFrom = length;
  restsUntil = SIZE_MAX;
}

size_t DraftPace::worth(const DraftTimes &times, size_t most, size_t texts,
                        size_t length) {
  const auto rows = static_cast<int64_t>(texts);
  if (isResting(length))
    return 0;
  if (most > 0 && !times.reading.has(rows))
    return 0; // one without drafts is measured first
  if (most > 0 && !times.drafting.has(rows))
    return std::min(most, kFirst);
  const double likely = acceptance();
  size_t best = 0;
  double expected = 1, power = 1;
  double rate = most > 0 ? 1 / times.reading.of(rows) : 0;
  for (size_t count = 1; count <= most; ++count) {
    power *= likely;
    expected += power;
    const double seconds =
        static_cast<double>(count) * times.drafting.of(rows) +
        times.reading.of(rows * static_cast<int64_t>(1 + count));
    if (expected > rate * seconds) {
      rate = expected / seconds;
      best = count;
    }
  }
  if (best > 0) {
    rest = 0;
    return best;
  }
  const bool hasRested = rest > 0;
  takeRest(length);
  return hasRested ? std::min<size_t>(most, 1) : 0;
}
