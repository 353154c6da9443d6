//===- StateOps.cpp - Linear attention ------------------------------------===//
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

/// What rows of kf.gated_delta are computed by, as f32.
struct DeltaNumbers {
  std::vector<float> q, k, v, a, b, convolution, decay, bias;
};

struct DeltaSizes {
  int64_t rows, keyHeads, heads, keyDim, valueDim, taps;

  int64_t channels() const { return 2 * keyDim + valueDim; }
  int64_t elements() const {
    return keyDim * valueDim + (taps - 1) * channels();
  }
};

float silu(float x) { return x / (1 + std::exp(-x)); }

float softplus(float x) {
  return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x)));
}

/// Divides `values` by the root of the sum of their squares.
void normalize(float *values, int64_t count) {
  const float inverse = 1 / std::sqrt(dot(values, values, count) + 1e-6f);
  for (int64_t i = 0; i < count; ++i)
    values[i] *= inverse;
}

/// The convolved channels of row `t` of a head, [q | k | v]; `window` then
/// holds what the next row looks back at.
std::vector<float> convolve(const DeltaNumbers &numbers,
                            const DeltaSizes &sizes, int64_t t, int64_t head,
                            float *window) {
  const int64_t keyHead = head / (sizes.heads / sizes.keyHeads);
  const int64_t dk = sizes.keyDim, dv = sizes.valueDim;
  const int64_t channels = sizes.channels(), before = sizes.taps - 1;
  std::vector<float> convolved(channels);
  auto part = [&](const std::vector<float> &rows, int64_t heads, int64_t own,
                  int64_t size, int64_t firstLine, int64_t offset) {
    for (int64_t i = 0; i < size; ++i) {
      const float *weight = numbers.convolution.data() +
                            (firstLine + own * size + i) * sizes.taps;
      float *past = window + offset + i; // [taps - 1], a row of channels apart
      const float x = rows[(t * heads + own) * size + i];
      float sum = x * weight[before];
      for (int64_t tap = 0; tap < before; ++tap) {
        sum += past[tap * channels] * weight[tap];
        past[tap * channels] =
            tap + 1 < before ? past[(tap + 1) * channels] : x;
      }
      convolved[offset + i] = silu(sum);
    }
  };
  const int64_t ofKeys = sizes.keyHeads * dk;
  part(numbers.q, sizes.keyHeads, keyHead, dk, 0, 0);
  part(numbers.k, sizes.keyHeads, keyHead, dk, ofKeys, dk);
  part(numbers.v, sizes.heads, head, dv, 2 * ofKeys, 2 * dk);
  return convolved;
}

/// Row `t` of a head, whose state it changes -> `result` [dv].
void step(const DeltaNumbers &numbers, const DeltaSizes &sizes, int64_t t,
          int64_t head, float *state, float *result) {
  const int64_t dk = sizes.keyDim, dv = sizes.valueDim;
  std::vector<float> convolved =
      convolve(numbers, sizes, t, head, state + dk * dv);
  float *q = convolved.data(), *k = q + dk, *v = k + dk;
  normalize(q, dk);
  normalize(k, dk);
  const int64_t at = t * sizes.heads + head;
  const float decay = std::exp(-std::exp(numbers.decay[head]) *
                               softplus(numbers.a[at] + numbers.bias[head]));
  const float share = 1 / (1 + std::exp(-numbers.b[at]));
  const float scale = 1 / std::sqrt(static_cast<float>(dk));
  for (int64_t j = 0; j < dv; ++j) {
    float known = 0;
    for (int64_t i = 0; i < dk; ++i)
      known += k[i] * (state[i * dv + j] *= decay);
    const float change = share * (v[j] - known);
    float sum = 0;
    for (int64_t i = 0; i < dk; ++i)
      sum += q[i] * (state[i * dv + j] += k[i] * change);
    result[j] = sum * scale;
  }
}

} // namespace

Result<Tensor> gatedDelta(const GatedDeltaInputs &inputs,
                          const CacheView &cache, int64_t layer) {
  const auto &[q, k, v, a, b, convolution, decay, bias, positions, sequences,
               states] = inputs;
  auto fail = [](const std::string &what) {
    return Status::error("kf.gated_delta " + what);
  };
  if (q.shape.size() != 3 || q.shape != k.shape || v.shape.size() != 3 ||
      v.shape[0] != q.shape[0] || q.shape[1] < 1 ||
      v.shape[1] % q.shape[1] != 0)
    return fail("C1: q is " + describe(q.type, q.shape) + ", k is " +
                describe(k.type, k.shape) + " and v is " +
                describe(v.type, v.shape));
  DeltaSizes sizes = {q.shape[0], q.shape[1], v.shape[1],
                      q.shape[2], v.shape[2], 0};
  if (a.shape != std::vector<int64_t>{sizes.rows, sizes.heads} ||
      b.shape != a.shape)
    return fail("C2: a is " + describe(a.type, a.shape) + " and b is " +
                describe(b.type, b.shape));
  const int64_t lines =
      2 * sizes.keyHeads * sizes.keyDim + sizes.heads * sizes.valueDim;
  if (convolution.shape.size() != 3 || convolution.shape[0] != lines ||
      convolution.shape[1] != 1 || convolution.shape[2] < 2)
    return fail("C3: convolution is " +
                describe(convolution.type, convolution.shape) + " for " +
                std::to_string(lines) + " channels");
  sizes.taps = convolution.shape[2];
  if (decay.count() != sizes.heads || bias.count() != sizes.heads)
    return fail("C4: decay is " + describe(decay.type, decay.shape) +
                " and bias is " + describe(bias.type, bias.shape));
  if (!cache.spec.isOfStates() || cache.spec.kvHeads != sizes.heads ||
      cache.spec.headDim != sizes.elements())
    return fail("C5: the cache has " + std::to_string(cache.spec.kvHeads) +
                " heads of " + std::to_string(cache.spec.headDim) +
                " elements, not " + std::to_string(sizes.heads) + " of " +
                std::to_string(sizes.elements()));
  if (layer < 0 || layer >= cache.spec.layers)
    return fail("C6: layer " + std::to_string(layer) +
                " is outside the cache's " + std::to_string(cache.spec.layers));
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> position,
                      readInts(positions, "kf.gated_delta C7: positions"));
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> sequence,
                      readInts(sequences, "kf.gated_delta C7: sequences"));
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> slot,
                      readInts(states, "kf.gated_delta C8: states"));
  if (std::ssize(position) != sizes.rows || std::ssize(sequence) != sizes.rows)
    return fail("C7: there are " + std::to_string(position.size()) +
                " positions and " + std::to_string(sequence.size()) +
                " sequences for " + std::to_string(sizes.rows) + " rows");
  DeltaNumbers numbers;
  for (auto [tensor, values] :
       {std::pair(&q, &numbers.q), std::pair(&k, &numbers.k),
        std::pair(&v, &numbers.v), std::pair(&a, &numbers.a),
        std::pair(&b, &numbers.b),
        std::pair(&convolution, &numbers.convolution),
        std::pair(&decay, &numbers.decay), std::pair(&bias, &numbers.bias)}) {
    KF_ASSIGN_OR_RETURN(*values, widen(*tensor));
  }
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, v.shape));
  const int64_t slots = cache.spec.slots(cache.pages);
  KF_ASSIGN_OR_RETURN(const int64_t bytes, cache.spec.bytes(cache.pages));
  auto *memory =
      reinterpret_cast<float *>(cache.data + bytes / cache.spec.layers * layer);
  for (int64_t t = 0; t < sizes.rows; ++t) {
    const int32_t own = sequence[t];
    if (own < 0 || own >= std::ssize(slot))
      return fail("C8: row " + std::to_string(t) + " is of sequence " +
                  std::to_string(own) + ", and there are " +
                  std::to_string(slot.size()));
    if (slot[own] < 0 || slot[own] >= slots)
      return fail("C8: the state of sequence " + std::to_string(own) +
                  " is in slot " + std::to_string(slot[own]) +
                  ", and there are " + std::to_string(slots));
    for (int64_t head = 0; head < sizes.heads; ++head) {
      float *state =
          memory + (slot[own] * sizes.heads + head) * sizes.elements();
      if (position[t] == 0)
        std::fill_n(state, sizes.elements(), 0.0f);
      step(numbers, sizes, t, head, state,
           result.floats() + (t * sizes.heads + head) * sizes.valueDim);
    }
  }
  return result;
}

} // namespace kf::reference
