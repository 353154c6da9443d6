//===- AttentionOps.cpp - Rotary embedding, cache, attention --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/reference/ReferenceOps.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kf::reference {
namespace {

/// C1 of rope, attention and kv_append.
Status checkHeads(const char *op, const char *what, const TensorView &x) {
  if (x.rank() != 3 || !isFloat(x.type))
    return Status::error(std::string(op) + " C1: " + what + " is " +
                         describe(x.type, x.shape) +
                         ", not [T, heads, D] of float elements");
  return Status();
}

/// Positions of the T rows of `x`; `constraint` is the op's number for it.
Result<std::vector<int32_t>> readPositions(const char *op,
                                           const char *constraint,
                                           const TensorView &positions,
                                           const TensorView &x) {
  std::string what = std::string(op) + " " + constraint + ": positions";
  if (positions.rank() != 1 || positions.shape[0] != x.shape[0])
    return Status::error(what + " are " +
                         describe(positions.type, positions.shape) +
                         " for rows of " + describe(x.type, x.shape));
  return readInts(positions, what.c_str());
}

Status checkLayer(const char *op, const char *constraint, int64_t layer,
                  const CacheView &cache) {
  if (layer < 0 || layer >= cache.spec.layers)
    return Status::error(std::string(op) + " " + constraint + ": layer " +
                         std::to_string(layer) + " of a cache of " +
                         std::to_string(cache.spec.layers) + " layers");
  return Status();
}

/// "Llama 3.1": long wavelengths are divided by the factor, short ones stay,
/// and those between are interpolated.
float scaleLlama3(const RopeScaling &scaling, float frequency) {
  double context = static_cast<double>(scaling.originalContext);
  double low = scaling.lowFreqFactor, high = scaling.highFreqFactor;
  float factor = static_cast<float>(scaling.factor);
  float wavelength = static_cast<float>(2 * std::numbers::pi) / frequency;
  if (wavelength > static_cast<float>(context / low))
    return frequency / factor;
  if (wavelength < static_cast<float>(context / high))
    return frequency;
  float smooth =
      (static_cast<float>(context) / wavelength - static_cast<float>(low)) /
      static_cast<float>(high - low);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

/// One head's keys or values of the first `count` positions, as floats.
struct HeadRows {
  std::vector<float> keys, values; // [count][D]
};

HeadRows readHead(const CacheView &cache, int64_t layer, int64_t head,
                  int64_t count) {
  int64_t d = cache.spec.headDim;
  HeadRows rows;
  rows.keys.resize(count * d);
  rows.values.resize(count * d);
  for (int64_t position = 0; position < count; ++position) {
    cache.readKey(layer, head, position, rows.keys.data() + position * d);
    cache.readValue(layer, head, position, rows.values.data() + position * d);
  }
  return rows;
}

/// Softmax of `scale * q k^T` over the positions [first, last], then the
/// weighted sum of v. q [D], result [D].
void attendRow(const float *q, const HeadRows &rows, int64_t d, int64_t first,
               int64_t last, float scale, float *result) {
  std::vector<float> weights(last - first + 1);
  for (int64_t p = first; p <= last; ++p)
    weights[p - first] = scale * dot(q, rows.keys.data() + p * d, d);
  float largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (float &weight : weights) {
    weight = std::exp(weight - largest);
    sum += weight;
  }
  for (int64_t p = first; p <= last; ++p) {
    float weight = static_cast<float>(weights[p - first] / sum);
    for (int64_t i = 0; i < d; ++i)
      result[i] += weight * rows.values[p * d + i];
  }
}

} // namespace

std::vector<float> ropeFrequencies(const RopeOptions &options) {
  std::vector<float> frequencies(options.rotaryDim / 2);
  float theta = static_cast<float>(options.theta);
  float dim = static_cast<float>(options.rotaryDim);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    float exponent = static_cast<float>(2 * i) / dim;
    frequencies[i] = 1.0f / std::pow(theta, exponent);
    if (!options.scaling)
      continue;
    if (options.scaling->kind == RopeScaling::Kind::Linear)
      frequencies[i] /= static_cast<float>(options.scaling->factor);
    else
      frequencies[i] = scaleLlama3(*options.scaling, frequencies[i]);
  }
  return frequencies;
}

Result<Tensor> rope(const TensorView &x, const TensorView &positions,
                    const TensorView *factors, const RopeOptions &options) {
  KF_RETURN_IF_ERROR(checkHeads("kf.rope", "x", x));
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> rows,
                      readPositions("kf.rope", "C2", positions, x));
  int64_t heads = x.shape[1], d = x.shape[2], rotary = options.rotaryDim;
  if (rotary <= 0 || rotary % 2 != 0 || rotary > d)
    return Status::error("kf.rope C3: rotary_dim is " + std::to_string(rotary) +
                         " for heads of " + std::to_string(d) +
                         "; an even number from 2 up to that is expected");
  if (!(options.theta > 0))
    return Status::error("kf.rope C4: theta is not positive");
  std::vector<float> frequencies = ropeFrequencies(options); // [rotary / 2]
  if (factors) {
    if (!isFloat(factors->type) || factors->shape != std::vector{rotary / 2})
      return Status::error("kf.rope C6: factors are " +
                           describe(factors->type, factors->shape) + ", not " +
                           std::to_string(rotary / 2) + " floats");
    KF_ASSIGN_OR_RETURN(std::vector<float> values, widen(*factors));
    for (int64_t i = 0; i < rotary / 2; ++i)
      frequencies[i] /= values[i];
  }
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, x.shape));
  widen(x, 0, x.count(), result.floats());
  bool half = options.style == RopeStyle::Half;
  for (int64_t t = 0; t < x.shape[0]; ++t)
    for (int64_t head = 0; head < heads; ++head) {
      float *values = result.floats() + (t * heads + head) * d; // [D]
      for (int64_t i = 0; i < rotary / 2; ++i) {
        float angle = static_cast<float>(rows[t]) * frequencies[i];
        float cosine = std::cos(angle), sine = std::sin(angle);
        float &a = values[half ? i : 2 * i];
        float &b = values[half ? i + rotary / 2 : 2 * i + 1];
        float rotated = a * cosine - b * sine;
        b = b * cosine + a * sine;
        a = rotated;
      }
    }
  return result;
}

Status kvAppend(const CacheView &cache, const TensorView &k,
                const TensorView &v, const TensorView &positions,
                int64_t layer) {
  KF_RETURN_IF_ERROR(checkHeads("kf.kv_append", "k", k));
  if (k.shape != v.shape || !(k.type == v.type) ||
      k.shape[1] != cache.spec.kvHeads || k.shape[2] != cache.spec.headDim)
    return Status::error("kf.kv_append C1: k is " + describe(k.type, k.shape) +
                         " and v is " + describe(v.type, v.shape) +
                         " for a cache of " +
                         std::to_string(cache.spec.kvHeads) + " heads of " +
                         std::to_string(cache.spec.headDim));
  Result<std::vector<int32_t>> rows =
      readPositions("kf.kv_append", "C2", positions, k);
  if (!rows)
    return rows.status();
  KF_RETURN_IF_ERROR(checkLayer("kf.kv_append", "C3", layer, cache));
  int64_t heads = cache.spec.kvHeads, d = cache.spec.headDim;
  std::vector<float> row(d);
  for (int64_t t = 0; t < k.shape[0]; ++t) {
    int64_t position = (*rows)[t];
    if (position < 0 || position >= cache.capacity)
      continue;
    for (int64_t head = 0; head < heads; ++head) {
      widen(k, (t * heads + head) * d, d, row.data());
      cache.writeKey(layer, head, position, row.data());
      widen(v, (t * heads + head) * d, d, row.data());
      cache.writeValue(layer, head, position, row.data());
    }
  }
  return Status();
}

Result<Tensor> attention(const TensorView &q, const CacheView &cache,
                         const TensorView &positions,
                         const AttentionOptions &options) {
  KF_RETURN_IF_ERROR(checkHeads("kf.attention", "q", q));
  int64_t rows = q.shape[0], heads = q.shape[1], d = q.shape[2];
  int64_t kvHeads = cache.spec.kvHeads;
  if (d != cache.spec.headDim)
    return Status::error("kf.attention C2: q has heads of " +
                         std::to_string(d) + ", the cache of " +
                         std::to_string(cache.spec.headDim));
  if (heads % kvHeads != 0)
    return Status::error("kf.attention C3: " + std::to_string(heads) +
                         " heads are no multiple of the cache's " +
                         std::to_string(kvHeads));
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> last,
                      readPositions("kf.attention", "C4", positions, q));
  KF_RETURN_IF_ERROR(checkLayer("kf.attention", "C5", options.layer, cache));
  if (options.window && *options.window < 1)
    return Status::error("kf.attention C6: window is " +
                         std::to_string(*options.window) +
                         "; a positive number is expected");

  int64_t length = 0; // positions that any row attends to
  for (int32_t position : last)
    length = std::max<int64_t>(length, int64_t(position) + 1);
  length = std::min(length, cache.capacity);
  KF_ASSIGN_OR_RETURN(std::vector<float> queries, widen(q)); // [T, heads, D]
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, q.shape));
  int64_t group = heads / kvHeads;
  for (int64_t kvHead = 0; kvHead < kvHeads; ++kvHead) {
    HeadRows cached = readHead(cache, options.layer, kvHead, length);
    for (int64_t t = 0; t < rows; ++t) {
      int64_t end = std::min<int64_t>(last[t], cache.capacity - 1), begin = 0;
      if (options.window && *options.window <= last[t])
        begin = last[t] - *options.window + 1;
      if (begin > end)
        continue;
      for (int64_t h = kvHead * group; h < (kvHead + 1) * group; ++h)
        attendRow(queries.data() + (t * heads + h) * d, cached, d, begin, end,
                  options.scale, result.floats() + (t * heads + h) * d);
    }
  }
  return result;
}

} // namespace kf::reference
