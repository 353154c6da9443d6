//===- PromptPace.h - Rows of prompts beside texts that go on ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How steps share their time between those that generate and prompts, by what
// the last ones took. docs/decisions/waiting.md says why.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_PROMPTPACE_H
#define KF_RUNTIME_ENGINE_PROMPTPACE_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

namespace kf {

/// What steps take, by the rows of their body's program and those of them that
/// are used: for each program a line through the last steps. One thread.
class StepLines {
public:
  /// A step of `rows` rows took `seconds` in the program for `program` rows.
  /// The first one of a program is not counted: it finds nothing in caches.
  /// What a program took before it did not run for long is forgotten.
  void add(int64_t program, int64_t rows, double seconds);
  /// Whether any step was counted.
  bool hasAny() const;
  /// Seconds of a step. Where the program was not measured, or not for long,
  /// those of the next smaller one, and of each row more as of one there; else
  /// those of the next larger one. Requires hasAny().
  double of(int64_t program, int64_t rows) const;

private:
  /// Means of the last steps, each of which weighs less than the one after it.
  struct Line {
    int64_t steps = 0; ///< that were counted
    uint64_t last = 0; ///< step, of all
    double rows = 0, seconds = 0, square = 0, product = 0;

    double at(double wanted) const;
  };

  std::optional<double> bySmaller(int64_t program, double rows) const;

  std::map<int64_t, Line> lines; ///< by program
  uint64_t steps = 0;
};

/// How many rows of prompts a step has beside those that generate: as many as
/// have it take twice as long at most as it would without them. Where more than
/// 78% of the last steps had prompts beside texts, steps may take longer, up to
/// 221 times as long where all had. One thread.
class PromptPace {
public:
  /// The rows of the program for a step of `rows` rows: more for more.
  using ProgramOf = std::function<int64_t(int64_t rows)>;
  /// Of the next step, beside `generating` rows of texts, at least 1. At least
  /// 1, and at most `most`, which is at least 1.
  int64_t rows(int64_t generating, int64_t most,
               const ProgramOf &programOf) const;
  /// A step was run, as StepLines::add(). `isMixed`: it had rows of prompts and
  /// of those that generate.
  void add(int64_t program, int64_t rows, double seconds, bool isMixed);

private:
  StepLines lines;
  double mixed = 0; ///< the part of the last steps that were
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_PROMPTPACE_H
