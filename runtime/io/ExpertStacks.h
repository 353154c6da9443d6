//===- ExpertStacks.h - Experts whose matrices lie in stacks ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some checkpoints, such as those of gpt-oss and Llama 4, hold a matrix of all
// experts of a layer in one tensor, with gate and up joined, and transposed or
// in blocks of their own. Seen through ExpertStacks each is a tensor of its
// own, so that nothing else knows of it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_EXPERTSTACKS_H
#define KF_RUNTIME_IO_EXPERTSTACKS_H

#include "runtime/io/MadeWeights.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace kf {

/// Presents matrices and biases of experts that it finds in stacks:
///   <stack>         f32, f16 or bf16 [E, K, N], and, where there are biases,
///   <stack>_bias    f32, f16 or bf16 [E, N]; or, instead of the first,
///   <stack>_blocks  ui8 [E, N, K / 32, 16], E2M1 numbers of a row one after
///                   another, the first of two in a byte's low half, and
///   <stack>_scales  ui8 [E, N, K / 32], their scales, E8M0
/// The latter become blocks of mxfp4. Other tensors pass as they are.
class ExpertStacks : public MadeWeights {
public:
  /// What stacks are like.
  struct Form {
    /// Rows of an expert's matrices come in turns, rather than all of one
    /// behind those of another.
    bool inTurns = false;
    bool hasBiases = false;
  };
  ExpertStacks(std::unique_ptr<WeightSource> source, const Form &form);
  ~ExpertStacks() override;

  /// The names, without ".weight" and ".bias", of those of an expert's matrices
  /// that are in a stack.
  using Parts = std::vector<std::string>;
  /// Presents the parts of all experts in the stack `name`, with `rows` rows of
  /// `columns` elements each, and hides the stack. Every expert has as many.
  /// Before other calls, beside none. Errors, which change nothing: a tensor
  /// that is missing or has another type or shape, a part that there is
  /// already.
  Status add(const std::string &name, int64_t rows, int64_t columns,
             const std::vector<Parts> &experts);

  std::vector<std::string> names() const override;

private:
  struct Entry;

  Form form;
  std::set<std::string> hidden; ///< in the source
};

} // namespace kf

#endif // KF_RUNTIME_IO_EXPERTSTACKS_H
