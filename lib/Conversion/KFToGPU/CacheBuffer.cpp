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
  Value place = scalePlace(row, block);
  auto byte = [&](int64_t number) -> Value {
    Value value =
        memref::LoadOp::create(b, loc, buffer, e.add(place, e.index(number)));
    return arith::ExtUIOp::create(b, loc, b.getI32Type(), value);
  };
  Value eight = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(8));
  Value low = byte(0), high = byte(1);
  return e.halfToFloat(arith::OrIOp::create(
      b, loc, low, arith::ShLIOp::create(b, loc, high, eight)));
}

void CacheBuffer::storeScale(Value scale, const CacheRow &row, Value block) {
  Value half = e.narrow(scale, b.getF16Type());
  Value bits = arith::BitcastOp::create(b, loc, b.getI16Type(), half);
  Value eight = arith::ConstantOp::create(b, loc, b.getI16IntegerAttr(8));
  Value place = scalePlace(row, block);
  Value low = arith::TruncIOp::create(b, loc, b.getI8Type(), bits);
  Value high = arith::TruncIOp::create(
      b, loc, b.getI8Type(), arith::ShRUIOp::create(b, loc, bits, eight));
  memref::StoreOp::create(b, loc, low, buffer, place);
  memref::StoreOp::create(b, loc, high, buffer, e.add(place, e.index(1)));
}
