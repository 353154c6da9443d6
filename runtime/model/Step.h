//===- Step.h - The programs that a decoder runs ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What Session asks its compiler for, and what import builds. T is the number
// of tokens of the step, D the hidden size, V the vocabulary. S is the number
// of sequences that rows may belong to, P the pages that one may have. A
// Session has one sequence.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_STEP_H
#define KF_RUNTIME_MODEL_STEP_H

#include <cstdint>
#include <string_view>

namespace kf {

enum class StepKind {
  /// ids, positions, sequences [1] i32, page table [S, P] i32, cache ->
  /// logits [1, V] f32.
  Decode,
  /// ids, positions, sequences [T] i32, page table [S, P] i32, cache ->
  /// hidden [T, D] f32, before the final norm.
  Prefill,
  /// hidden [T, D] f32 -> logits [T, V] f32.
  Head
};

/// Positions of a page of the cache: a multiple of every device's block and
/// tile of keys, and few, so that a short sequence does not hold much that it
/// does not use.
constexpr int64_t kCachePage = 64;

/// Pages that hold `positions` positions of a sequence.
constexpr int64_t cachePagesOf(int64_t positions) {
  return (positions + kCachePage - 1) / kCachePage;
}

/// The function's name: "decode", "prefill", "head".
constexpr std::string_view nameOf(StepKind kind) {
  switch (kind) {
  case StepKind::Decode:
    return "decode";
  case StepKind::Prefill:
    return "prefill";
  case StepKind::Head:
    return "head";
  }
  return "";
}

} // namespace kf

#endif // KF_RUNTIME_MODEL_STEP_H
