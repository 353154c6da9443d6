//===- MmaCodeLines.h - Tiles of codes for matrix units ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMACODELINES_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMACODELINES_H

#include "MmaLines.h"

namespace mlir::kf {

/// Those of a weight of blocks or f8E4M3FN with `#kf.fragments`. The tile's
/// first column is `column` of `argument`.
std::unique_ptr<MmaLines> createMmaCodeLines(GPUEmitter &e,
                                             MmaFragment &product,
                                             BlockArgument argument,
                                             Value column, Value ring);

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMACODELINES_H
