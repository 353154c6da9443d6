//===- Operations.h - What contenders compute -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_BENCHMARKS_OPERATIONS_H
#define KF_BENCHMARKS_OPERATIONS_H

#include "benchmarks/Comparison.h"
#include "runtime/core/Tensor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kf::bench {

/// y = x W^T, with y [rows, outputs] and x [rows, inputs] of f32.
struct Product {
  int64_t rows = 0, outputs = 0, inputs = 0;
  int threads = 1;
  /// Contenders take one copy of the weights after the other, so that all of
  /// them together are more than caches hold; 1 where a product reads its
  /// weights often.
  int64_t copies = 1;
  std::vector<float> x; // [rows, inputs]
  HostTensor weights;   // [outputs, inputs], of any type

  double operations() const { return 2.0 * rows * outputs * inputs; }
};

/// An operation on each row of x [rows, columns] of f32.
struct RowOperation {
  enum class Kind { RmsNorm, LayerNorm, Softmax } kind = Kind::RmsNorm;
  int64_t rows = 0, columns = 0;
  float epsilon = 1e-5f;
  std::vector<float> x;            // [rows, columns]
  std::vector<float> weight, bias; // [columns]; norms
};

/// `count` numbers that look like a standard normal distribution's, from
/// `seed`.
std::vector<float> randomNumbers(int64_t count, uint32_t seed);

/// `copies` times what `make` makes, in turns.
Result<std::unique_ptr<Contender>>
copiesOf(int64_t copies,
         const std::function<Result<std::unique_ptr<Contender>>()> &make);

/// How many copies of `bytes` it takes that none is in a cache when its turn
/// comes.
int64_t copiesBeyondCaches(double bytes);

/// Ours, on the CPU. Compiles for `threads` threads.
Result<std::unique_ptr<Contender>> compileProduct(const Product &product);
Result<std::unique_ptr<Contender>> compileRows(const RowOperation &rows);

} // namespace kf::bench

#endif // KF_BENCHMARKS_OPERATIONS_H
