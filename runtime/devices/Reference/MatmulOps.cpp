//===- MatmulOps.cpp - Lookup and matrix products -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include <algorithm>

namespace kf::reference {
namespace {

/// `bias` is null or has the elements [groups, N] or [N].
Status checkBias(const TensorView *bias, bool gated, int64_t n) {
  if (!bias)
    return Status();
  std::vector<int64_t> expected =
      gated ? std::vector<int64_t>{2, n} : std::vector<int64_t>{n};
  if (bias->shape != expected || !isFloat(bias->type))
    return Status::error(
        "kf.matmul C4: bias is " + describe(bias->type, bias->shape) +
        " where a float tensor of shape " + (gated ? "2x" : "") +
        std::to_string(n) + " is expected");
  return Status();
}

/// `scales` are null, or one for each row of `w`, which is of 8 bits.
Status checkScales(const TensorView *scales, const TensorView &w) {
  if (!scales)
    return Status();
  const std::vector<int64_t> expected(w.shape.begin(), w.shape.end() - 1);
  if (scales->shape != expected || scales->type != DataType::F32 ||
      w.type != DataType::F8E4M3)
    return Status::error("kf.matmul C8: weight_scales are " +
                         describe(scales->type, scales->shape) + " for w " +
                         describe(w.type, w.shape));
  return Status();
}

} // namespace

Result<Tensor> embedding(const TensorView &ids, const TensorView &table) {
  if (ids.rank() != 1)
    return Status::error("kf.embedding C1: ids have rank " +
                         std::to_string(ids.rank()) + ", not 1");
  if (table.rank() != 2 || !(isFloat(table.type) || isBlock(table.type)))
    return Status::error("kf.embedding C2: the table is " +
                         describe(table.type, table.shape) +
                         ", not a matrix of float or quantized elements");
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> rows,
                      readInts(ids, "kf.embedding C1: ids"));
  int64_t columns = table.shape[1];
  KF_ASSIGN_OR_RETURN(Tensor result,
                      Tensor::zeros(DataType::F32, {ids.shape[0], columns}));
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] >= 0 && rows[i] < table.shape[0])
      widen(table, rows[i] * columns, columns, result.floats() + i * columns);
  return result;
}

Result<Tensor> matmul(const TensorView &x, const TensorView &w,
                      const TensorView *bias, std::optional<Activation> glu,
                      const TensorView *scales) {
  if (x.rank() != 2 || !isFloat(x.type))
    return Status::error("kf.matmul C1: x is " + describe(x.type, x.shape) +
                         ", not a matrix of float elements");
  if (w.rank() != (glu ? 3u : 2u) || (glu && w.shape[0] != 2) ||
      !(isFloat(w.type) || isBlock(w.type) || w.type == DataType::F8E4M3))
    return Status::error("kf.matmul C2: w is " + describe(w.type, w.shape) +
                         " where " + (glu ? "[2, N, K]" : "[N, K]") +
                         " of float or quantized elements is expected");
  if (x.columns() != w.columns())
    return Status::error("kf.matmul C3: x is " + describe(x.type, x.shape) +
                         " and w is " + describe(w.type, w.shape) +
                         "; their last dimensions differ");
  int64_t m = x.shape[0], k = x.columns(), n = w.shape[w.rank() - 2];
  KF_RETURN_IF_ERROR(checkBias(bias, glu.has_value(), n));
  KF_RETURN_IF_ERROR(checkScales(scales, w));

  KF_ASSIGN_OR_RETURN(std::vector<float> lhs, widen(x)); // [M, K]
  std::vector<float> offsets(glu ? 2 * n : n);           // [N] or [2, N]
  if (bias)
    widen(*bias, 0, bias->count(), offsets.data());
  std::vector<float> factors(glu ? 2 * n : n, 1.0f); // [N] or [2, N]
  if (scales)
    widen(*scales, 0, scales->count(), factors.data());
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, {m, n}));
  float *out = result.floats(); // [M, N]
  std::vector<float> first(k), second(k);
  for (int64_t column = 0; column < n; ++column) {
    widen(w, column * k, k, first.data());
    if (glu)
      widen(w, (n + column) * k, k, second.data());
    for (int64_t row = 0; row < m; ++row) {
      const float *from = lhs.data() + row * k;
      float value =
          dot(from, first.data(), k) * factors[column] + offsets[column];
      if (glu)
        value = activate(*glu, value) *
                (dot(from, second.data(), k) * factors[n + column] +
                 offsets[n + column]);
      out[row * n + column] = value;
    }
  }
  return result;
}

Result<Tensor> batchMatmul(const TensorView &x, const TensorView &w,
                           const TensorView *bias) {
  const size_t rank = x.rank();
  if (rank < 2 || !isFloat(x.type))
    return Status::error("kf.matmul C1: x is " + describe(x.type, x.shape));
  if (w.rank() != 2 && (w.rank() != rank || !isFloat(w.type)))
    return Status::error("kf.matmul C2: w is " + describe(w.type, w.shape) +
                         " for x " + describe(x.type, x.shape));
  const int64_t m = x.shape[rank - 2], k = x.columns(),
                n = w.shape[w.rank() - 2];
  std::vector<int64_t> shape = x.shape;
  shape.back() = n;
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, shape));
  int64_t batches = 1;
  for (size_t dim = 0; dim + 2 < rank; ++dim)
    batches *= x.shape[dim];
  for (int64_t batch = 0; batch < batches; ++batch) {
    // The batch of w, which has one for all along dimensions of 1.
    int64_t of = 0, rest = batch, stride = 1;
    for (size_t dim = rank - 2; w.rank() > 2 && dim-- > 0;) {
      if (w.shape[dim] != 1 && w.shape[dim] != x.shape[dim])
        return Status::error("kf.matmul C2: w is " + describe(w.type, w.shape) +
                             " for x " + describe(x.type, x.shape));
      of += w.shape[dim] == 1 ? 0 : rest % x.shape[dim] * stride;
      stride *= w.shape[dim];
      rest /= x.shape[dim];
    }
    TensorView rows{x.type, {m, k}, x.data + batch * m * k * sizeOf(x.type)};
    TensorView matrix = w;
    if (w.rank() > 2)
      matrix = {w.type,
                {n, w.columns()},
                w.data + of * n * w.columns() * sizeOf(w.type)};
    KF_ASSIGN_OR_RETURN(Tensor product, matmul(rows, matrix, bias));
    std::copy_n(product.floats(), m * n, result.floats() + batch * m * n);
  }
  return result;
}

Result<Tensor> mlp(const TensorView &x, const MlpWeights &weights,
                   Activation kind) {
  if (!weights.up || !weights.down)
    return Status::error("kf.mlp needs the weights up and down");
  if (weights.gateBias && !weights.gate)
    return Status::error("kf.mlp C4: gate_bias needs gate");
  KF_ASSIGN_OR_RETURN(Tensor hidden,
                      matmul(x, *weights.up, weights.upBias)); // [M, F]
  if (weights.gate) {
    KF_ASSIGN_OR_RETURN(Tensor gate,
                        matmul(x, *weights.gate, weights.gateBias)); // [M, F]
    if (gate.view().shape != hidden.view().shape)
      return Status::error("kf.mlp C2: gate is " +
                           describe(weights.gate->type, weights.gate->shape) +
                           " for up " +
                           describe(weights.up->type, weights.up->shape));
    KF_ASSIGN_OR_RETURN(gate, activation(kind, gate.view()));
    for (int64_t i = 0; i < hidden.view().count(); ++i)
      hidden.floats()[i] *= gate.floats()[i];
  } else {
    KF_ASSIGN_OR_RETURN(hidden, activation(kind, hidden.view()));
  }
  return matmul(hidden.view(), *weights.down, weights.downBias);
}

} // namespace kf::reference
