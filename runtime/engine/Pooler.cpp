//===- Pooler.cpp - The embedding of a text -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Pooler.h"

#include <cassert>
#include <cmath>

using namespace kf;

Result<EmbeddingOptions> kf::chooseEmbedding(const EmbeddingChoice &said,
                                             const PoolingConfig &model) {
  if (!said.pooling)
    KF_RETURN_IF_ERROR(model.unsupported);
  const EmbeddingOptions unsaid;
  EmbeddingOptions options;
  options.pooling =
      said.pooling.value_or(model.pooling.value_or(unsaid.pooling));
  options.normalizes =
      said.normalizes.value_or(model.normalizes.value_or(unsaid.normalizes));
  return options;
}

Pooler::Pooler(const EmbeddingOptions &options, size_t tokens, size_t width)
    : options(options),
      width(options.dimensions ? static_cast<size_t>(options.dimensions)
                               : width),
      firstToken(options.pooling == Pooling::Last ? tokens - 1 : 0),
      endToken(options.pooling == Pooling::Cls ? 1 : tokens) {
  assert(tokens > 0 && this->width <= width && "no such embedding");
  if (options.pooling == Pooling::Mean)
    sums.resize(this->width);
  else
    rows.reserve((endToken - firstToken) * this->width);
}

void Pooler::add(std::span<const float> row) {
  row = row.first(width);
  if (options.pooling != Pooling::Mean)
    rows.insert(rows.end(), row.begin(), row.end());
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] += row[i];
}

/// Divides `row` by its length, which squares of floats do not overflow in
/// double.
static Status normalize(std::span<float> row) {
  double squares = 0;
  for (float value : row)
    squares += static_cast<double>(value) * value;
  const double length = std::sqrt(squares);
  if (!(length > 0))
    return Status::error("the embedding is zero, so that it has no direction; "
                         "it is not to be normalized",
                         StatusCode::Internal);
  for (float &value : row)
    value = static_cast<float>(value / length);
  return Status();
}

Result<std::vector<float>> Pooler::take() {
  const double tokens = static_cast<double>(endToken - firstToken);
  for (double sum : sums)
    rows.push_back(static_cast<float>(sum / tokens));
  assert(rows.size() % width == 0 && !rows.empty() && "rows are missing");
  if (options.normalizes)
    for (size_t at = 0; at < rows.size(); at += width)
      KF_RETURN_IF_ERROR(normalize(std::span(rows).subspan(at, width)));
  return std::move(rows);
}
