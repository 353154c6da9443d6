//===- DummyWeights.h - Weights made of random numbers ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint without a file: every tensor of a model, filled from a seed when
// it is asked for. What is measured with it is what the real model would give,
// for memory and time do not depend on the values.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_DUMMYWEIGHTS_H
#define KF_RUNTIME_MODEL_DUMMYWEIGHTS_H

#include "runtime/model/ModelConfig.h"
#include "runtime/weights/WeightSource.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// A tensor to be made up: f32, f16, bf16, f8E4M3FN or a block type, as it is
/// stored.
struct DummyTensor {
  std::string name;
  DataType type = DataType::F32;
  std::vector<int64_t> shape;
  float mean = 0;          ///< of floats; blocks and 8 bits have 0
  float deviation = 0.02f; ///< of floats; that of 8 bits is 64
};

/// What factors of rows are about, and deviate by, with which a matrix of 8
/// bits has the deviation of other ones.
inline constexpr float kRowFactorMean = 0.02f / 64,
                       kRowFactorDeviation = kRowFactorMean / 16;

/// Random tensors, those of a model under the names that Hugging Face gives
/// them. A tensor's bytes depend on its name, its shape, its type, its mean and
/// the seed alone.
///
/// Matrices and biases have mean 0 and standard deviation 0.02, weights of
/// norms have mean 1. In a block type codes are random and scales give the
/// values that deviation. Matrices whose rows do not end with a block are q8_0,
/// and f16 where they do not even end with a block of that, or are stored
/// transposed. Biases and norms are f32 beside matrices of a block type, else
/// of the matrices' type.
///
/// As f8E4M3FN, matrices that products alone read have it, and beside them, as
/// in a checkpoint, a tensor scaleName() of f32 with a factor for each row;
/// ScaledWeights makes use of it. All else is bf16.
///
/// find() makes a tensor, and holds it until release() or the end; describe()
/// makes nothing. Large tensors are made by all threads of the machine, and
/// different ones at once by those who ask.
class DummyWeights : public WeightSource {
public:
  /// `type`: f32, f16, bf16, f8E4M3FN or a block type; others are errors that
  /// say so.
  static Result<std::unique_ptr<DummyWeights>>
  create(const ModelConfig &config, DataType type, uint64_t seed);
  /// The same of any tensors. Errors: other types, sizes that no tensor has,
  /// two tensors of one name.
  static Result<std::unique_ptr<DummyWeights>>
  create(std::span<const DummyTensor> tensors, uint64_t seed);
  ~DummyWeights() override;

  /// Fails also where there is no memory for the tensor.
  Result<TensorView> find(const std::string &name) const override;
  Result<TensorView> describe(const std::string &name) const override;
  /// Frees the tensor. Nobody may use a view of it, or be in find() for it.
  void release(const std::string &name) const override;
  std::vector<std::string> names() const override;

private:
  struct Entry;
  DummyWeights();
  Status add(const DummyTensor &tensor, uint64_t seed);
  Result<Entry *> entryOf(const std::string &name) const;

  std::map<std::string, std::unique_ptr<Entry>> entries; ///< by name
};

} // namespace kf

#endif // KF_RUNTIME_MODEL_DUMMYWEIGHTS_H
