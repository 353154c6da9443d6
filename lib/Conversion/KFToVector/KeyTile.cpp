//===- KeyTile.cpp - A tile of keys and values of a page ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeyTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

static constexpr int64_t cacheLineBytes = 64;

KeyTile::KeyTile(KernelEmitter &emitter, CacheAttentionInterface op,
                 CacheMemory &pages, int64_t keys)
    : e(emitter), b(e.b), loc(e.loc), op(op), type(op.getCache().getType()),
      pages(pages), cache(pages.memref()), keyCount(keys),
      dim(type.getHeadDim()) {}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// A tile lies in one page, as its size divides a page's.
void KeyTile::locate(Value sequence, Value key, Value end) {
  Value place = arith::RemUIOp::create(b, loc, key, e.index(type.getPage()));
  Value begin = findHead(sequence, key);
  keys = e.add(begin, e.mul(place, e.index(dim)));
  // The next tile; behind the last one, another that is there.
  Value next = arith::MinSIOp::create(b, loc, e.add(key, e.index(keyCount)),
                                      e.sub(end, e.index(1)));
  Value nextPlace =
      arith::RemUIOp::create(b, loc, next, e.index(type.getPage()));
  nextKeys = e.add(findHead(sequence, next), e.mul(nextPlace, e.index(dim)));
  values = e.add(keys, e.index(pages.valuesOffset()));
  if (!type.isQuantized())
    return;
  keyScales = e.add(pages.scalesOf(begin),
                    e.mul(place, e.index(pages.scaleBytesOfRow())));
  valueScales = e.add(keyScales, e.index(pages.valuesOffset()));
}

/// Where the tile's head begins in the page that holds position `key`.
Value KeyTile::findHead(Value sequence, Value key) {
  Value head =
      op.getKvHead() ? e.index(OpFoldResult(op.getKvHead())) : e.index(0);
  return e.add(pages.findPage(sequence, key),
               e.mul(head, e.index(pages.headSize())));
}

Value KeyTile::valuesAt(Value column) {
  return e.add(values, e.mul(column, e.index(keyCount)));
}

Value KeyTile::nextKey(Value number) {
  return e.add(nextKeys, e.mul(number, e.index(dim)));
}

void KeyTile::prefetch(Value first, int64_t count) {
  Type element = cast<MemRefType>(cache.getType()).getElementType();
  int64_t line = cacheLineBytes * 8 / element.getIntOrFloatBitWidth();
  // More bytes are wanted than the nearest cache can wait for at a time: these
  // come to the second one. Of blocks there are few, and each line is read in
  // four pieces.
  const unsigned locality = type.isQuantized() ? 3 : 2;
  for (int64_t at = 0; at < count; at += line)
    memref::PrefetchOp::create(b, loc, cache, e.add(first, e.index(at)),
                               /*isWrite=*/false, locality,
                               /*isDataCache=*/true);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

SmallVector<Value> KeyTile::loadKeyScales(Value block) {
  SmallVector<Value> scales;
  for (int64_t v = 0; v < vectors(); ++v) {
    Value row = e.add(e.index(v * pages.blocksOfRow()), block);
    scales.push_back(pages.loadScales(
        e.add(keyScales, e.mul(row, e.index(e.lanes * pages.scaleBytes))),
        e.lanes));
  }
  return scales;
}

SmallVector<Value> KeyTile::loadKeys(Value column, ArrayRef<Value> scales) {
  Value place = e.add(keys, e.mul(column, e.index(e.lanes)));
  SmallVector<Value> loaded;
  for (int64_t v = 0; v < vectors(); ++v) {
    Value at = e.add(place, e.index(v * e.lanes * dim));
    loaded.push_back(scales.empty()
                         ? e.loadMemref(cache, at, e.lanes)
                         : e.mul(pages.loadCodes(at, e.lanes), scales[v]));
  }
  return loaded;
}

Value KeyTile::loadValue(Value number, Value column, unsigned width) {
  Value at = e.add(e.add(values, e.mul(number, e.index(dim))), column);
  if (!type.isQuantized())
    return e.loadMemref(cache, at, width);
  Value block =
      e.add(e.mul(number, e.index(pages.blocksOfRow())),
            arith::DivUIOp::create(b, loc, column, e.index(pages.blockSize())));
  Value scale = pages.loadScales(
      e.add(valueScales, e.mul(block, e.index(pages.scaleBytes))), 0);
  return e.mul(pages.loadCodes(at, width), e.splat(scale, width));
}
