//===- KeyWindow.cpp - Keys that a query row sees -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeyWindow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::kf;

KeyWindow::KeyWindow(TileEmitter &emitter, CacheAttentionInterface op)
    : e(emitter), b(e.b), loc(e.loc) {
  // Positions have 32 bits: a wider window hides nothing.
  if (op.getWindow() && *op.getWindow() <= INT32_MAX)
    window = *op.getWindow();
  chunked = op.getChunked();
}

Value KeyWindow::beginOf(Value position) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(position.getType(), value));
  };
  Value behind =
      chunked ? arith::RemSIOp::create(b, loc, position, constant(*window))
                    .getResult()
              : constant(*window - 1);
  return arith::SubIOp::create(b, loc, position, behind);
}

Value KeyWindow::firstOf(Value position) {
  if (!window)
    return e.index(0);
  return arith::MaxSIOp::create(b, loc, beginOf(position), e.index(0));
}

Value KeyWindow::isSeen(Value key, Value position,
                        function_ref<Value(Value)> splat) {
  Value seen = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, key,
                                     splat(position));
  if (!window)
    return seen;
  Value inWindow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, key,
                                         splat(beginOf(position)));
  return arith::AndIOp::create(b, loc, seen, inWindow);
}

Value KeyWindow::seesAny(Value position, Value limit) {
  Value end =
      arith::MinSIOp::create(b, loc, e.add(position, e.index(1)), limit);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                               firstOf(position), end);
}

KeyRange mlir::kf::keysOfPart(TileEmitter &e, const KeyRange &keys,
                              int64_t pageSize, int64_t parts, Value part) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  Value page = e.index(pageSize);
  Value begin = arith::DivUIOp::create(b, loc, keys.firstSeen, page);
  Value end = e.ceilDiv(keys.endKey, pageSize);
  Value count = arith::MaxSIOp::create(b, loc, e.sub(end, begin), e.index(0));
  Value share = e.ceilDiv(count, parts);
  auto pageAt = [&](Value number) -> Value {
    return arith::MinSIOp::create(b, loc, number, end);
  };
  begin = pageAt(e.add(begin, e.mul(part, share)));
  end = pageAt(e.add(begin, share));
  auto takeFrom = [&](Value key) -> Value {
    return arith::MaxSIOp::create(b, loc, key, e.mul(begin, page));
  };
  return {takeFrom(keys.firstSeen), takeFrom(keys.firstKey),
          arith::MinSIOp::create(b, loc, keys.endKey, e.mul(end, page))};
}

KeyRange mlir::kf::keysOfPart(TileEmitter &e, AttentionPartialOp op,
                              const KeyRange &keys) {
  Value split =
      op.getSplit() ? e.index(OpFoldResult(op.getSplit())) : e.index(0);
  return keysOfPart(e, keys, op.getCache().getType().getPage(), op.getSplits(),
                    split);
}
