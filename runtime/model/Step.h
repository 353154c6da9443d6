//===- Step.h - The programs that a decoder runs ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What Session asks its compiler for, and what import builds: one kind of
// program, in sizes. T is the number of tokens of the step, each a row that
// belongs to one of S sequences, of which each has up to P pages of the cache;
// L is the number of rows whose logits are wanted, V the vocabulary. Only
// these L rows visit the final norm and the output matrix.
//
//   ids, positions, sequences [T] i32, page table [S, P] i32, wanted [L] i32,
//   cache -> logits [L, V] f32
//
// `wanted` are numbers of rows, from 0 to T - 1; any other gives the logits of
// a row of zeros. A Session has one sequence.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_STEP_H
#define KF_RUNTIME_MODEL_STEP_H

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

namespace kf {

/// The sizes that a step is compiled for.
struct StepShape {
  /// T at most. 1: always 1, with static shapes.
  int64_t tokens = 1;
  /// L at most. 1: always 1; else L may be 0.
  int64_t wanted = 1;

  auto operator<=>(const StepShape &) const = default;
};

/// The function's and the program's name: "step_512", and "step_512_16" where
/// there can be more wanted rows than one.
inline std::string nameOf(const StepShape &shape) {
  std::string name = "step_" + std::to_string(shape.tokens);
  return shape.wanted == 1 ? name : name + "_" + std::to_string(shape.wanted);
}

/// Numbers of a step's inputs; caches are not counted.
enum StepInput : size_t {
  kStepIds,
  kStepPositions,
  kStepSequences,
  kStepPageTable,
  kStepWanted
};

/// How L is called (`#kf.size`).
inline constexpr char kWantedSize[] = "wanted";

/// Positions of a page of the cache: a multiple of every device's block and
/// tile of keys, and few, so that a short sequence does not hold much that it
/// does not use.
constexpr int64_t kCachePage = 64;

/// Pages that hold `positions` positions of a sequence.
constexpr int64_t cachePagesOf(int64_t positions) {
  return (positions + kCachePage - 1) / kCachePage;
}

} // namespace kf

#endif // KF_RUNTIME_MODEL_STEP_H
