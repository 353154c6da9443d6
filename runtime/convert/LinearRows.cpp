//===- LinearRows.cpp - Linear attention as GGUF has it -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/LinearRows.h"

using namespace kf;

namespace {

/// Rows behind number `first`, `size` of each value head, of which those of one
/// key head follow one another: the first of each key head, then the second.
void addTiled(const LinearAttentionConfig &linear, int64_t first, int64_t size,
              std::vector<RowRange> &rows) {
  const int64_t shared = linear.valueHeads / linear.keyHeads;
  for (int64_t i = 0; i < shared; ++i)
    for (int64_t head = 0; head < linear.keyHeads; ++head)
      rows.push_back({first + (head * shared + i) * size, size});
}

} // namespace

void kf::convertLinear(const ModelConfig &config, const ListedTensor &found,
                       bool isTiled, ConvertedTensor &tensor) {
  const TensorNames &names = tensorNames(config);
  const LinearAttentionConfig &linear = config.linear;
  auto is = [&](std::string_view part) {
    return !part.empty() &&
           (found.key.ends_with("." + std::string(part)) ||
            found.key.ends_with("." + std::string(part) + ".weight"));
  };
  const bool isConvolution = is(names.convolution);
  if (isConvolution)
    tensor.shape.erase(tensor.shape.begin() + 1);
  if (is(names.linearDecay))
    tensor.negatedExponential = true;
  if (is(names.linearNorm))
    tensor.added = 0; // it is no zero-centered one
  if (!isTiled || linear.valueHeads == linear.keyHeads)
    return;
  const int64_t keys = 2 * linear.keyHeads * linear.keyDim;
  if (is(names.linearQkv) || isConvolution) {
    tensor.rows.push_back({0, keys});
    addTiled(linear, keys, linear.valueDim, tensor.rows);
  } else if (is(names.linearZ)) {
    addTiled(linear, 0, linear.valueDim, tensor.rows);
  } else if (is(names.linearA) || is(names.linearB) || is(names.linearDecay) ||
             is(names.linearBias)) {
    addTiled(linear, 0, 1, tensor.rows);
  } else if (is(names.linearOutput)) {
    addTiled(linear, 0, linear.valueDim, tensor.columns);
  }
}

QkvzRows kf::splitQkvz(const LinearAttentionConfig &linear) {
  const int64_t dk = linear.keyDim;
  const int64_t values = // of a key head
      linear.valueHeads / linear.keyHeads * linear.valueDim;
  QkvzRows rows;
  auto add = [&](int64_t offset, int64_t count, std::vector<RowRange> &to) {
    for (int64_t head = 0; head < linear.keyHeads; ++head)
      to.push_back({head * 2 * (dk + values) + offset, count});
  };
  add(0, dk, rows.qkv);
  add(dk, dk, rows.qkv);
  add(2 * dk, values, rows.qkv);
  add(2 * dk + values, values, rows.z);
  return rows;
}
