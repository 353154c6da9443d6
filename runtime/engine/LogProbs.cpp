//===- LogProbs.cpp - How likely the model finds tokens -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/LogProbs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace kf;

ChosenLogProbs kf::logProbsOf(std::span<const float> logits, int32_t id,
                              size_t count) {
  const double largest = std::ranges::max(logits);
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(static_cast<double>(logit) - largest);
  const double normalizer = std::log(sum);
  // The largest first: the rest may be too little to show beside it.
  auto logProb = [&](int32_t token) {
    const double logit = logits[static_cast<size_t>(token)];
    return LogProb{token, static_cast<float>(logit - largest - normalizer)};
  };
  ChosenLogProbs result = {logProb(id), {}};
  count = std::min(count, logits.size());
  if (count == 0)
    return result;
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::partial_sort(ids, ids.begin() + static_cast<ptrdiff_t>(count),
                            [&](int32_t a, int32_t b) {
                              const float x = logits[static_cast<size_t>(a)],
                                          y = logits[static_cast<size_t>(b)];
                              return x != y ? x > y : a < b;
                            });
  for (size_t i = 0; i < count; ++i)
    result.top.push_back(logProb(ids[i]));
  return result;
}
