//===- TrainingOps.cpp - Losses, and what gradients are made of -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

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
