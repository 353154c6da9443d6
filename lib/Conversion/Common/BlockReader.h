//===- BlockReader.h - Elements of a block of quantized values --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code that reads a few neighbouring elements of a block in the layout of its
// file, from the description of the format alone. Where the bytes are, and how
// they are had, is the target's.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_COMMON_BLOCKREADER_H
#define KF_CONVERSION_COMMON_BLOCKREADER_H

#include "TileEmitter.h"

#include "runtime/core/BlockFormat.h"

namespace mlir::kf {

/// Reads `width` elements (0: one, as a scalar) of a block from number
/// `element` on, which is a multiple of `width`. They share a sub-block.
class BlockReader {
public:
  BlockReader(TileEmitter &e, const ::kf::BlockFormat &format, Value element,
              unsigned width)
      : e(e), b(e.b), loc(e.loc), format(format), element(element),
        width(width) {}
  virtual ~BlockReader() = default;

  /// The elements in f32, as dequantizeBlocks() computes them.
  Value read();

protected:
  /// The byte at `offset` of the block, in an i32.
  virtual Value byte(Value offset) = 0;
  /// `width` bytes from `offset` on, in i32s.
  virtual Value bytes(Value offset) = 0;
  /// The half-precision number at byte `offset`, in f32.
  virtual Value half(int64_t offset) = 0;
  /// The four bytes at `offset`, in an i32; asked for where `width` is not 0.
  virtual Value word(int64_t offset) = 0;
  /// The entries of a table of 16 at i32 `codes`, in f32.
  virtual Value lookUp(const int8_t *table, Value codes) = 0;

  /// `width` times `element`, or `element` itself.
  Type typeOf(Type element);
  Value constant(int64_t value);

  TileEmitter &e;
  OpBuilder &b;
  Location loc;
  const ::kf::BlockFormat &format;
  Value element;
  unsigned width;

private:
  Value div(Value x, int64_t by);
  Value rem(Value x, int64_t by);
  Value i32(Value x);
  Value shift(Value x, Value by);
  Value lowBits(Value x, int64_t bits);
  Value join(Value low, Value high, int64_t bits);
  Value fields(const ::kf::BitPlane &plane);
  Value values();
  Value scale();
  std::pair<Value, Value> subScale();
};

} // namespace mlir::kf

#endif // KF_CONVERSION_COMMON_BLOCKREADER_H
