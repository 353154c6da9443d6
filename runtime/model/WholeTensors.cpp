//===- WholeTensors.cpp - Where parts of a model have theirs from ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/WholeTensors.h"

#include "runtime/core/Quote.h"

#include <utility>

using namespace kf;

WholeTensors::WholeTensors(const ModelConfig &model,
                           std::vector<ListedTensor> found)
    : model(model), tensors(std::move(found)) {
  for (const ListedTensor &tensor : tensors)
    byKey[tensor.key] = &tensor;
}

Result<const ListedTensor *> WholeTensors::find(std::string_view key) const {
  const TensorNames &names = tensorNames(model);
  auto found = byKey.find(key);
  if (found == byKey.end() && model.tiedEmbeddings &&
      key == std::string(names.head) + ".weight")
    found = byKey.find(std::string(names.embedding) + ".weight");
  if (found != byKey.end())
    return found->second;
  return Status::error("a rank's part of the model has the tensor " +
                           inQuotes(key) + ", which the whole model has not",
                       StatusCode::Internal);
}
