//===- AdapterWeights.h - A model's tensors and its adapters' ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps multiply each row with the matrices of its adapter, which have one
// shape then: zeros fill up smaller ranks, modules that an adapter lacks, and
// adapter 0, which adds nothing. The rows of B are in the order of the model's
// tensors, and in as many matrices (GGUF's heads, Phi-3's parts).
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ADAPTER_ADAPTERWEIGHTS_H
#define KF_RUNTIME_ADAPTER_ADAPTERWEIGHTS_H

#include "runtime/adapter/PeftAdapter.h"
#include "runtime/io/MadeWeights.h"

#include <memory>
#include <string>
#include <vector>

namespace kf {

/// The tensors of a model's source, and those of adapters under the keys of
/// adapterKeyOfA() and adapterKeyOfB(), which are made when they are asked for.
class AdapterWeights : public MadeWeights {
public:
  /// Sets model.adapters. `adapters` have the numbers from 1 on. Their tensors
  /// are f32 where some that they add to are, and else bf16. Errors: no
  /// adapters, a tensor of the model that is missing.
  static Result<std::unique_ptr<AdapterWeights>>
  create(ModelConfig &model, std::unique_ptr<WeightSource> source,
         std::vector<PeftAdapter> adapters);
  ~AdapterWeights() override;

  /// Adapters are not known by the model's files.
  std::vector<FileIdentity> mappedFiles() const override { return {}; }
  std::vector<std::string> names() const override;

private:
  struct Entry;
  /// Some of a module's tensors, and where they go.
  struct Piece;

  AdapterWeights(std::unique_ptr<WeightSource> source,
                 std::vector<PeftAdapter> adapters);
  Result<DataType> typeFor(const ModelConfig &model) const;
  void addRanks(ModelConfig &model) const;
  void addEntries(const ModelConfig &model, DataType type);

  std::vector<PeftAdapter> adapters;
};

} // namespace kf

#endif // KF_RUNTIME_ADAPTER_ADAPTERWEIGHTS_H
