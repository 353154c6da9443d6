//===- LinearRows.h - Linear attention as GGUF has it -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONVERT_LINEARROWS_H
#define KF_RUNTIME_CONVERT_LINEARROWS_H

#include "runtime/convert/TensorNames.h"
#include "runtime/model/TensorList.h"

#include <string_view>
#include <vector>

namespace kf {

/// Turns `tensor`, a copy of what `found` is, of a layer with linear attention,
/// into the one that GGUF has, where `isTiled` says that value heads take turns
/// at the key heads: decays as rates, the convolution without its dimension of
/// size 1, rows and columns of value heads in the other order. Others stay.
void convertLinear(const ModelConfig &config, const ListedTensor &found,
                   bool isTiled, ConvertedTensor &tensor);

/// The rows of a matrix of q, k, v and z in order of the key heads that GGUF
/// has in one for q, k and v, and in one for z.
struct QkvzRows {
  std::vector<RowRange> qkv, z;
};
QkvzRows splitQkvz(const LinearAttentionConfig &linear);

} // namespace kf

#endif // KF_RUNTIME_CONVERT_LINEARROWS_H
