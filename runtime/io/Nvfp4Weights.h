//===- Nvfp4Weights.h - Tensors of NVFP4 in GGUF files ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GGUF has matrices of NVFP4 as blocks of 64 codes with scales, and one factor
// more in a tensor beside them. No kernel reads such blocks: seen through
// Nvfp4Weights they are bf16 tensors like any other, and factors are not there.
// What folders of NVFP4 have is in PackedWeights.h.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_NVFP4WEIGHTS_H
#define KF_RUNTIME_IO_NVFP4WEIGHTS_H

#include "runtime/io/Gguf.h"
#include "runtime/io/MadeWeights.h"

#include <memory>
#include <string>
#include <vector>

namespace kf {

/// Presents each tensor of NVFP4 as bf16: the product of a code's value, the
/// scale of its 16 elements and its factor, computed in f32 and rounded once,
/// to nearest even. Without a factor nothing is lost. Of `X.weight`, [N, K] or,
/// of experts, [E, N, K]:
///   X.weight       blocks of 64 elements of a row in 36 bytes: 4 scales, each
///                  of 16 elements, and their codes, E2M1, in 8 bytes each,
///                  the low halves of which are the first 8. A scale is E4M3
///                  without a sign: its high bit means nothing. 0x7f is 0, and
///                  0xff, which no writer makes, 480, as the package has it.
///   X.scale        f32 [1], or [E]: the factor; 1 where the tensor is missing
///   X.input_scale  hidden: activations are not rounded here
/// Other tensors pass as they are. Source: ggml, and the gguf package on PyPI.
class Nvfp4Weights : public MadeWeights {
public:
  /// `source` is `file`, or owns it and presents its tensors. Errors, which
  /// name the file (of several, the one with the tensor) and a tensor: factors
  /// of another type or number, that are not finite, or whose product with the
  /// largest code and scale is not finite in bf16; shapes that take more bytes
  /// in bf16 than 63 bits can count.
  static Result<std::unique_ptr<Nvfp4Weights>>
  create(std::unique_ptr<WeightSource> source, const Gguf &file);
  /// Whether `file` has tensors that need this.
  static bool isNeeded(const Gguf &file);
  ~Nvfp4Weights() override;

  /// A line for the user: how many tensors there are of NVFP4, and in how many
  /// times their memory.
  std::string note() const;
  std::vector<std::string> names() const override { return visible; }

private:
  struct Entry;
  explicit Nvfp4Weights(std::unique_ptr<WeightSource> source);

  std::vector<std::string> visible; ///< sorted
};

} // namespace kf

#endif // KF_RUNTIME_IO_NVFP4WEIGHTS_H
