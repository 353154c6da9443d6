//===- PagedCache.cpp - Where positions of sequences lie ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PagedCache.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

PagedCache::PagedCache(KernelEmitter &emitter, TypedValue<KVCacheType> cache,
                       Value sequences, Value pageTable)
    : e(emitter), b(e.b), loc(e.loc), type(cache.getType()),
      cache(e.memrefOf(mlir::cast<BlockArgument>(cache))),
      pages(e.cachePages()) {
  this->sequences = e.sourceMemref(sequences, rowOffset);
  table = e.sourceMemref(pageTable, tableOffset);
  sequenceCount = e.sizesOf(pageTable)[0];
  tablePages = mlir::cast<RankedTensorType>(pageTable.getType()).getDimSize(1);
}

bool PagedCache::hasOneSequence() const {
  return getConstantIntValue(sequenceCount) == 1;
}

Value PagedCache::limit() const {
  int64_t positions; // those of a row have 32 bits
  if (llvm::MulOverflow(tablePages, type.getPage(), positions))
    positions = INT64_MAX;
  return e.index(positions);
}

int64_t PagedCache::headSize() const {
  int64_t elements = type.getPage() * type.getHeadDim();
  if (!type.isQuantized())
    return elements;
  return elements + type.getPage() * scaleBytesOfRow();
}

Value PagedCache::sequenceOf(Value row) {
  return arith::IndexCastOp::create(
      b, loc, b.getIndexType(),
      memref::LoadOp::create(b, loc, sequences, e.add(rowOffset[0], row)));
}

Value PagedCache::isBelow(Value value, Value end) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, value, end);
}

Value PagedCache::atMost(Value value, Value last) {
  return arith::MinUIOp::create(b, loc, value, last);
}

/// The table's entry, for a sequence and a position that it has.
Value PagedCache::pageNumber(Value sequence, Value position) {
  Value number =
      arith::DivUIOp::create(b, loc, position, e.index(type.getPage()));
  Value entry =
      memref::LoadOp::create(b, loc, table,
                             ValueRange{e.add(tableOffset[0], sequence),
                                        e.add(tableOffset[1], number)});
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), entry);
}

/// Elements before page number `number`.
Value PagedCache::offsetOf(Value number) {
  return e.mul(number, e.index(2 * valuesOffset()));
}

Value PagedCache::findPage(Value sequence, Value position) {
  Value known = hasOneSequence()
                    ? e.index(0)
                    : atMost(sequence, e.sub(sequenceCount, e.index(1)));
  return offsetOf(
      atMost(pageNumber(known, position), e.sub(pages, e.index(1))));
}

void PagedCache::ifExists(Value sequence, Value position,
                          function_ref<void(Value)> body) {
  Value inTable = arith::AndIOp::create(
      b, loc, isBelow(sequence, sequenceCount), isBelow(position, limit()));
  e.ifThen(inTable, [&] {
    Value number = pageNumber(sequence, position);
    e.ifThen(isBelow(number, pages), [&] { body(offsetOf(number)); });
  });
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

int64_t PagedCache::blockSize() const {
  return getStorage(mlir::cast<QuantType>(type.getType()).getFormat()).elements;
}

Value PagedCache::scalesOf(Value head) const {
  return e.add(head, e.index(type.getPage() * type.getHeadDim()));
}

Value PagedCache::loadScales(Value offset, unsigned width) const {
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

void PagedCache::storeScale(Value scale, Value offset) const {
  Value half = arith::TruncFOp::create(b, loc, b.getF16Type(), scale);
  Value bytes = vector::BitCastOp::create(
      b, loc, e.vectorType(scaleBytes, b.getI8Type()),
      vector::BroadcastOp::create(b, loc, e.vectorType(1, b.getF16Type()),
                                  half));
  vector::StoreOp::create(b, loc, bytes, cache, offset);
}

Value PagedCache::loadCodes(Value offset, unsigned width) const {
  Value codes = vector::LoadOp::create(
      b, loc, e.vectorType(width, b.getI8Type()), cache, offset);
  Value wide = arith::ExtSIOp::create(
      b, loc, e.vectorType(width, b.getI32Type()), codes);
  return arith::SIToFPOp::create(b, loc, e.vectorType(width), wide);
}
