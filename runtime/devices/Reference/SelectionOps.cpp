//===- SelectionOps.cpp - Argmax and sampling -----------------------------===//
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
#include <cstring>
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

/// Element `index` of a tensor whose type has been checked.
template <typename T> T elementAt(const TensorView &tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.data + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

Status checkVector(const char *constraint, const char *name,
                   const TensorView &tensor, DataType type, int64_t extent) {
  if (tensor.type == type && tensor.shape == std::vector<int64_t>{extent})
    return Status();
  return Status::error(std::string("kf.sample ") + constraint + ": " + name +
                       " is " + describe(tensor.type, tensor.shape) + ", but " +
                       describe(type, std::vector{extent}) + " is needed");
}

Status checkSettings(const SampleOperands &operands, int64_t rows) {
  KF_RETURN_IF_ERROR(checkVector("C2", "temperature", *operands.temperature,
                                 DataType::F32, rows));
  KF_RETURN_IF_ERROR(
      checkVector("C2", "top_k", *operands.topK, DataType::I32, rows));
  KF_RETURN_IF_ERROR(
      checkVector("C2", "top_p", *operands.topP, DataType::F32, rows));
  KF_RETURN_IF_ERROR(
      checkVector("C2", "min_p", *operands.minP, DataType::F32, rows));
  KF_RETURN_IF_ERROR(
      checkVector("C2", "seed", *operands.seed, DataType::I64, rows));
  return checkVector("C2", "counter", *operands.counter, DataType::I32, rows);
}

Status checkAdjustments(const SampleAdjustments &adjustments, int64_t rows) {
  if (adjustments.ids->rank() != 1)
    return Status::error(
        "kf.sample C4: ids is " +
        describe(adjustments.ids->type, adjustments.ids->shape) +
        ", not a vector of i32");
  const int64_t count = adjustments.ids->shape[0];
  const std::pair<const char *, const TensorView *> perRow[] = {
      {"first", adjustments.first}, {"count", adjustments.count}};
  for (const auto &[name, tensor] : perRow)
    KF_RETURN_IF_ERROR(checkVector("C3", name, *tensor, DataType::I32, rows));
  const std::pair<const char *, const TensorView *> penalties[] = {
      {"repetition", adjustments.repetition},
      {"presence", adjustments.presence},
      {"frequency", adjustments.frequency}};
  for (const auto &[name, tensor] : penalties)
    KF_RETURN_IF_ERROR(checkVector("C3", name, *tensor, DataType::F32, rows));
  KF_RETURN_IF_ERROR(
      checkVector("C4", "ids", *adjustments.ids, DataType::I32, count));
  KF_RETURN_IF_ERROR(
      checkVector("C4", "seen", *adjustments.seen, DataType::I32, count));
  return checkVector("C4", "bias", *adjustments.bias, DataType::F32, count);
}

Status checkMask(const SampleMaskRows &mask, int64_t rows, int64_t columns) {
  KF_RETURN_IF_ERROR(
      checkVector("C6", "masked", *mask.masked, DataType::I32, rows));
  const TensorView &words = *mask.mask;
  const int64_t needed = (columns + 31) / 32;
  if (words.type == DataType::I32 && words.rank() == 2 &&
      words.shape[1] == needed)
    return Status();
  return Status::error("kf.sample C6: mask is " +
                       describe(words.type, words.shape) + ", but rows of " +
                       std::to_string(needed) + " i32 are needed");
}

SampleSettings settingsOf(const SampleOperands &operands, int64_t row) {
  return {elementAt<float>(*operands.temperature, row),
          elementAt<int32_t>(*operands.topK, row),
          elementAt<float>(*operands.topP, row),
          elementAt<float>(*operands.minP, row),
          elementAt<uint64_t>(*operands.seed, row),
          elementAt<uint32_t>(*operands.counter, row)};
}

SamplePenalties penaltiesOf(const SampleAdjustments &adjustments, int64_t row) {
  return {elementAt<float>(*adjustments.repetition, row),
          elementAt<float>(*adjustments.presence, row),
          elementAt<float>(*adjustments.frequency, row)};
}

/// Applies the entries of row `row`, one after the other.
void adjustRow(std::vector<float> &logits, const SampleAdjustments &adjustments,
               const SamplePenalties &penalties, int64_t row) {
  const int64_t first = elementAt<int32_t>(*adjustments.first, row);
  const int64_t end = first + elementAt<int32_t>(*adjustments.count, row);
  for (int64_t i = std::max<int64_t>(first, 0);
       i < std::min(end, adjustments.ids->shape[0]); ++i) {
    const int32_t id = elementAt<int32_t>(*adjustments.ids, i);
    if (id >= 0 && static_cast<size_t>(id) < logits.size())
      logits[id] =
          adjustLogit(logits[id], elementAt<int32_t>(*adjustments.seen, i),
                      elementAt<float>(*adjustments.bias, i), penalties);
  }
}

/// Makes logits -inf that the mask of row `row`, if it has one, excludes.
void maskRow(std::vector<float> &logits, const SampleMaskRows &mask,
             int64_t row) {
  const int64_t number = elementAt<int32_t>(*mask.masked, row);
  if (number < 0 || number >= mask.mask->shape[0])
    return;
  const int64_t first = number * mask.mask->shape[1];
  for (size_t id = 0; id < logits.size(); ++id) {
    const auto word =
        elementAt<uint32_t>(*mask.mask, first + static_cast<int64_t>(id / 32));
    if ((word >> (id % 32) & 1) == 0)
      logits[id] = -kInfinity;
  }
}

/// One row of kf.sample after its adjustments and its mask.
int32_t sampleRow(std::span<const float> logits,
                  const SampleSettings &settings) {
  for (float logit : logits)
    if (std::isnan(logit) || logit == kInfinity)
      return -1;
  std::vector<int32_t> order(logits.size()); // ids, the most likely one first
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  const float largest = logits[order[0]];
  if (largest == -kInfinity)
    return -1;
  if (settings.temperature == 0)
    return order[0];

  if (settings.topK > 0 && static_cast<size_t>(settings.topK) < order.size())
    order.resize(settings.topK);
  const float scale = exponentScale(settings.temperature);
  auto weight = [&](int32_t id) -> uint64_t {
    return tokenWeight(logits[id], largest, scale);
  };
  uint64_t sum = 0;
  for (int32_t id : order)
    sum += weight(id);
  const uint64_t wanted = topPSum(sum, settings.topP);
  size_t kept = 1;
  uint64_t reached = weight(order[0]);
  for (; kept < order.size() && reached < wanted; ++kept)
    reached += weight(order[kept]);
  order.resize(kept);
  std::erase_if(order, [&](int32_t id) {
    return weight(id) < minPWeight(settings.minP);
  });

  std::sort(order.begin(), order.end());
  sum = 0;
  for (int32_t id : order)
    sum += weight(id);
  const uint64_t point =
      drawPoint(sum, randomBits(settings.seed, settings.counter));
  uint64_t cumulative = 0;
  for (int32_t id : order)
    if ((cumulative += weight(id)) > point)
      return id;
  return -1; // never: the point lies below the sum
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

Result<Tensor> sample(const TensorView &logits,
                      const SampleOperands &operands) {
  KF_RETURN_IF_ERROR(checkLogits("kf.sample", logits));
  const int64_t rows = logits.shape[0], columns = logits.columns();
  KF_RETURN_IF_ERROR(checkSettings(operands, rows));
  if (operands.adjustments)
    KF_RETURN_IF_ERROR(checkAdjustments(*operands.adjustments, rows));
  if (operands.mask)
    KF_RETURN_IF_ERROR(checkMask(*operands.mask, rows, columns));
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::I32, {rows}));
  std::vector<float> row(columns);
  for (int64_t t = 0; t < rows; ++t) {
    const SampleSettings settings = settingsOf(operands, t);
    result.ints()[t] = -1;
    if (!settings.areValid())
      continue;
    widen(logits, t * columns, columns, row.data());
    if (operands.adjustments) {
      const SamplePenalties penalties = penaltiesOf(*operands.adjustments, t);
      if (!penalties.areValid())
        continue;
      adjustRow(row, *operands.adjustments, penalties, t);
    }
    if (operands.mask)
      maskRow(row, *operands.mask, t);
    result.ints()[t] = sampleRow(row, settings);
  }
  return result;
}

} // namespace kf::reference
