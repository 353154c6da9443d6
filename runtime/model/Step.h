//===- Step.h - The programs that a decoder runs ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What Session asks its compiler for, and what import builds. T is the number
// of tokens of the step, D the hidden size, V the vocabulary.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_STEP_H
#define KF_RUNTIME_MODEL_STEP_H

#include <cstdint>
#include <string_view>

namespace kf {

enum class StepKind {
  /// ids [1] i32, positions [1] i32, cache -> logits [1, V] f32.
  Decode,
  /// ids [T] i32, positions [T] i32, cache -> hidden [T, D] f32, before the
  /// final norm.
  Prefill,
  /// hidden [T, D] f32 -> logits [T, V] f32.
  Head
};

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
