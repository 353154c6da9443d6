//===- CounterRandom.h - Random numbers by their number ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A generator without a state: the n-th number of a stream follows from the
// seed, the stream and n alone, so that nothing has to be replayed where work
// goes on. Each is SplitMix64's output function (G. Steele, D. Lea, C. Flood,
// "Fast Splittable Pseudorandom Number Generators", 2014) of a counter that
// begins where the seed and the stream say.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_COUNTERRANDOM_H
#define KF_RUNTIME_TRAIN_COUNTERRANDOM_H

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace kf {

class CounterRandom {
public:
  CounterRandom(uint64_t seed, uint64_t stream)
      : start(mix(mix(seed + kStep) + stream)) {}

  uint64_t operator()(uint64_t number) const {
    return mix(start + (number + 1) * kStep);
  }
  /// From 0 to `count` - 1, which is less than 2^63; each as likely as others
  /// but for count / 2^64.
  uint64_t below(uint64_t count, uint64_t number) const {
    return static_cast<uint64_t>(
        (static_cast<unsigned __int128>((*this)(number)) * count) >> 64);
  }
  /// The numbers from 0 to `count` - 1 in some order (Fisher and Yates).
  std::vector<size_t> permutation(size_t count) const {
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = count; i > 1; --i)
      std::swap(order[i - 1], order[below(i, i)]);
    return order;
  }

private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15; ///< 2^64 / golden ratio
  static constexpr uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
  }

  uint64_t start;
};

} // namespace kf

#endif // KF_RUNTIME_TRAIN_COUNTERRANDOM_H
