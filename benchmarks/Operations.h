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
};

/// An operation on each row of x [rows, columns] of f32.
struct RowOperation {
  enum class Kind { RmsNorm, LayerNorm, Softmax } kind = Kind::RmsNorm;
  int64_t rows = 0, columns = 0;
  float epsilon = 1e-5f;
  std::vector<float> x;            // [rows, columns]
  std::vector<float> weight, bias; // [columns]; norms
};

/// Causal attention of the last `rows` of past + rows positions, of one
/// sequence, to all before them: to a cache that holds them all.
struct Attention {
  int64_t rows = 1, past = 0;
  int64_t heads = 0, kvHeads = 0, headDim = 0;
  DataType cacheType = DataType::F16;
  int threads = 1;
  int64_t copies = 1;      ///< of the cache
  std::vector<float> q;    // [rows, heads, headDim]
  std::vector<float> k, v; // [past + rows, kvHeads, headDim]

  int64_t positions() const { return past + rows; }
  float scale() const;
  /// Of the pairs of a query and a key that it may see.
  double operations() const;
  /// Of the keys and values.
  double bytes() const;
};

/// `count` numbers that look like a standard normal distribution's, from
/// `seed`.
std::vector<float> randomNumbers(int64_t count, uint32_t seed);

/// `copies` times what `make` makes, in turns.
Result<std::unique_ptr<Contender>>
copiesOf(int64_t copies,
         const std::function<Result<std::unique_ptr<Contender>>()> &make);

/// How many copies of `bytes` fill the largest cache. None is in it when its
/// turn comes, for the others of the case read as much meanwhile.
int64_t copiesBeyondCaches(double bytes);

/// Ours, on the CPU. Compiles for `threads` threads.
Result<std::unique_ptr<Contender>> compileProduct(const Product &product);
Result<std::unique_ptr<Contender>> compileRows(const RowOperation &rows);
Result<std::unique_ptr<Contender>> compileAttention(const Attention &attention);

} // namespace kf::bench

#endif // KF_BENCHMARKS_OPERATIONS_H
