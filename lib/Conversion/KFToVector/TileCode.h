//===- TileCode.h - Tiles of AMX --------------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile is a register of 16 lines of 64 bytes, of which there are 8. LLVM
// allocates them, and configures them where a function begins.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOVECTOR_TILECODE_H
#define KF_LIB_CONVERSION_KFTOVECTOR_TILECODE_H

#include "KernelEmitter.h"

namespace mlir::kf {

/// Emits the instructions on tiles. In memory a tile is one piece: the last two
/// dimensions of a memref, 16 x 16 of f32 or 16 x 32 of bf16, to which the
/// leading indices point. Or its lines are parts of 16 rows of a memref, from
/// the element on to which all indices point.
class TileCode {
public:
  explicit TileCode(KernelEmitter &e) : e(e), b(e.b), loc(e.loc) {}

  /// What a tile is in SSA form.
  Type type();
  Value zero();
  Value load(Value memref, ValueRange indices);
  /// The same, of what leaves its place in the nearest cache to others.
  Value loadOnce(Value memref, ValueRange indices);
  void store(Value tile, Value memref, ValueRange indices);
  Value loadLines(Value memref, ValueRange indices);
  void storeLines(Value tile, Value memref, ValueRange indices);
  /// `sum` and, for each pair of bf16 in a line of `rows`, the products with
  /// the pairs in that pair's line of `columns`.
  Value multiply(Value sum, Value rows, Value columns);

private:
  Value load(StringRef instruction, Value pointer, int64_t stride);
  void store(Value tile, Value pointer, int64_t stride);
  Value call(StringRef name, ValueRange operands);
  Value constant(int64_t value, unsigned bits);
  Value pointer(Value memref, ValueRange indices);
  Value pointerToElement(Value memref, ValueRange indices);
  Value pointer(Value memref, Value bytes);

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOVECTOR_TILECODE_H
