//===- Statistics.cpp - What repeated measurements say --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/Statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace kf;

/// `sorted` is not empty.
static double medianOf(const std::vector<double> &sorted) {
  const size_t count = sorted.size();
  return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/// A normal deviation over the median distance from the median.
static constexpr double kDeviationOfDistance = 1.4826;

Statistics kf::statisticsOf(std::span<const double> samples) {
  Statistics statistics;
  if (samples.empty())
    return statistics;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  const size_t count = sorted.size();
  statistics.count = count;
  statistics.least = sorted.front();
  statistics.most = sorted.back();
  statistics.median = medianOf(sorted);
  double sum = 0;
  for (double sample : sorted)
    sum += sample;
  statistics.mean = sum / static_cast<double>(count);
  if (count == 1)
    return statistics;
  // Of the differences, so that large samples that lie close together keep
  // their digits.
  double squares = 0;
  for (double sample : sorted)
    squares += (sample - statistics.mean) * (sample - statistics.mean);
  statistics.deviation = std::sqrt(squares / static_cast<double>(count - 1));
  for (double &sample : sorted)
    sample = std::abs(sample - statistics.median);
  std::ranges::sort(sorted);
  statistics.spread = kDeviationOfDistance * medianOf(sorted);
  return statistics;
}
