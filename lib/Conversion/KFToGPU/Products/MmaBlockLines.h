//===- MmaBlockLines.h - Tiles of blocks for matrix units -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a block-quantized weight with `#kf.fragments` comes to matrix units where
// there are many rows. A warp takes spans of it, 16 lines and 32 columns, into
// registers, rounds what they stand for to f16, and stores that to shared
// memory, so that a weight is dequantized once for all rows of the tile.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMABLOCKLINES_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMABLOCKLINES_H

#include "MmaLines.h"

namespace mlir::kf {

/// Lines of `argument`, a weight of blocks, from its column `column` on.
std::unique_ptr<MmaLines> createMmaBlockLines(GPUEmitter &e,
                                              MmaFragment &product,
                                              BlockArgument argument,
                                              Value column, int64_t offset);

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMABLOCKLINES_H
