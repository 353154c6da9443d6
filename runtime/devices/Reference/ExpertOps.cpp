//===- ExpertOps.cpp - Feed-forward blocks of several experts -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

namespace kf::reference {
namespace {

constexpr float kLeast = -std::numeric_limits<float>::infinity();

/// exp(x[i]) / sum(exp(x)) of each x, without overflow.
std::vector<float> softmaxOf(std::vector<float> x) {
  float largest = kLeast;
  for (float value : x)
    if (value > largest)
      largest = value;
  double sum = 0;
  for (float &value : x) {
    value = std::exp(value - largest);
    sum += value;
  }
  for (float &value : x)
    value = static_cast<float>(value / sum);
  return x;
}

float sigmoidOf(float x) { return 1 / (1 + std::exp(-x)); }

/// The numbers of `keys`, the largest first, and of equals the first one.
std::vector<int32_t> descending(std::span<const float> keys) {
  std::vector<int32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::greater<>(),
                    [&](int32_t i) { return std::pair(keys[i], -i); });
  return order;
}

/// Makes -inf of the keys of all but the groups whose two largest keys have the
/// largest sums.
void keepGroups(std::vector<float> &keys, const RouteOptions &options) {
  const auto groups = static_cast<size_t>(options.groups);
  const size_t size = keys.size() / groups;
  std::vector<float> sums;
  for (size_t group = 0; group < groups; ++group) {
    const std::span<const float> own(keys.data() + group * size, size);
    const std::vector<int32_t> order = descending(own);
    const float sum = own[order[0]] + own[order[1]];
    sums.push_back(std::isnan(sum) ? kLeast : sum);
  }
  const std::vector<int32_t> order = descending(sums);
  for (size_t i = static_cast<size_t>(options.keptGroups); i < groups; ++i)
    std::fill_n(keys.begin() + static_cast<int64_t>(order[i] * size), size,
                kLeast);
}

Status checkRoute(const TensorView &logits, const RouteOptions &options,
                  const TensorView *scales, const TensorView *bias) {
  if (logits.rank() != 2 || !isFloat(logits.type))
    return Status::error("kf.route C1: logits are " +
                         describe(logits.type, logits.shape) +
                         ", not a matrix of float elements");
  const int64_t count = logits.shape[1];
  if (options.top < 1 || options.top > count)
    return Status::error("kf.route C2: top is " + std::to_string(options.top) +
                         "; 1 to " + std::to_string(count) + " are possible");
  for (auto [name, numbers] :
       {std::pair("scales", scales), std::pair("bias", bias)})
    if (numbers &&
        (numbers->shape != std::vector{count} || !isFloat(numbers->type)))
      return Status::error("kf.route C4: " + std::string(name) + " are " +
                           describe(numbers->type, numbers->shape) + ", not [" +
                           std::to_string(count) + "] of float elements");
  if (bias && !options.sigmoid)
    return Status::error("kf.route C5: bias needs sigmoid");
  if (options.groups == 0)
    return Status();
  const int64_t size = count / options.groups, kept = options.keptGroups;
  if (!bias || count % options.groups != 0 || size < 2 || kept < 1 ||
      kept > options.groups || kept * size < options.top)
    return Status::error("kf.route C5: " + std::to_string(kept) + " of " +
                         std::to_string(options.groups) + " groups of " +
                         std::to_string(count) + " experts");
  return Status();
}

Status checkExperts(const TensorView &x, const TensorView &experts,
                    const TensorView &w, const TensorView *bias, bool gated) {
  if ((x.rank() != 2 && x.rank() != 3) || !isFloat(x.type))
    return Status::error("kf.expert_matmul C1: x is " +
                         describe(x.type, x.shape) +
                         ", not [T, K] or [T, k, K] of float elements");
  if (experts.rank() != 2 || experts.shape[0] != x.shape[0] ||
      (x.rank() == 3 && x.shape[1] != experts.shape[1]))
    return Status::error("kf.expert_matmul C2: experts are " +
                         describe(experts.type, experts.shape) + " for x " +
                         describe(x.type, x.shape));
  if (w.rank() != 4 || w.shape[0] != (gated ? 2 : 1) ||
      !(isFloat(w.type) || isBlock(w.type)))
    return Status::error("kf.expert_matmul C3: w is " +
                         describe(w.type, w.shape) + " where " +
                         (gated ? "[2, E, N, K]" : "[1, E, N, K]") +
                         " of float or quantized elements is expected");
  if (x.columns() != w.columns())
    return Status::error("kf.expert_matmul C4: x is " +
                         describe(x.type, x.shape) + " and w is " +
                         describe(w.type, w.shape) +
                         "; their last dimensions differ");
  const std::vector<int64_t> expected(w.shape.begin(), w.shape.end() - 1);
  if (bias && (bias->shape != expected || !isFloat(bias->type)))
    return Status::error("kf.expert_matmul C5: bias is " +
                         describe(bias->type, bias->shape) + " for w " +
                         describe(w.type, w.shape));
  return Status();
}

} // namespace

Result<std::vector<Tensor>> route(const TensorView &logits,
                                  const RouteOptions &options,
                                  const TensorView *scales,
                                  const TensorView *bias) {
  KF_RETURN_IF_ERROR(checkRoute(logits, options, scales, bias));
  const int64_t rows = logits.shape[0], count = logits.shape[1],
                top = options.top;
  std::vector<float> factors(static_cast<size_t>(count), 1), offsets;
  if (scales) {
    KF_ASSIGN_OR_RETURN(factors, widen(*scales));
  }
  if (bias) {
    KF_ASSIGN_OR_RETURN(offsets, widen(*bias));
  }
  KF_ASSIGN_OR_RETURN(std::vector<float> values, widen(logits));
  KF_ASSIGN_OR_RETURN(Tensor experts,
                      Tensor::zeros(DataType::I32, {rows, top}));
  KF_ASSIGN_OR_RETURN(Tensor weights,
                      Tensor::zeros(DataType::F32, {rows, top}));
  for (int64_t row = 0; row < rows; ++row) {
    const std::span<const float> x(values.data() + row * count,
                                   static_cast<size_t>(count));
    std::vector<float> keys(x.begin(), x.end());
    if (bias)
      for (int64_t i = 0; i < count; ++i)
        keys[i] = sigmoidOf(x[i]) + offsets[i];
    std::ranges::replace_if(
        keys, [](float key) { return std::isnan(key); }, kLeast);
    if (options.groups)
      keepGroups(keys, options);
    const std::vector<int32_t> order = descending(keys);
    std::vector<float> chosen;
    for (int64_t j = 0; j < top; ++j)
      chosen.push_back(x[order[j]]);
    if (options.sigmoid) {
      double sum = 1e-20;
      for (float &weight : chosen) {
        weight = sigmoidOf(weight);
        sum += weight;
      }
      if (options.normalized)
        for (float &weight : chosen)
          weight = static_cast<float>(weight / sum);
    } else if (options.normalized) {
      chosen = softmaxOf(chosen);
    } else {
      const std::vector<float> all = softmaxOf({x.begin(), x.end()});
      for (int64_t j = 0; j < top; ++j)
        chosen[j] = all[order[j]];
    }
    for (int64_t j = 0; j < top; ++j)
      chosen[j] *= factors[order[j]];
    std::copy_n(order.data(), top, experts.ints() + row * top);
    std::copy_n(chosen.data(), top, weights.floats() + row * top);
  }
  std::vector<Tensor> results;
  results.push_back(std::move(experts));
  results.push_back(std::move(weights));
  return results;
}

Result<Tensor> expertMatmul(const TensorView &x, const TensorView &experts,
                            const TensorView &w, const TensorView *bias,
                            std::optional<Glu> glu) {
  KF_RETURN_IF_ERROR(checkExperts(x, experts, w, bias, glu.has_value()));
  const int64_t rows = x.shape[0], top = experts.shape[1], k = x.columns(),
                count = w.shape[1], n = w.shape[2];
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> chosen,
                      readInts(experts, "kf.expert_matmul C2: experts"));
  KF_ASSIGN_OR_RETURN(std::vector<float> lhs, widen(x));
  KF_ASSIGN_OR_RETURN(Tensor result,
                      Tensor::zeros(DataType::F32, {rows, top, n}));
  const int64_t groups = glu ? 2 : 1;
  std::vector<float> line(k);
  for (int64_t expert = 0; expert < count; ++expert) {
    std::vector<int64_t> pairs; // t * top + j of those that chose it
    for (int64_t pair = 0; pair < rows * top; ++pair)
      if (std::clamp<int64_t>(chosen[pair], 0, count - 1) == expert)
        pairs.push_back(pair);
    if (pairs.empty())
      continue;
    for (int64_t column = 0; column < n; ++column) {
      std::vector<float> sums[2];
      for (int64_t group = 0; group < groups; ++group) {
        const int64_t at = (group * count + expert) * n + column;
        widen(w, at * k, k, line.data());
        float offset = 0;
        if (bias)
          widen(*bias, at, 1, &offset);
        for (int64_t pair : pairs) {
          const int64_t row = x.rank() == 3 ? pair : pair / top;
          sums[group].push_back(dot(lhs.data() + row * k, line.data(), k) +
                                offset);
        }
      }
      for (size_t i = 0; i < pairs.size(); ++i)
        result.floats()[pairs[i] * n + column] =
            glu ? gated(*glu, sums[0][i], sums[1][i]) : sums[0][i];
    }
  }
  return result;
}

} // namespace kf::reference
