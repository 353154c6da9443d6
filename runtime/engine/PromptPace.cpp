//===- PromptPace.cpp - Rows of prompts beside texts that go on -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/PromptPace.h"

#include <algorithm>
#include <cassert>

using namespace kf;

/// The share of a line that the last step is.
static constexpr double kNewest = 1.0 / 32;
/// A step counts as at most so many times what was expected, and as the
/// reciprocal at least: something else may have had the machine. The first one
/// of a program is expected to be what a smaller program says.
static constexpr double kFarOff = 2;
/// Steps after which a program that did not run may be quicker than it was.
static constexpr uint64_t kForgotten = 1024;
/// How far the rows of steps have to differ, as a part of them, for a line to
/// follow their times; of fewer, each row is thought to take its share.
static constexpr double kApart = 0.05;

/// How much longer a step may take for prompts, and the part of this that it is
/// planned for: not all of as many rows take as long.
static constexpr double kSlower = 2, kPlanned = 0.97;
/// The part of the steps that may have prompts before these may take longer,
/// and the share of it that the last step is.
static constexpr double kOften = 0.78, kNewestStep = 1.0 / 128;
/// Rows that cost as little as this, as a part of a step, are taken with a row
/// that has to be.
static constexpr double kFree = 0.25;

//===----------------------------------------------------------------------===//
// StepLines
//===----------------------------------------------------------------------===//

/// Rows cost something, and less the more there are.
double StepLines::Line::at(double wanted) const {
  const double each = seconds / rows;
  const double prior = kApart * kApart * rows * rows;
  const double spread = std::max(square - rows * rows, 0.0);
  const double common = product - rows * seconds;
  const double slope =
      std::clamp((common + prior * each) / (spread + prior), 0.0, each);
  return seconds + slope * (wanted - rows);
}

void StepLines::add(int64_t program, int64_t rows, double taken) {
  ++steps;
  const auto [entry, isFirst] = lines.try_emplace(program);
  Line &line = entry->second;
  if (!isFirst && steps - line.last > kForgotten) // as of() saw it
    line = Line();
  line.last = steps;
  if (isFirst)
    return;
  const auto count = static_cast<double>(rows);
  double seconds = std::max(taken, 1e-9);
  if (line.steps > 0) {
    const double expected = line.at(count);
    seconds = std::clamp(seconds, expected / kFarOff, expected * kFarOff);
  } else if (const std::optional<double> expected = bySmaller(program, count)) {
    seconds = std::min(seconds, *expected * kFarOff);
  }
  const double part =
      std::max(kNewest, 1.0 / static_cast<double>(++line.steps));
  line.rows += part * (count - line.rows);
  line.seconds += part * (seconds - line.seconds);
  line.square += part * (count * count - line.square);
  line.product += part * (count * seconds - line.product);
}

bool StepLines::hasAny() const {
  return std::ranges::any_of(
      lines, [](const auto &entry) { return entry.second.steps > 0; });
}

/// Those of the next smaller program that was measured, and of each row more as
/// of one there.
std::optional<double> StepLines::bySmaller(int64_t program, double rows) const {
  for (auto next = lines.lower_bound(program); next != lines.begin();) {
    const auto &[size, line] = *--next;
    const auto room = static_cast<double>(size);
    if (line.steps > 0)
      return line.at(room) * std::max(rows / room, 1.0);
  }
  return std::nullopt;
}

double StepLines::of(int64_t program, int64_t rows) const {
  assert(hasAny() && "nothing is known");
  const auto wanted = static_cast<double>(rows);
  auto next = lines.lower_bound(program);
  if (next != lines.end() && next->first == program && next->second.steps > 0 &&
      steps - next->second.last < kForgotten)
    return next->second.at(wanted);
  if (const std::optional<double> seconds = bySmaller(program, wanted))
    return *seconds;
  while (next->second.steps == 0)
    ++next;
  return next->second.at(wanted);
}

//===----------------------------------------------------------------------===//
// PromptPace
//===----------------------------------------------------------------------===//

void PromptPace::add(int64_t program, int64_t rows, double seconds,
                     bool isMixed) {
  lines.add(program, rows, seconds);
  mixed += kNewestStep * ((isMixed ? 1.0 : 0.0) - mixed);
}

int64_t PromptPace::rows(int64_t generating, int64_t most,
                         const ProgramOf &programOf) const {
  assert(generating >= 1 && most >= 1);
  if (!lines.hasAny())
    return 1;
  auto seconds = [&](int64_t prompts) {
    const int64_t rows = generating + prompts;
    return lines.of(programOf(rows), rows);
  };
  // Twice as long, and any time almost where there are always prompts.
  const double others = std::max(1 - mixed, 1e-3);
  const double slower =
      1 + (kSlower - 1) * std::max((1 - kOften) / others, 1.0);
  const double longest =
      std::max(seconds(0) * slower * kPlanned, seconds(1) * (1 + kFree));
  // Those that fit are the first ones.
  int64_t fitting = 1, beyond = most + 1;
  while (beyond - fitting > 1) {
    const int64_t middle = fitting + (beyond - fitting) / 2;
    (seconds(middle) <= longest ? fitting : beyond) = middle;
  }
  return fitting;
}
