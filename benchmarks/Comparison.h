//===- Comparison.h - Ours, peers and ceilings in turns ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A case is an operation that several contenders compute: ours first, then
// peers, then the loop that measures its ceiling. They take turns, so that a
// machine that slows down slows all of them; figures are medians of the turns.
//
//===----------------------------------------------------------------------===//

#ifndef KF_BENCHMARKS_COMPARISON_H
#define KF_BENCHMARKS_COMPARISON_H

#include "runtime/core/Status.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kf::bench {

/// One way of computing an operation whose operands are in place. One thread
/// calls it.
class Contender {
public:
  virtual ~Contender() = default;
  /// Computes it once; the result is there when this returns.
  virtual Status run() = 0;
  /// The result of the last run as floats, row by row; empty where there is
  /// none to compare.
  virtual Result<std::vector<float>> result() { return std::vector<float>(); }
};

/// What a case counts.
enum class Unit {
  Operations, ///< floating-point or integer; a multiply-add is two
  Bytes       ///< read from memory
};

/// A contender's entry in a case.
struct Entry {
  std::string name; ///< that of its column
  std::unique_ptr<Contender> contender;
  /// What one run() does, in the case's unit; 0: what the case says.
  double amount = 0;
  /// Whether this is the ceiling: no peer, and without a result.
  bool isCeiling = false;
};

struct Case {
  std::string name; ///< "matmul/f32/512x5632x2048"
  Unit unit = Unit::Operations;
  double amount = 0; ///< of one run, in `unit`
  /// The largest difference of a peer's result from ours, relative to ours as
  /// vectors: |peer - ours| / |ours|. Larger ones are errors.
  double tolerance = 1e-5;
  /// Makes the contenders, ours first. Called when the case first runs; they
  /// go away when another one does.
  std::function<Result<std::vector<Entry>>()> prepare;
};

/// Registers `added` with Google Benchmark.
void addCase(Case added);

/// Runs the registered cases as the flags of Google Benchmark say, and prints a
/// table with a row a case and a column for each of `peers` where the flags ask
/// for no other format. The process's exit code: 1 where a case failed.
int runCases(int argc, char **argv, std::vector<std::string> peers);

} // namespace kf::bench

#endif // KF_BENCHMARKS_COMPARISON_H
