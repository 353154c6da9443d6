//===- GridWeights.h - Tensors of GGUF's grids ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks of IQ3_S, IQ3_XXS, IQ2_S, IQ2_XS and IQ2_XXS name magnitudes of four
// or eight neighbours together, by a row of a table. No kernel reads such
// blocks: seen through GridWeights they are blocks of wider types.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_GRIDWEIGHTS_H
#define KF_RUNTIME_MODEL_GRIDWEIGHTS_H

#include "runtime/io/Gguf.h"
#include "runtime/io/MadeWeights.h"

#include <memory>
#include <string>
#include <vector>

namespace kf {

/// Presents tensors of a GGUF file whose types are grids as others:
///   IQ3_S                   q6_k, which holds the same values
///   IQ3_XXS                 q6_k, the same but for a block's scale below
///                           2^-13, half of which is rounded to f16
///   IQ2_S, IQ2_XS, IQ2_XXS  q8_0, rounded to the nearest
/// Other tensors pass as they are.
class GridWeights : public MadeWeights {
public:
  explicit GridWeights(std::unique_ptr<Gguf> source);
  ~GridWeights() override;
  /// Whether `source` has tensors that need this.
  static bool isNeeded(const Gguf &source);

  /// A line for the user for each type that is presented as another.
  std::vector<std::string> notes() const;

  std::vector<std::string> names() const override { return source->names(); }

private:
  struct Entry;

  const Entry &entryOf(const Tensor &tensor) const;

  const Gguf &file; ///< the source
};

} // namespace kf

#endif // KF_RUNTIME_MODEL_GRIDWEIGHTS_H
