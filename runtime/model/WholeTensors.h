//===- WholeTensors.h - Where parts of a model have theirs from -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_WHOLETENSORS_H
#define KF_RUNTIME_MODEL_WHOLETENSORS_H

#include "runtime/core/Status.h"
#include "runtime/model/TensorList.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// The tensors of a whole model by their keys, for those who make parts of it.
/// Refers to `model`, which must outlive it.
class WholeTensors {
public:
  /// `tensors` are those that findTensors() has found of `model`.
  WholeTensors(const ModelConfig &model, std::vector<ListedTensor> tensors);
  WholeTensors(const WholeTensors &) = delete; // `byKey` refers to its own
  WholeTensors &operator=(const WholeTensors &) = delete;

  const std::vector<ListedTensor> &all() const { return tensors; }

  /// What a part's tensor with the key `key` in the whole model is made of: the
  /// one with this key, or, where the embedding table is the output matrix,
  /// too, the table. Valid as long as this. Errors: there is no such tensor.
  Result<const ListedTensor *> find(std::string_view key) const;

private:
  const ModelConfig &model;
  const std::vector<ListedTensor> tensors;
  std::map<std::string_view, const ListedTensor *> byKey;
};

} // namespace kf

#endif // KF_RUNTIME_MODEL_WHOLETENSORS_H
