//===- LinearAttention.h - Layers that keep a state -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_IMPORT_LINEARATTENTION_H
#define KF_LIB_IMPORT_LINEARATTENTION_H

#include "ModelOps.h"

namespace mlir::kf {

/// Where a layer's rows find what it keeps of their sequences.
struct StateRows {
  Value cache;                ///< !kf.state_cache
  int64_t layer = 0;          ///< of it
  Value positions, sequences; ///< [T] of i32
  Value states;               ///< [S] of i32: slots
};

/// Writes linear attention by the gated delta rule, of the layer whose names
/// begin with `at`: x [T, D] -> [T, D].
Value linearAttention(ModelOps &ops, Value x, const std::string &at,
                      const StateRows &rows);

} // namespace mlir::kf

#endif // KF_LIB_IMPORT_LINEARATTENTION_H
