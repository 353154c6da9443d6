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

using namespace mlir;
using namespace mlir::kf;

CacheBuffer::CacheBuffer(GPUEmitter &emitter, TypedValue<KVCacheType> cache,
                         Value sequences, Value pageTable)
    : PagedCache(emitter, cache, sequences, pageTable), e(emitter), b(e.b),
      loc(e.loc), type(cache.getType()),
      buffer(e.bufferOf(mlir::cast<BlockArgument>(cache))) {}

Value CacheBuffer::load(const CacheRow &row, Value column) {
  Value place = e.add(row.first, column);
  if (!isQuantized())
    return e.loadBuffer(buffer, place, type.getType());
  Value code = memref::LoadOp::create(b, loc, buffer, place);
  return arith::SIToFPOp::create(
      b, loc, b.getF32Type(),
      arith::ExtSIOp::create(b, loc, b.getI32Type(), code));
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
  return e.loadHalf(buffer, scalePlace(row, block));
}

void CacheBuffer::storeScale(Value scale, const CacheRow &row, Value block) {
  e.storeHalf(scale, buffer, scalePlace(row, block));
}
