//===- Random.h - A random generator that is the same everywhere *- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_RANDOM_H
#define KF_RUNTIME_TEXT_RANDOM_H

#include <cstdint>

namespace kf {

/// SplitMix64: fixed by its definition, unlike std::uniform_real_distribution,
/// so that a seed gives the same numbers with every library.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /// Uniform in [0, 1): 53 random bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
  uint64_t state;
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_RANDOM_H
