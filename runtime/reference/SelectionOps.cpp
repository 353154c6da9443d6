//===- SelectionOps.cpp - Argmax and sampling -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/reference/ReferenceOps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kf::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// logits [T, V] of floats with 0 < V < 2^31.
Status checkLogits(const char *op, const TensorView &logits) {
  if (logits.rank() != 2 || logits.columns() < 1 ||
      logits.columns() > std::numeric_limits<int32_t>::max() ||
      !isFloat(logits.type))
    return Status::error(std::string(op) + " C1: logits are " +
                         describe(logits.type, logits.shape) +
                         ", not rows of one or more float elements");
  return Status();
}

/// One row of kf.sample; `logits` hold no NaN.
int32_t sampleRow(std::vector<float> logits, float uniform,
                  const SampleOptions &options) {
  size_t count = logits.size();
  std::vector<int32_t> order(count); // indices by falling logit
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  float largest = logits[order[0]];
  if (std::isinf(largest))
    return order[0];
  if (options.topK > 0)
    count = std::min(count, static_cast<size_t>(options.topK));
  std::vector<double> probabilities(count); // in falling order
  for (size_t i = 0; i < count; ++i)
    probabilities[i] =
        std::exp((static_cast<double>(logits[order[i]]) - largest) /
                 options.temperature);
  double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  double kept = 0;
  size_t end = 0; // one past the last that is kept
  while (end < count && (end == 0 || kept < options.topP * sum))
    kept += probabilities[end++];
  double cumulative = 0;
  for (size_t i = 0; i < end; ++i) {
    cumulative += probabilities[i];
    if (cumulative > uniform * kept)
      return order[i];
  }
  return order[end - 1];
}

} // namespace

Result<Tensor> argmax(const TensorView &logits) {
  KF_RETURN_IF_ERROR(checkLogits("kf.argmax", logits));
  int64_t rows = logits.shape[0], columns = logits.columns();
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::I32, {rows}));
  std::vector<float> row(columns);
  for (int64_t t = 0; t < rows; ++t) {
    widen(logits, t * columns, columns, row.data());
    int64_t best = 0;
    for (int64_t i = 1; i < columns; ++i)
      if (row[i] > row[best] || (std::isnan(row[best]) && !std::isnan(row[i])))
        best = i;
    result.ints()[t] = static_cast<int32_t>(best);
  }
  return result;
}

Result<Tensor> sample(const TensorView &logits, const TensorView &uniform,
                      const SampleOptions &options) {
  KF_RETURN_IF_ERROR(checkLogits("kf.sample", logits));
  int64_t rows = logits.shape[0], columns = logits.columns();
  if (uniform.shape != std::vector<int64_t>{rows} ||
      !(uniform.type == DataType::F32))
    return Status::error("kf.sample C2: uniform is " +
                         describe(uniform.type, uniform.shape) + " for " +
                         std::to_string(rows) + " rows of logits");
  if (!(options.temperature > 0) || options.topK < 0 || !(options.topP > 0) ||
      !(options.topP <= 1))
    return Status::error("kf.sample C3: temperature is to be positive, top_k "
                         "not negative, top_p in (0, 1]");
  KF_ASSIGN_OR_RETURN(std::vector<float> draws, widen(uniform)); // [T]
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::I32, {rows}));
  std::vector<float> row(columns);
  for (int64_t t = 0; t < rows; ++t) {
    widen(logits, t * columns, columns, row.data());
    for (float &logit : row)
      if (std::isnan(logit))
        logit = -kInfinity;
    result.ints()[t] = sampleRow(row, draws[t], options);
  }
  return result;
}

} // namespace kf::reference
