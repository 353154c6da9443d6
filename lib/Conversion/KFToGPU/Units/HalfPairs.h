//===- HalfPairs.h - Pairs of f16 for cooperative matrices ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For Vulkan, where modules with matrices ask that conversions to f16 round to
// the nearest (ConvertGPU.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_UNITS_HALFPAIRS_H
#define KF_LIB_CONVERSION_KFTOGPU_UNITS_HALFPAIRS_H

#include "../GPUEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::kf {

/// Two f32 in a word, as f16, rounded to the nearest.
inline Value packHalves(GPUEmitter &e, Value first, Value second) {
  OpBuilder &b = e.b;
  auto pair = VectorType::get({2}, b.getF32Type());
  Value both =
      vector::FromElementsOp::create(b, e.loc, pair, ValueRange{first, second});
  Value halves = arith::TruncFOp::create(
      b, e.loc, VectorType::get({2}, b.getF16Type()), both);
  Value word = vector::BitCastOp::create(
      b, e.loc, VectorType::get({1}, b.getI32Type()), halves);
  return vector::ExtractOp::create(b, e.loc, word, 0);
}

/// `x` with the 11 significant bits that f16 has, to the nearest, even ones
/// of two (Dekker's splitting, "A floating-point technique for extending the
/// available precision", 1971): for whoever goes on with it in f32.
inline Value roundToHalf(GPUEmitter &e, Value x) {
  constexpr double split = (1 << 13) + 1;
  Value large = e.mul(x, e.f32(split));
  return e.sub(large, e.sub(large, x));
}

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_UNITS_HALFPAIRS_H
