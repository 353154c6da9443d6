//===- GgufPlan.h - What a GGUF file is going to hold -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONVERT_GGUFPLAN_H
#define KF_RUNTIME_CONVERT_GGUFPLAN_H

#include "runtime/convert/TensorNames.h"
#include "runtime/io/GgufWriter.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/model/PoolingConfig.h"

#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// The files beside a Hugging Face model's weights that end up in a GGUF file.
/// Empty where there is none.
struct TokenizerTexts {
  std::string_view json;          ///< tokenizer.json
  std::string_view sentencePiece; ///< tokenizer.model; where json is empty
  std::string_view chatTemplate;  ///< Jinja
};

/// A GGUF file before its tensors are converted.
struct GgufPlan {
  struct Tensor {
    ConvertedTensor tensor;
    DataType type = DataType::F32; ///< in the file
  };

  GgufMetadata metadata;
  std::vector<Tensor> tensors;
  /// Lines for people: what GGUF cannot say, tensors of other types than asked
  /// for, and why.
  std::vector<std::string> notes;
  /// The same: why other programs will not read the file, or read it wrongly.
  std::vector<std::string> warnings;
};

/// Plans a file of `type` (isFileType) for a Hugging Face model; `name` is its
/// general.name, `pooling` what its files say of embeddings.
Result<GgufPlan> planFromModel(const ModelConfig &config,
                               const WeightSource &weights,
                               const TokenizerTexts &tokenizer,
                               const std::string &name, DataType type,
                               const PoolingConfig &pooling = {});

/// Plans a file of `type` for the model in another one, of any architecture:
/// its metadata stays but for what is about types.
Result<GgufPlan> planFromGguf(const Gguf &source, DataType type);

} // namespace kf

#endif // KF_RUNTIME_CONVERT_GGUFPLAN_H
