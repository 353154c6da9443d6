//===- Ceilings.cpp - What this machine can do at most --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Ceilings.h"

namespace kf::bench {

// GCC and Clang vectors: the widest that the compiler's target has.
#if defined(__AVX512F__)
constexpr int lanes = 16;
#else
constexpr int lanes = 8;
#endif
typedef float Vector __attribute__((vector_size(lanes * sizeof(float))));

double fmaLoop(int64_t iterations) {
  constexpr int chains = 12;
  Vector sums[chains], factor, addend;
  for (int lane = 0; lane < lanes; ++lane) {
    factor[lane] = 0.999f;
    addend[lane] = 1e-3f;
  }
  for (int chain = 0; chain < chains; ++chain)
    sums[chain] = addend * static_cast<float>(chain);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma clang loop unroll(full)
    for (int chain = 0; chain < chains; ++chain)
      sums[chain] = sums[chain] * factor + addend;
    // Keeps every round: nothing is known of the sums after it.
    for (int chain = 0; chain < chains; ++chain)
      asm volatile("" : "+v"(sums[chain]));
  }
  volatile float sink = 0;
  for (int chain = 0; chain < chains; ++chain)
    sink = sink + sums[chain][0];
  return 2.0 * chains * lanes * static_cast<double>(iterations);
}

float readLoop(const float *data, size_t bytes) {
  constexpr int chains = 8;
  Vector sums[chains] = {};
  auto *vectors = reinterpret_cast<const Vector *>(data);
  size_t count = bytes / sizeof(Vector) / chains * chains;
  for (size_t i = 0; i < count; i += chains)
    for (int chain = 0; chain < chains; ++chain)
      sums[chain] += vectors[i + chain];
  float total = 0;
  for (int chain = 0; chain < chains; ++chain)
    total += sums[chain][0];
  return total;
}

} // namespace kf::bench
