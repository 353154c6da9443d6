//===- ThreadSums.h - A tile in the registers of threads --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which thread has which elements of a product, and how it sums them up.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_THREADSUMS_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_THREADSUMS_H

#include "ElementStaging.h"

namespace mlir::kf {

/// The workgroup's tile of a product, spread as KernelShape says of `sharing`
/// 1. A thread's sums are SSA values: [groups][tileRows][tileColumns].
class ThreadSums {
public:
  explicit ThreadSums(GPUEmitter &emitter) : e(emitter), shape(emitter.shape) {}

  SmallVector<Value> zeros();
  /// Adds to `sums` the products of what is staged in column `k`: rows in tile
  /// 0 of `x`, columns of each group in a tile of `w`.
  void multiplyAdd(ElementStaging &x, ElementStaging &w, Value k,
                   MutableArrayRef<Value> sums);
  /// Calls `body` for each element of this thread with its row and column in
  /// the tile, of which some may lie past an edge, and its sums, one a group.
  void
  forElements(ValueRange sums,
              function_ref<void(Value row, Value column, ValueRange)> body);

private:
  Value rowOf(int64_t i);
  Value columnOf(int64_t j);

  GPUEmitter &e;
  const KernelShape &shape;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_THREADSUMS_H
