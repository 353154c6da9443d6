//===- Operations.cpp - What contenders compute ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Operations.h"

#include "runtime/measure/Ceilings.h"

#include <algorithm>
#include <cmath>

using namespace kf;
using namespace kf::bench;

namespace {

class Turning : public Contender {
public:
  explicit Turning(std::vector<std::unique_ptr<Contender>> copies)
      : copies(std::move(copies)) {}

  Status run() override {
    last = (last + 1) % copies.size();
    return copies[last]->run();
  }
  Result<std::vector<float>> result() override {
    return copies[last]->result();
  }

private:
  std::vector<std::unique_ptr<Contender>> copies;
  size_t last = 0;
};

} // namespace

float Attention::scale() const {
  return 1 / std::sqrt(static_cast<float>(headDim));
}

double Attention::operations() const {
  // Row r sees past + r + 1 positions; each is a product with k and one with v.
  const double pairs =
      static_cast<double>(rows) * static_cast<double>(past) +
      static_cast<double>(rows) * static_cast<double>(rows + 1) / 2;
  return 4 * pairs * static_cast<double>(heads * headDim);
}

double Attention::bytes() const {
  return 2.0 * static_cast<double>(positions() * kvHeads * headDim) *
         static_cast<double>(sizeOf(cacheType));
}

std::vector<float> bench::randomNumbers(int64_t count, uint32_t seed) {
  uint64_t state = seed;
  std::vector<float> numbers(count);
  for (float &number : numbers) {
    // The sum of four uniform numbers of variance 1/3 is close enough.
    float sum = 0;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      sum += static_cast<float>(state >> 40) / (1 << 23) - 1;
    }
    number = sum * std::sqrt(0.75f);
  }
  return numbers;
}

Result<std::unique_ptr<Contender>> bench::copiesOf(
    int64_t copies,
    const std::function<Result<std::unique_ptr<Contender>>()> &make) {
  std::vector<std::unique_ptr<Contender>> all;
  for (int64_t i = 0; i < copies; ++i) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Contender> copy, make());
    all.push_back(std::move(copy));
  }
  return std::unique_ptr<Contender>(new Turning(std::move(all)));
}

int64_t bench::copiesBeyondCaches(double bytes) {
  const double unknown = 64 << 20;
  const double cache =
      std::max(static_cast<double>(lastLevelCacheBytes()), unknown);
  return static_cast<int64_t>(std::ceil(cache / bytes));
}
