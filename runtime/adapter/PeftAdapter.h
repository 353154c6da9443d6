//===- PeftAdapter.h - Adapters in PEFT's format ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A folder with adapter_config.json, which says how an adapter adds to a model,
// and adapter_model.safetensors, which has A and B of each module. Neither is
// trusted: fields that change the result are obeyed or refused by name, and
// every tensor is checked against the model.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ADAPTER_PEFTADAPTER_H
#define KF_RUNTIME_ADAPTER_PEFTADAPTER_H

#include "runtime/core/Tensor.h"
#include "runtime/io/Safetensors.h"
#include "runtime/model/LoraConfig.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// One of a model's modules, and what an adapter adds to it.
struct AdaptedModule {
  LoraModule module;
  int64_t rank = 0;
  double scale = 0; ///< factor of B (A x)
};

/// Reads adapter_config.json's text for a model: its modules that are named as
/// targets, with the rank and the scale of each. Errors, in one line: a field
/// that changes the result in a way that is not built, targets that the model
/// does not have, numbers out of range.
Result<std::vector<AdaptedModule>> parsePeftConfig(std::string_view text,
                                                   const ModelConfig &model);

/// An adapter whose tensors are mapped.
class PeftAdapter {
public:
  /// Opens the folder `path` for a model. Errors name the file: no such folder,
  /// those of parsePeftConfig(),
  /// a tensor that is missing, of a module that the model has no adapters for,
  /// of another shape, or of a type other than f32, f16 and bf16.
  static Result<PeftAdapter> open(const std::string &path,
                                  const ModelConfig &model);

  const std::vector<AdaptedModule> &modules() const { return all; }
  /// A [rank, in] and B [out, rank] of one of modules(), as f32. Error, which
  /// names the file: elements that are not finite.
  Result<std::vector<float>> a(const AdaptedModule &of) const;
  Result<std::vector<float>> b(const AdaptedModule &of) const;
  /// Bytes of all tensors.
  uint64_t bytes() const;

  /// The file of all tensors, for errors.
  const std::string &tensorsFile() const { return file; }

private:
  Result<std::vector<float>> values(const std::string &name) const;

  std::vector<AdaptedModule> all;
  std::string file; ///< of the tensors
  std::unique_ptr<Safetensors> tensors;
};

/// Writes an adapter, which PEFT reads, to the folder `path`, and makes the
/// folder where there is none. `tensors` has A and B of each module that
/// config.targets names, under LoraModule's names; `baseModel` is what the file
/// calls the model: a path or a name. Errors name the file, or the tensor that
/// is missing or has another shape.
Status writePeftAdapter(const std::string &path, const LoraConfig &config,
                        const ModelConfig &model, const std::string &baseModel,
                        const std::map<std::string, HostTensor> &tensors);

} // namespace kf

#endif // KF_RUNTIME_ADAPTER_PEFTADAPTER_H
