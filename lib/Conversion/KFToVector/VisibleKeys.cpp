//===- VisibleKeys.cpp - Which keys the rows of an attention see ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VisibleKeys.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

VisibleKeys::VisibleKeys(KernelEmitter &emitter, CacheAttentionInterface op)
    : e(emitter), b(e.b), loc(e.loc), window(emitter, op) {}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

void VisibleKeys::allocate(int64_t most) {
  // A block has a row at least.
  positions = e.scratch({most}, b.getI32Type());
  lowest = e.scratch({most}, b.getI32Type());
  highest = e.scratch({most}, b.getI32Type());
}

void VisibleKeys::setPosition(Value row, Value position) {
  memref::StoreOp::create(b, loc, position, positions, row);
}

void VisibleKeys::formBlocks(Value rows, int64_t blockRows) {
  Value blocks = e.ceilDiv(rows, blockRows);
  std::optional<int64_t> count = getConstantIntValue(rows);
  if (!count || *count % blockRows != 0) {
    Value last =
        memref::LoadOp::create(b, loc, positions, e.sub(rows, e.index(1)));
    e.loop(rows, e.mul(blocks, e.index(blockRows)), e.index(1), {},
           [&](Value row, ValueRange) {
             setPosition(row, last);
             return SmallVector<Value>();
           });
  }
  e.loop(blocks, [&](Value block) {
    Value row = e.mul(block, e.index(blockRows));
    Value first = memref::LoadOp::create(b, loc, positions, row);
    auto range =
        e.loop(e.index(1), e.index(blockRows), e.index(1),
               ValueRange{first, first}, [&](Value r, ValueRange args) {
                 Value at =
                     memref::LoadOp::create(b, loc, positions, e.add(row, r));
                 return SmallVector<Value>{
                     arith::MinSIOp::create(b, loc, args[0], at),
                     arith::MaxSIOp::create(b, loc, args[1], at)};
               });
    memref::StoreOp::create(b, loc, range.getResult(0), lowest, block);
    memref::StoreOp::create(b, loc, range.getResult(1), highest, block);
  });
}

/// An entry of `table` as an index.
Value VisibleKeys::positionOf(Value row, Value table) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                    memref::LoadOp::create(b, loc, table, row));
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

VisibleKeys::Range VisibleKeys::find(Value block, Value key, Value end) {
  auto atLeast = [&](Value lhs, Value rhs) -> Value {
    return arith::MaxSIOp::create(b, loc, lhs, rhs);
  };
  auto atMost = [&](Value lhs, Value rhs) -> Value {
    return arith::MinSIOp::create(b, loc, lhs, rhs);
  };
  Value low = positionOf(block, lowest), high = positionOf(block, highest);
  Range seen;
  seen.begin = window.isBounded() ? atLeast(key, firstOf(low)) : key;
  seen.end = atLeast(atMost(end, e.add(high, e.index(1))), seen.begin);
  seen.common = seen.begin;
  if (window.isBounded())
    seen.common = atMost(atLeast(seen.begin, firstOf(high)), seen.end);
  seen.commonEnd =
      atLeast(atMost(seen.end, e.add(low, e.index(1))), seen.common);
  return seen;
}

Value VisibleKeys::mask(Value scores, Value row, Value key, Value hidden) {
  auto splat = [&](Value scalar) { return e.splat(scalar, e.lanes); };
  Value first = arith::IndexCastOp::create(b, loc, b.getI32Type(), key);
  Value index = arith::AddIOp::create(b, loc, splat(first), e.laneNumbers());
  Value position = memref::LoadOp::create(b, loc, positions, row);
  return e.select(window.isSeen(index, position, splat), scores, hidden);
}

Value VisibleKeys::sees(Value row, Value key) {
  Value index = arith::IndexCastOp::create(b, loc, b.getI32Type(), key);
  Value position = memref::LoadOp::create(b, loc, positions, row);
  return window.isSeen(index, position, [](Value scalar) { return scalar; });
}

Value VisibleKeys::seesAny(Value row, Value limit) {
  return window.seesAny(positionOf(row, positions), limit);
}
