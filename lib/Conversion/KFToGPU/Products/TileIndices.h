//===- TileIndices.h - Elements of a tile of a product ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_TILEINDICES_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_TILEINDICES_H

#include "../GPUEmitter.h"

namespace mlir::kf {

/// The indices into the tile of the product's element in that row and column:
/// of its one batch, if there are some.
SmallVector<Value> tileIndices(GPUEmitter &e, Value row, Value column);

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_TILEINDICES_H
