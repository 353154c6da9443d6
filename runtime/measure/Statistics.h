//===- Statistics.h - What repeated measurements say ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MEASURE_STATISTICS_H
#define KF_RUNTIME_MEASURE_STATISTICS_H

#include <cstddef>
#include <span>

namespace kf {

/// In the unit of the samples; all 0 where there are none.
struct Statistics {
  size_t count = 0;
  double mean = 0;
  double deviation = 0; ///< of a sample (n - 1); 0 for a single one
  double median = 0;    ///< of an even number, the mean of the middle two
  /// 1.4826 times the median distance from the median. Of normal numbers it is
  /// the deviation, and a few samples far off do not move it.
  double spread = 0;
  double least = 0, most = 0;
};

/// `samples` are finite, in any order. Any thread.
Statistics statisticsOf(std::span<const double> samples);

} // namespace kf

#endif // KF_RUNTIME_MEASURE_STATISTICS_H
