//===- CacheBuffer.cpp - Elements of a paged cache ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CacheBuffer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

CacheBuffer::CacheBuffer(GPUEmitter &emitter, TypedValue<KVCacheType> cache,
                         Value sequences, Value pageTable)
    : PagedCache(emitter, cache, sequences, pageTable), e(emitter), b(e.b),
      loc(e.loc), type(cache.getType()),
      buffer(e.bufferOf(mlir::cast<BlockArgument>(cache))),
      hasVectors(isa<VectorType>(
          mlir::cast<MemRefType>(buffer.getType()).getElementType())) {}

/// The word that holds byte number `byte` of a buffer of vectors.
Value CacheBuffer::wordAt(Value byte) {
  constexpr int64_t words = 4, bytes = 16;
  Value read = memref::LoadOp::create(b, loc, buffer, e.div(byte, bytes));
  Value number = e.div(e.rem(byte, bytes), words), word;
  for (int64_t i = words - 1; i >= 0; --i) {
    Value own = vector::ExtractOp::create(b, loc, read, i);
    word = word ? e.select(e.isLess(number, e.index(i + 1)), own, word) : own;
  }
  return word;
}

/// The 16 bits (i16) at byte number `byte`, an even one, of such a buffer.
Value CacheBuffer::halfAt(Value byte) {
  Value bits = arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                          e.scaled(e.rem(byte, 4), 8));
  return arith::TruncIOp::create(
      b, loc, b.getI16Type(),
      arith::ShRUIOp::create(b, loc, wordAt(byte), bits));
}

Value CacheBuffer::load(const CacheRow &row, Value column) {
  Value place = e.add(row.first, column);
  if (!isQuantized()) {
    if (!hasVectors)
      return e.loadBuffer(buffer, place, type.getType());
    Value half = halfAt(e.scaled(place, 2));
    if (type.getType().isF16())
      half = arith::BitcastOp::create(b, loc, b.getF16Type(), half);
    return e.widen(half, type.getType());
  }
  Value code;
  if (hasVectors) {
    Value up = arith::IndexCastOp::create(
        b, loc, b.getI32Type(),
        e.scaled(e.sub(e.index(3), e.rem(place, 4)), 8));
    code = arith::ShRSIOp::create(
        b, loc, arith::ShLIOp::create(b, loc, wordAt(place), up), e.word(24));
  } else {
    code = arith::ExtSIOp::create(
        b, loc, b.getI32Type(), memref::LoadOp::create(b, loc, buffer, place));
  }
  return arith::SIToFPOp::create(b, loc, b.getF32Type(), code);
}

void CacheBuffer::store(Value value, const CacheRow &row, Value column) {
  e.storeBuffer(value, buffer, e.add(row.first, column), type.getType());
}

void CacheBuffer::storeCode(Value code, const CacheRow &row, Value column) {
  memref::StoreOp::create(b, loc,
                          arith::TruncIOp::create(b, loc, b.getI8Type(), code),
                          buffer, e.add(row.first, column));
}

Value CacheBuffer::scalePlace(const CacheRow &row, Value block) {
  return e.add(row.firstScale, e.mul(block, e.index(scaleBytes)));
}

Value CacheBuffer::loadScale(const CacheRow &row, Value block) {
  Value place = scalePlace(row, block);
  if (!hasVectors)
    return e.loadHalf(buffer, place);
  Value half = arith::BitcastOp::create(b, loc, b.getF16Type(), halfAt(place));
  return e.widen(half, b.getF16Type());
}

void CacheBuffer::storeScale(Value scale, const CacheRow &row, Value block) {
  e.storeHalf(scale, buffer, scalePlace(row, block));
}
