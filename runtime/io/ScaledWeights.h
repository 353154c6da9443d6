//===- ScaledWeights.h - 8-bit tensors and their scales ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checkpoints in 8 bits hold a matrix as F8_E4M3 or I8 numbers and, beside it,
// what they are to be multiplied by. Seen through ScaledWeights such a tensor
// is a bf16 tensor like any other, and the scales are not there.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_SCALEDWEIGHTS_H
#define KF_RUNTIME_IO_SCALEDWEIGHTS_H

#include "runtime/io/MadeWeights.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// Presents each F8_E4M3 or I8 tensor `x` of a checkpoint as bf16: the product
/// of an element and its scale, computed in f32 and rounded once, to nearest
/// even. The scales are the tensor `x_scale` or `x_scale_inv` (its inverse of
/// old, now the factor) of f32, f16 or bf16, of one of these shapes where `x`
/// has rows and columns [N, K]:
///   [], [1]                         one for all
///   [N], [N, 1]                     one a row
///   [N, K / g]                      one for g columns of a row
///   [ceil(N / 128), ceil(K / 128)]  one for a square of 128 x 128
/// Without such a tensor the elements are the values. Other tensors pass as
/// they are. Scales of activations (`.input_scale`) are hidden: activations
/// are not rounded here.
class ScaledWeights : public MadeWeights {
public:
  /// Errors, which name the tensor: scales of another shape or type or that are
  /// not finite; zero points, which no symmetric format has.
  static Result<std::unique_ptr<ScaledWeights>>
  create(std::unique_ptr<WeightSource> source);
  /// Whether `source` has tensors that need this.
  static bool isNeeded(const WeightSource &source);
  ~ScaledWeights() override;

  Result<TensorView> find(const std::string &name) const override;
  Result<TensorView> describe(const std::string &name) const override;
  void release(const std::string &name) const override;
  void releasePart(const std::string &name, uint64_t first,
                   uint64_t bytes) const override;
  /// Those of F8_E4M3.
  Result<bool> keepFloat8(const std::string &name) override;
  std::vector<std::string> names() const override;

private:
  struct Entry;
  explicit ScaledWeights(std::unique_ptr<WeightSource> source);
  /// Takes in an 8-bit tensor; `all` are the checkpoint's names, sorted.
  Status add(const std::string &name, const TensorView &view,
             std::span<const std::string> all);

  /// A factor for each row of those that are kept so, by scaleName().
  std::map<std::string, std::vector<float>> factors;
  std::vector<std::string> visible; ///< sorted
};

} // namespace kf

#endif // KF_RUNTIME_IO_SCALEDWEIGHTS_H
