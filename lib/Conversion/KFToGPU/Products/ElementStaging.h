//===- ElementStaging.h - Operands in workgroup memory ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How operands of a product come to workgroup memory, and how they lie there.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_ELEMENTSTAGING_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_ELEMENTSTAGING_H

#include "../GPUEmitter.h"

namespace mlir::kf {

/// Tiles of an operand: [tiles][lines][shape.stride()] of f32, of which each
/// line has shape.step elements. All threads copy them, element by element.
class ElementStaging {
public:
  ElementStaging(GPUEmitter &emitter, int64_t tiles, int64_t lines);

  /// Fills tile number `tile` with columns [first, first + step) of an operand
  /// of `count` lines and `extent` columns, zeros behind them; `element` is
  /// asked only for those that there are. The caller goes through `visited`
  /// columns, at least `extent`. Barriers are the caller's.
  void copy(int64_t tile, Value count, Value first, int64_t extent,
            int64_t visited,
            function_ref<Value(Value line, Value column)> element);
  /// Stores an element of the tile's columns.
  void store(int64_t tile, Value line, Value column, Value value);
  Value load(int64_t tile, Value line, Value column);

private:
  Value placeOf(Value line, Value column);
  Value inTile(int64_t tile, Value place);

  GPUEmitter &e;
  int64_t lines;
  Value memory;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_ELEMENTSTAGING_H
