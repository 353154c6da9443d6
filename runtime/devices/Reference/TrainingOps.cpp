//===- TrainingOps.cpp - Losses, and what gradients are made of -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include "runtime/core/SamplingMath.h"

#include <algorithm>
#include <cmath>

namespace kf::reference {
namespace {

Status checkMatrix(const char *what, const TensorView &x) {
  if (x.rank() == 2 && isFloat(x.type))
    return Status();
  return Status::error(std::string(what) + " is " + describe(x.type, x.shape) +
                       ", not a matrix of float elements");
}

Status fewerRows(const char *what, const TensorView &x, const TensorView &y) {
  return Status::error(std::string(what) + ": " + describe(x.type, x.shape) +
                       " does not go with " + describe(y.type, y.shape));
}

} // namespace

Result<Tensor> crossEntropy(const TensorView &logits,
                            const TensorView &labels) {
  KF_RETURN_IF_ERROR(checkMatrix("kf.cross_entropy C1: logits", logits));
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> columns,
                      readInts(labels, "kf.cross_entropy C2: labels"));
  const int64_t rows = logits.shape[0], count = logits.shape[1];
  if (labels.shape != std::vector<int64_t>{rows})
    return fewerRows("kf.cross_entropy C2", labels, logits);
  KF_ASSIGN_OR_RETURN(std::vector<float> values, widen(logits)); // [T, V]
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, {rows}));
  for (int64_t row = 0; row < rows; ++row) {
    if (columns[row] < 0 || columns[row] >= count)
      continue;
    const float *of = values.data() + row * count; // [V]
    const double largest = *std::max_element(of, of + count);
    double sum = 0;
    for (int64_t i = 0; i < count; ++i)
      sum += std::exp(of[i] - largest);
    result.floats()[row] =
        static_cast<float>(std::log(sum) + (largest - of[columns[row]]));
  }
  return result;
}

Result<Tensor> dropout(const TensorView &x, const TensorView &draw, float p) {
  KF_RETURN_IF_ERROR(checkMatrix("kf.dropout C1: x", x));
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> words,
                      readInts(draw, "kf.dropout C2: draw"));
  if (draw.shape != std::vector<int64_t>{4})
    return Status::error("kf.dropout C2: draw is " +
                         describe(draw.type, draw.shape) + ", not four words");
  if (!(p >= 0 && p < 1))
    return Status::error("kf.dropout C3: p is " + std::to_string(p) +
                         ", not from 0 to below 1");
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, x.shape));
  float *values = result.floats(); // [T, D]
  widen(x, 0, x.count(), values);
  const auto bound = static_cast<uint32_t>(std::nearbyint(p * 0x1p32));
  const float scale = 1 / (1 - p);
  auto word = [&](int i) { return static_cast<uint32_t>(words[i]); };
  for (int64_t t = 0; t < x.shape[0]; ++t)
    for (int64_t d = 0; d < x.shape[1]; ++d) {
      const auto random = philox({static_cast<uint32_t>(d),
                                  static_cast<uint32_t>(t), word(0), word(1)},
                                 {word(2), word(3)});
      float &value = values[t * x.shape[1] + d];
      value = random[0] < bound ? 0 : value * scale;
    }
  return result;
}

Result<Tensor> philoxWords(const std::array<TensorView, 6> &words) {
  std::array<std::vector<int32_t>, 6> values;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].shape != words[0].shape)
      return fewerRows("kf.philox C1", words[i], words[0]);
    KF_ASSIGN_OR_RETURN(values[i], readInts(words[i], "kf.philox C1: a word"));
  }
  KF_ASSIGN_OR_RETURN(Tensor result,
                      Tensor::zeros(DataType::I32, words[0].shape));
  for (size_t at = 0; at < values[0].size(); ++at) {
    auto word = [&](size_t i) { return static_cast<uint32_t>(values[i][at]); };
    result.ints()[at] = static_cast<int32_t>(
        philox({word(0), word(1), word(2), word(3)}, {word(4), word(5)})[0]);
  }
  return result;
}

Result<Tensor> scatterAdd(const TensorView &ids, const TensorView &rows,
                          int64_t count) {
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> places,
                      readInts(ids, "kf.scatter_add C1: ids"));
  KF_RETURN_IF_ERROR(checkMatrix("kf.scatter_add C2: rows", rows));
  if (ids.shape != std::vector<int64_t>{rows.shape[0]})
    return fewerRows("kf.scatter_add C2", ids, rows);
  const int64_t columns = rows.shape[1];
  KF_ASSIGN_OR_RETURN(std::vector<float> values, widen(rows)); // [T, D]
  KF_ASSIGN_OR_RETURN(Tensor result,
                      Tensor::zeros(DataType::F32, {count, columns}));
  for (size_t row = 0; row < places.size(); ++row)
    for (int64_t i = 0; i < columns; ++i)
      if (places[row] >= 0 && places[row] < count)
        result.floats()[places[row] * columns + i] += values[row * columns + i];
  return result;
}

Result<Tensor> matmulDgrad(const TensorView &dy, const TensorView &w) {
  KF_RETURN_IF_ERROR(checkMatrix("kf.matmul_dgrad C1: dy", dy));
  if (w.rank() != 2 || !(isFloat(w.type) || isBlock(w.type)) ||
      w.shape[0] != dy.shape[1])
    return fewerRows("kf.matmul_dgrad C2", w, dy);
  const int64_t m = dy.shape[0], n = w.shape[0], k = w.shape[1];
  KF_ASSIGN_OR_RETURN(std::vector<float> rows, widen(dy));   // [M, N]
  KF_ASSIGN_OR_RETURN(std::vector<float> weights, widen(w)); // [N, K]
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, {m, k}));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t c = 0; c < k; ++c)
        result.floats()[i * k + c] += rows[i * n + j] * weights[j * k + c];
  return result;
}

Result<Tensor> matmulWgrad(const TensorView &dy, const TensorView &x) {
  KF_RETURN_IF_ERROR(checkMatrix("kf.matmul_wgrad C1: dy", dy));
  KF_RETURN_IF_ERROR(checkMatrix("kf.matmul_wgrad C2: x", x));
  if (dy.shape[0] != x.shape[0])
    return fewerRows("kf.matmul_wgrad C2", x, dy);
  const int64_t m = dy.shape[0], n = dy.shape[1], k = x.shape[1];
  KF_ASSIGN_OR_RETURN(std::vector<float> left, widen(dy)); // [M, N]
  KF_ASSIGN_OR_RETURN(std::vector<float> right, widen(x)); // [M, K]
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, {n, k}));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t c = 0; c < k; ++c)
        result.floats()[j * k + c] += left[i * n + j] * right[i * k + c];
  return result;
}

} // namespace kf::reference
