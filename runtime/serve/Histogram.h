//===- Histogram.h - How many numbers lie below which -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_HISTOGRAM_H
#define KF_RUNTIME_SERVE_HISTOGRAM_H

#include <algorithm>
#include <array>
#include <cstdint>

namespace kf {

/// Seconds that were measured, counted by size: no memory is allocated, and
/// adding one takes no time to speak of.
struct Histogram {
  /// The upper bounds of all buckets but the last, which has none.
  static constexpr std::array<double, 18> bounds = {
      0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
      0.25,  0.5,    1,     2.5,  5,    10,   30,   60,   120};

  /// Those above the bound before, and at most the one of this number.
  std::array<int64_t, bounds.size() + 1> counts = {};
  int64_t count = 0; ///< all
  double sum = 0;    ///< of seconds

  void add(double seconds) {
    ++counts[std::ranges::lower_bound(bounds, seconds) - bounds.begin()];
    ++count;
    sum += seconds;
  }
};

} // namespace kf

#endif // KF_RUNTIME_SERVE_HISTOGRAM_H
