//===- ThreadSums.cpp - A tile in the registers of threads ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadSums.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kf;

Value ThreadSums::rowOf(int64_t i) {
  return e.add(e.threadY, e.index(i * shape.threads[1]));
}

Value ThreadSums::columnOf(int64_t j) {
  return e.add(e.threadX, e.index(j * shape.threads[0]));
}

SmallVector<Value> ThreadSums::zeros() {
  return SmallVector<Value>(shape.groups * shape.tileRows * shape.tileColumns,
                            e.f32(0.0));
}

void ThreadSums::multiplyAdd(ElementStaging &x, ElementStaging &w, Value k,
                             MutableArrayRef<Value> sums) {
  SmallVector<Value> left;
  for (int64_t i = 0; i < shape.tileRows; ++i)
    left.push_back(x.load(0, rowOf(i), k));
  Value *sum = sums.begin();
  for (int64_t group = 0; group < shape.groups; ++group) {
    SmallVector<Value> right;
    for (int64_t j = 0; j < shape.tileColumns; ++j)
      right.push_back(w.load(group, columnOf(j), k));
    for (Value row : left)
      for (Value column : right) {
        *sum = math::FmaOp::create(e.b, e.loc, row, column, *sum);
        ++sum;
      }
  }
}

void ThreadSums::forElements(
    ValueRange sums, function_ref<void(Value, Value, ValueRange)> body) {
  int64_t count = shape.tileRows * shape.tileColumns;
  for (int64_t i = 0; i < shape.tileRows; ++i)
    for (int64_t j = 0; j < shape.tileColumns; ++j) {
      SmallVector<Value> own;
      for (int64_t group = 0; group < shape.groups; ++group)
        own.push_back(sums[group * count + i * shape.tileColumns + j]);
      body(rowOf(i), columnOf(j), own);
    }
}
