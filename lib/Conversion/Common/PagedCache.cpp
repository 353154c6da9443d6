//===- PagedCache.cpp - Where positions of sequences lie ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PagedCache.h"

#include "runtime/program/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::kf;

PagedCache::PagedCache(TileEmitter &emitter, TypedValue<KVCacheType> cache,
                       Value sequences, Value pageTable)
    : e(emitter), b(e.b), loc(e.loc), type(cache.getType()),
      pages(e.loadScalar(KF_SCALAR_CACHE_PAGES)), sequences(sequences),
      table(pageTable), sequenceCount(e.sizesOf(pageTable)[0]),
      tablePages(
          mlir::cast<RankedTensorType>(pageTable.getType()).getDimSize(1)) {}

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

Value PagedCache::loadIndex(Value tensor, ValueRange indices) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                    e.load(tensor, indices, 0));
}

Value PagedCache::sequenceOf(Value row) { return loadIndex(sequences, row); }

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
  return loadIndex(table, {sequence, number});
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

int64_t PagedCache::blockSize() const {
  return getStorage(mlir::cast<QuantType>(type.getType()).getFormat()).elements;
}

Value PagedCache::scalesOf(Value head) const {
  return e.add(head, e.index(type.getPage() * type.getHeadDim()));
}

CacheRow mlir::kf::locateCacheRow(TileEmitter &e, const PagedCache &pages,
                                  KVCacheType type, Value head, Value place,
                                  int64_t step) {
  auto divide = [&](Value value) -> Value {
    return step == 1 ? value
                     : arith::DivUIOp::create(e.b, e.loc, value, e.index(step));
  };
  auto remainder = [&](Value value) -> Value {
    return step == 1 ? e.index(0)
                     : arith::RemUIOp::create(e.b, e.loc, value, e.index(step));
  };
  Value block = divide(place), lane = remainder(place);
  CacheRow row;
  row.step = step;
  row.first =
      e.add(head, e.add(e.mul(block, e.index(step * type.getHeadDim())), lane));
  if (type.isQuantized())
    row.firstScale =
        e.add(pages.scalesOf(head),
              e.add(e.mul(block, e.index(step * pages.scaleBytesOfRow())),
                    e.mul(lane, e.index(pages.scaleBytes))));
  return row;
}
