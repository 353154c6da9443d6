//===- ResultComparison.h - Results against the reference's -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How far a kernel's results may be from those of the reference, and how far
// they are. Tests of conformance, the tuner and `kf-run eval` judge by it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TUNING_RESULTCOMPARISON_H
#define KF_RUNTIME_TUNING_RESULTCOMPARISON_H

#include "runtime/core/Tensor.h"
#include "runtime/tuning/KernelInputs.h"

#include <span>
#include <string>
#include <vector>

namespace kf {

/// How results were computed, which says how near they have to be.
struct ResultTolerance {
  /// Products took their rows rounded to 8 bits: an element may be off by 3 %
  /// of the largest one, and a NaN where an infinity is expected.
  bool roundsRows = false;
  /// Products took the numbers of blocks among weights rounded to f16: an
  /// element may be off by 0.1 % of the largest one.
  bool roundsBlocks = false;
  /// Products took their rows rounded to bf16: an element may be off by 1 % of
  /// the largest one.
  bool roundsPairs = false;
  /// Products took their rows as sums of two numbers, which an infinity among
  /// the weights makes a NaN; or one among the rows, where weights are blocks
  /// whose codes are multiplied apart from what is subtracted of them.
  bool splitsRows = false;
  /// Integers are numbers that were rounded: up to 1 % of them may be the next
  /// one (8 bits), or 4 off (sums of such). Otherwise all have to be equal.
  bool roundsIntegers = false;
  /// Allowed differences of floats times this.
  double scale = 1;
};

/// How far results are from what is expected. Numbers that are not finite are
/// judged, but not counted. All 0, and a cosine of 1, where nothing is counted.
struct ResultDifference {
  double largest = 0;  ///< |found - expected| at most
  double mean = 0;     ///< of |found - expected|
  double relative = 0; ///< |found - expected| / |expected|, of the vectors
  double cosine = 1;   ///< of the angle between the vectors
  bool agrees = true;  ///< within the tolerance
  /// Where not: "result 0, element 17 is 0.5 instead of 0.25".
  std::string complaint;
};

/// Elements as numbers, whatever their type.
Result<std::vector<double>> toDoubles(const HostTensor &tensor);

/// Compares results that have the same types and shapes; a difference of these
/// does not agree either. Floats of `expected` agree within a unit of their
/// type relative to their size, or to 1 if that is more, and a rounding of the
/// largest one. Outliers, as `outputs` [results] say, are as exact as f16, and
/// judged and counted only where the rounded element of `expected` is infinite;
/// of results that are not among `outputs`, all elements are. Errors: no
/// memory; element types that are no numbers; outliers of a result of another
/// shape, or of none.
Result<ResultDifference>
compareResults(std::span<const HostTensor> found,
               std::span<const HostTensor> expected,
               const ResultTolerance &tolerance,
               std::span<const KernelOutput> outputs = {});

} // namespace kf

#endif // KF_RUNTIME_TUNING_RESULTCOMPARISON_H
