//===- MmaSums.h - Sums of matrix units in shared memory --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums leave registers through the memory of the stages, some of each warp's
// units of rows at a time.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMASUMS_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMASUMS_H

#include "kf/Conversion/KernelShape.h"

namespace mlir::kf {

class MmaSums {
public:
  explicit MmaSums(const MmaShape &shape) : shape(shape) {}

  /// f32 elements between two rows, so that the threads with the sums of a unit
  /// meet different banks.
  int64_t stride() const { return shape.lines + 4; }
  /// Rows of `units` units of each warp.
  int64_t rows(int64_t units) const {
    return shape.rowWarps * units * MmaShape::unitRows;
  }
  /// Bytes of workgroup memory of the kernel: of the stages, or what one unit
  /// of each warp takes where that is more.
  int64_t workgroupBytes() const {
    return std::max(shape.ringBytes(), bytes(1));
  }
  /// How many units of each warp go at a time.
  int64_t units() const {
    int64_t count = shape.rowTiles();
    while (shape.rowTiles() % count != 0 || bytes(count) > workgroupBytes())
      --count;
    return count;
  }

private:
  int64_t bytes(int64_t units) const { return 4 * rows(units) * stride(); }

  const MmaShape &shape;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMASUMS_H
