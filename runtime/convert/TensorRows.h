//===- TensorRows.h - Tensors in another type, row by row -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONVERT_TENSORROWS_H
#define KF_RUNTIME_CONVERT_TENSORROWS_H

#include "runtime/convert/TensorNames.h"
#include "runtime/core/ThreadPool.h"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace kf {

/// Turns tensors into another type on a pool's threads, a few rows a task. The
/// memory it needs does not grow with the tensors. One thread.
class TensorRows {
public:
  /// Takes the next bytes of the result; an error ends the conversion.
  using Sink = std::function<Status(std::span<const std::byte>)>;

  explicit TensorRows(ThreadPool &pool) : pool(pool) {}

  /// Gives `tensor`, which lies at `view` (null: in its `values`), to `sink` as
  /// elements of `type`; rows that are of it already are copied. A NaN, an
  /// infinity, a value that is too large for `type`, or one whose negated
  /// exponential is not below 0 is an error that names its row.
  Status convert(const ConvertedTensor &tensor, const TensorView *view,
                 DataType type, const Sink &sink);

private:
  ThreadPool &pool;
  std::vector<float> values;    // [tasks][rows][columns]
  std::vector<std::byte> raw;   // [tasks][a row of the source]
  std::vector<std::byte> bytes; // [tasks][rows of the result]
};

} // namespace kf

#endif // KF_RUNTIME_CONVERT_TENSORROWS_H
