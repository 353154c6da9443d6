//===- KernelInputs.h - What to run a single kernel with --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random inputs that a kernel could meet in a step of a model: positions follow
// one another, sequences have pages, indices exist, sums are those of their
// codes. What each input means comes from whoever knows the kernel's ops.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TUNING_KERNELINPUTS_H
#define KF_RUNTIME_TUNING_KERNELINPUTS_H

#include "runtime/program/Executable.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// What the numbers of a program's input are.
struct KernelInput {
  enum class Role {
    Numbers,   ///< of any kind, from `low` to `high`; integers below `high`
    Positions, ///< of the step's rows in their sequences
    Sequences, ///< of the step's rows
    PageTable, ///< of the step's sequences
    Slots,     ///< for states, of the step's sequences
    CodeSums   ///< of equal parts of each row of codes, which are input `codes`
  };
  Role role = Role::Numbers;
  double low = -1, high = 1; ///< low < high
  size_t codes = 0;

  bool operator==(const KernelInput &) const = default;
};

/// What the numbers of a program's output are.
struct KernelOutput {
  /// Of outliers of kf.round_half: the output that has the rounded elements, of
  /// the same shape. Where one of these is not infinite, the outlier is nothing
  /// that anybody reads.
  std::optional<size_t> rounded;

  bool operator==(const KernelOutput &) const = default;
};

/// A step that a kernel is run in.
struct KernelCase {
  int64_t tokens = 1; ///< rows; as many in each sequence, or nearly so
  /// Other sizes by name (Executable::namedSizes), as near as the program
  /// takes them; 1 of those that are not here.
  std::map<std::string, int64_t> sizes;
  /// Positions that each sequence has before its first row, as far as the page
  /// table, if there is one, has room for them.
  int64_t depth = 0;
  uint64_t seed = 0;
  /// [program's inputs]; those that are not here are of the first role, and
  /// integers then count up from 0.
  std::vector<KernelInput> inputs;
  /// [program's outputs]; of those that are not here, all numbers are read.
  std::vector<KernelOutput> outputs;
};

/// The sizes of the step in the slots of its scalars, with the pages of a pool
/// that holds all its sequences. Errors: `tokens` are none that the program
/// takes, or that its page table has room for; a negative depth.
Result<std::array<int64_t, KF_SCALAR_COUNT>>
kernelScalars(const Executable &program, const KernelCase &kernelCase);

/// Inputs of a step with these scalars. The first rows of a step are those of
/// one with fewer. Errors: an input that does not have its role's type or
/// shape; no memory.
Result<std::vector<HostTensor>>
makeKernelInputs(const Executable &program, const KernelCase &kernelCase,
                 const std::array<int64_t, KF_SCALAR_COUNT> &scalars);

} // namespace kf

#endif // KF_RUNTIME_TUNING_KERNELINPUTS_H
