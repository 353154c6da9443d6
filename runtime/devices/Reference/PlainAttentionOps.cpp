//===- PlainAttentionOps.cpp - Attention to keys that are tensors ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include <cmath>
#include <limits>

namespace kf::reference {

namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

/// softmax in place; zeros where scores are -inf. The logarithm of the sum of
/// exp(score), 0 where all are.
float softmaxScores(std::vector<float> &scores) {
  float largest = kHidden;
  for (float score : scores)
    largest = score > largest || std::isnan(score) ? score : largest;
  double sum = 0;
  for (float &score : scores)
    if (score != kHidden) {
      score = std::exp(score - largest);
      sum += score;
    }
  for (float &score : scores) // of a sum that is a NaN, too
    score = score == kHidden ? 0.0f : static_cast<float>(score / sum);
  return sum == 0 ? 0.0f : static_cast<float>(largest + std::log(sum));
}

/// What attention and its gradients compute of each row of queries.
class PlainRows {
public:
  /// `op` begins errors.
  static Result<PlainRows> create(const char *op, const TensorView &q,
                                  const TensorView &k, const TensorView &v,
                                  const TensorView *mask,
                                  const PlainAttentionOptions &options) {
    const size_t rank = q.rank();
    auto fail = [&](const char *constraint) {
      return Status::error(op + std::string(" ") + constraint + ": q is " +
                           describe(q.type, q.shape) + ", k " +
                           describe(k.type, k.shape) + ", v " +
                           describe(v.type, v.shape));
    };
    if (rank < 3 || rank > 4 || !isFloat(q.type))
      return fail("C1");
    if (k.rank() != rank || k.columns() != q.columns() || !isFloat(k.type) ||
        k.shape[rank - 3] < 1 || q.shape[rank - 3] % k.shape[rank - 3] != 0 ||
        (rank == 4 && k.shape[0] != q.shape[0]))
      return fail("C2");
    if (v.rank() != rank || !isFloat(v.type) ||
        !std::equal(v.shape.begin(), v.shape.end() - 1, k.shape.begin()))
      return fail("C3");
    PlainRows rows(options);
    rows.heads = q.shape[rank - 3];
    rows.queries = q.shape[rank - 2];
    rows.d = q.columns();
    rows.groups = k.shape[rank - 3];
    rows.keys = k.shape[rank - 2];
    rows.e = v.columns();
    rows.count = (rank == 4 ? q.shape[0] : 1) * rows.heads * rows.queries;
    if (mask) {
      std::vector<int64_t> scoreShape = q.shape;
      scoreShape.back() = rows.keys;
      Result<Tensor> all = broadcast(*mask, scoreShape);
      if (!all.ok() || !(isFloat(mask->type) || mask->type == DataType::I1))
        return fail("C4");
      rows.mask = all.take();
      rows.maskType = mask->type;
    }
    KF_ASSIGN_OR_RETURN(rows.q, widen(q));
    KF_ASSIGN_OR_RETURN(rows.k, widen(k));
    KF_ASSIGN_OR_RETURN(rows.v, widen(v));
    return rows;
  }

  /// The weights of row `row`, and the logarithm of what they were divided by.
  /// `slopes` gets the derivative of each score by what `softcap` is of.
  float weigh(int64_t row, std::vector<float> &scores,
              std::vector<float> *slopes = nullptr) const {
    const int64_t query = row % queries, last = query + options.offset;
    scores.resize(keys);
    std::vector<float> added(maskType ? keys : 0);
    if (maskType)
      widen(mask.view(), row * keys, keys, added.data());
    if (slopes)
      slopes->assign(keys, 1.0f);
    for (int64_t key = 0; key < keys; ++key) {
      float score =
          options.scale * dot(&q[row * d], &k[keyOf(row, key) * d], d);
      if (options.softcap) {
        const float part = std::tanh(score / *options.softcap);
        score = *options.softcap * part;
        if (slopes)
          (*slopes)[key] = 1 - part * part;
      }
      const bool isHidden = (options.causal && key > last) ||
                            (options.window && key <= last - *options.window) ||
                            (maskType == DataType::I1 && added[key] == 0.0f);
      if (maskType && maskType != DataType::I1)
        score += added[key];
      scores[key] = isHidden ? kHidden : score;
    }
    return softmaxScores(scores);
  }

  /// The number of a key, or value, that row `row` reads.
  int64_t keyOf(int64_t row, int64_t key) const {
    const int64_t head = row / queries % heads, batch = row / queries / heads;
    return (batch * groups + head / (heads / groups)) * keys + key;
  }

  /// Weights of row `row`, and the gradients of its scores times the scale, for
  /// the gradient `dy` [e] of its result.
  struct RowGradient {
    std::vector<float> weights, scores;
    float lse, delta;
  };
  RowGradient differentiate(int64_t row, const float *dy) const {
    RowGradient gradient;
    std::vector<float> slopes;
    gradient.lse = weigh(row, gradient.weights, &slopes);
    std::vector<float> ofWeights(keys);
    double delta = 0;
    for (int64_t key = 0; key < keys; ++key) {
      ofWeights[key] = dot(dy, &v[keyOf(row, key) * e], e);
      delta += double(gradient.weights[key]) * ofWeights[key];
    }
    gradient.delta = static_cast<float>(delta);
    for (int64_t key = 0; key < keys; ++key)
      gradient.scores.push_back(options.scale * slopes[key] *
                                gradient.weights[key] *
                                (ofWeights[key] - gradient.delta));
    return gradient;
  }

  int64_t heads = 1, queries = 1, d = 1, groups = 1, keys = 1, e = 1;
  int64_t count = 0; ///< rows of all batches and heads
  std::vector<float> q, k, v;

private:
  explicit PlainRows(const PlainAttentionOptions &options) : options(options) {}

  PlainAttentionOptions options;
  Tensor mask;                      ///< of all scores
  std::optional<DataType> maskType; ///< empty: there is none
};

/// The gradient of the result, in f32.
Result<std::vector<float>> widenGradient(const char *op, const TensorView &q,
                                         const TensorView &v,
                                         const TensorView &dy) {
  std::vector<int64_t> shape = q.shape;
  shape.back() = v.columns();
  if (dy.shape != shape || !isFloat(dy.type))
    return Status::error(op + std::string(" C6: dy is ") +
                         describe(dy.type, dy.shape));
  return widen(dy);
}

} // namespace

Result<Tensor> plainAttention(const TensorView &q, const TensorView &k,
                              const TensorView &v, const TensorView *mask,
                              const PlainAttentionOptions &options) {
  KF_ASSIGN_OR_RETURN(const PlainRows rows,
                      PlainRows::create("kf.scaled_dot_product_attention", q, k,
                                        v, mask, options));
  std::vector<int64_t> shape = q.shape;
  shape.back() = rows.e;
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, shape));
  std::vector<float> weights;
  for (int64_t row = 0; row < rows.count; ++row) {
    rows.weigh(row, weights);
    float *out = result.floats() + row * rows.e;
    for (int64_t key = 0; key < rows.keys; ++key)
      for (int64_t i = 0; i < rows.e; ++i)
        out[i] += weights[key] * rows.v[rows.keyOf(row, key) * rows.e + i];
  }
  return result;
}

Result<std::vector<Tensor>>
attentionQgrad(const TensorView &q, const TensorView &k, const TensorView &v,
               const TensorView &dy, const TensorView *mask,
               const PlainAttentionOptions &options) {
  const char *op = "kf.attention_qgrad";
  KF_ASSIGN_OR_RETURN(const PlainRows rows,
                      PlainRows::create(op, q, k, v, mask, options));
  KF_ASSIGN_OR_RETURN(std::vector<float> gradient, widenGradient(op, q, v, dy));
  std::vector<int64_t> numbers(q.shape.begin(), q.shape.end() - 1);
  KF_ASSIGN_OR_RETURN(Tensor dq, Tensor::zeros(DataType::F32, q.shape));
  KF_ASSIGN_OR_RETURN(Tensor lse, Tensor::zeros(DataType::F32, numbers));
  KF_ASSIGN_OR_RETURN(Tensor delta, Tensor::zeros(DataType::F32, numbers));
  for (int64_t row = 0; row < rows.count; ++row) {
    const PlainRows::RowGradient of =
        rows.differentiate(row, &gradient[row * rows.e]);
    lse.floats()[row] = of.lse;
    delta.floats()[row] = of.delta;
    for (int64_t key = 0; key < rows.keys; ++key)
      for (int64_t i = 0; i < rows.d; ++i)
        dq.floats()[row * rows.d + i] +=
            of.scores[key] * rows.k[rows.keyOf(row, key) * rows.d + i];
  }
  std::vector<Tensor> results;
  results.push_back(std::move(dq));
  results.push_back(std::move(lse));
  results.push_back(std::move(delta));
  return results;
}

Result<std::vector<Tensor>>
attentionKvgrad(const TensorView &q, const TensorView &k, const TensorView &v,
                const TensorView &dy, const TensorView *mask,
                const PlainAttentionOptions &options) {
  const char *op = "kf.attention_kvgrad";
  KF_ASSIGN_OR_RETURN(const PlainRows rows,
                      PlainRows::create(op, q, k, v, mask, options));
  KF_ASSIGN_OR_RETURN(std::vector<float> gradient, widenGradient(op, q, v, dy));
  KF_ASSIGN_OR_RETURN(Tensor dk, Tensor::zeros(DataType::F32, k.shape));
  KF_ASSIGN_OR_RETURN(Tensor dv, Tensor::zeros(DataType::F32, v.shape));
  for (int64_t row = 0; row < rows.count; ++row) {
    const float *own = &gradient[row * rows.e];
    const PlainRows::RowGradient of = rows.differentiate(row, own);
    for (int64_t key = 0; key < rows.keys; ++key) {
      const int64_t at = rows.keyOf(row, key);
      for (int64_t i = 0; i < rows.d; ++i)
        dk.floats()[at * rows.d + i] +=
            of.scores[key] * rows.q[row * rows.d + i];
      for (int64_t i = 0; i < rows.e; ++i)
        dv.floats()[at * rows.e + i] += of.weights[key] * own[i];
    }
  }
  std::vector<Tensor> results;
  results.push_back(std::move(dk));
  results.push_back(std::move(dv));
  return results;
}

} // namespace kf::reference
