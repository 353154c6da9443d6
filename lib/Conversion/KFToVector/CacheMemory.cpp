//===- CacheMemory.cpp - Vectors of a paged cache -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CacheMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

Value CacheMemory::loadScales(Value offset, unsigned width) const {
  unsigned count = std::max(width, 1u);
  Value bytes = vector::LoadOp::create(
      b, loc, e.vectorType(count * scaleBytes, b.getI8Type()), cache, offset);
  Value halves = vector::BitCastOp::create(
      b, loc, e.vectorType(count, b.getF16Type()), bytes);
  if (width > 0)
    return arith::ExtFOp::create(b, loc, e.vectorType(width), halves);
  Value half = vector::ExtractOp::create(b, loc, halves, int64_t(0));
  return arith::ExtFOp::create(b, loc, b.getF32Type(), half);
}

void CacheMemory::storeScale(Value scale, Value offset) const {
  Value half = arith::TruncFOp::create(b, loc, b.getF16Type(), scale);
  Value bytes = vector::BitCastOp::create(
      b, loc, e.vectorType(scaleBytes, b.getI8Type()),
      vector::BroadcastOp::create(b, loc, e.vectorType(1, b.getF16Type()),
                                  half));
  vector::StoreOp::create(b, loc, bytes, cache, offset);
}

Value CacheMemory::loadCodes(Value offset, unsigned width) const {
  Value codes = vector::LoadOp::create(
      b, loc, e.vectorType(width, b.getI8Type()), cache, offset);
  Value wide = arith::ExtSIOp::create(
      b, loc, e.vectorType(width, b.getI32Type()), codes);
  return arith::SIToFPOp::create(b, loc, e.vectorType(width), wide);
}
