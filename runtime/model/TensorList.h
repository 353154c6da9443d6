//===- TensorList.h - The tensors that a model has --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_TENSORLIST_H
#define KF_RUNTIME_MODEL_TENSORLIST_H

#include "runtime/model/ModelConfig.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kf {

/// A tensor of a checkpoint as Hugging Face stores it.
struct ListedTensor {
  enum class Role { Matrix, NormWeight, Bias };
  std::string name; ///< "model.layers.0.mlp.up_proj.weight"
  Role role = Role::Matrix;
  std::vector<int64_t> shape; ///< [out, in]; [in, out] for gpt2's layers
};

/// Every tensor that `config` implies, under Hugging Face's names and in the
/// order of the computation.
std::vector<ListedTensor> listTensors(const ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_MODEL_TENSORLIST_H
