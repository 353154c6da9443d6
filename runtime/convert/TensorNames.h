//===- TensorNames.h - Hugging Face's tensors in GGUF -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONVERT_TENSORNAMES_H
#define KF_RUNTIME_CONVERT_TENSORNAMES_H

#include "runtime/model/ModelConfig.h"
#include "runtime/weights/WeightSource.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kf {

/// How a tensor's elements lie in a source, compared to GGUF.
enum class TensorOrder {
  Same,
  /// Element i of either half of a head's rows becomes row 2 * i, plus 1 for
  /// the second half: GGUF's llama models rotate neighbours.
  HalvesOfHeads,
  Transposed ///< [in, out], as GPT-2's Conv1D has it
};

/// Neighbouring rows, or elements of a row.
struct RowRange {
  int64_t first = 0, count = 0;
};

/// A tensor to be written and where it comes from.
struct ConvertedTensor {
  std::string name;   ///< in GGUF
  std::string source; ///< in the WeightSource; empty: `values` is it
  /// In the WeightSource, too: tensors whose rows follow those of `source`.
  std::vector<std::string> following = {};
  std::vector<int64_t> shape; ///< in GGUF, row-major
  TensorOrder order = TensorOrder::Same;
  int64_t headDim = 0;             ///< rows of a head, for HalvesOfHeads
  float added = 0;                 ///< to each of the source's elements
  bool negatedExponential = false; ///< elements are -exp of the source's
  /// Rows of the source that are the tensor's, in this order, and elements of
  /// each row that are those of a row; empty: all of them, as they come.
  std::vector<RowRange> rows = {}, columns = {};
  std::vector<float> values; ///< of a tensor that no source has
};

/// The tensors of the GGUF file of a Hugging Face model: what `config` implies,
/// each checked to be in `weights` in the shape that follows, and those joined
/// that files of Phi-3 have as one and a layer's experts have in a stack;
/// rope_freqs.weight where the configuration
/// scales frequencies as Llama 3 does, and LongRoPE's tables. A tensor too
/// many, too few or of another shape is an error.
Result<std::vector<ConvertedTensor>>
listConvertedTensors(const ModelConfig &config, const WeightSource &weights);

/// What Llama 3's scaling divides the frequency of each pair of elements by,
/// [rope.dim / 2].
std::vector<float> llama3FrequencyFactors(const RopeConfig &rope);

} // namespace kf

#endif // KF_RUNTIME_CONVERT_TENSORNAMES_H
