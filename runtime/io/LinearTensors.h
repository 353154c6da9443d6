//===- LinearTensors.h - Linear attention in GGUF files ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GGUF files have the rates of decay of linear attention where others have
// their logarithms, and its convolution without the dimension of size 1. Seen
// through LinearTensors both are what others have, so that nothing else knows
// of it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_LINEARTENSORS_H
#define KF_RUNTIME_IO_LINEARTENSORS_H

#include "runtime/io/MadeWeights.h"

#include <memory>
#include <string>
#include <vector>

namespace kf {

/// Presents tensors under the names that they have. Others pass as they are.
class LinearTensors : public MadeWeights {
public:
  explicit LinearTensors(std::unique_ptr<WeightSource> source);
  ~LinearTensors() override;

  /// Presents `name`, r [heads] of f32, as log(-r). Before other calls, beside
  /// none. An error: no such tensor, or another type or shape; find() has one
  /// for numbers that are not finite and below 0.
  Status addDecay(const std::string &name, int64_t heads);

  /// Rows of a convolution, one behind the other: all of `rows`, as often as
  /// `times` says.
  struct Rows {
    int64_t rows = 0, times = 1;
  };
  /// Presents `name`, [all rows, taps] of f32, f16 or bf16, as [rows, 1, taps],
  /// with the rows of each of `parts` repeated. As addDecay().
  Status addConvolution(const std::string &name, const std::vector<Rows> &parts,
                        int64_t taps);

  std::vector<std::string> names() const override { return source->names(); }

private:
  struct Decay;
  struct Convolution;
};

} // namespace kf

#endif // KF_RUNTIME_IO_LINEARTENSORS_H
