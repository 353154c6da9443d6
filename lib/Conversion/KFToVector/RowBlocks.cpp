//===- RowBlocks.cpp - Rows of logits, block by block ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowBlocks.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

RowBlocks::RowBlocks(KernelEmitter &e, Value logits)
    : ScalarCode(e), e(e), logits(logits),
      size(cast<RankedTensorType>(logits.getType()).getDimSize(1)),
      whole(size / blockSize()), rest(size % blockSize()) {
  maxima = e.scratch({maximaCount()});
  if (rest > 0)
    tail = anyOffset(e.scratch({blockSize()}));
}

/// `memref` with its size and offset forgotten.
Value RowBlocks::anyOffset(Value memref) {
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, 1);
  auto type = MemRefType::get({ShapedType::kDynamic}, b.getF32Type(), layout);
  return memref::CastOp::create(b, loc, type, memref);
}

Value RowBlocks::inPlace(Value row) {
  SmallVector<Value> offsets;
  Value memref = e.sourceMemref(logits, offsets);
  if (!memref)
    return Value();
  auto type = cast<MemRefType>(memref.getType());
  if (!type.getElementType().isF32())
    return Value();
  SmallVector<OpFoldResult> at = {e.add(offsets[0], row), offsets[1]};
  SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1), b.getIndexAttr(size)};
  SmallVector<OpFoldResult> strides(2, b.getIndexAttr(1));
  MemRefType rowType = memref::SubViewOp::inferRankReducedResultType(
      {size}, type, at, sizes, strides);
  return anyOffset(
      memref::SubViewOp::create(b, loc, rowType, memref, at, sizes, strides));
}

Value RowBlocks::copyBuffer() {
  if (!buffer)
    buffer = e.scratch({size});
  return buffer;
}

Value RowBlocks::copy(Value row) {
  Value target = copyBuffer();
  e.emitRow(logits, row, [&](Value column, unsigned, Value part) {
    e.store(part, target, column);
  });
  return anyOffset(target);
}

void RowBlocks::copyRest() {
  Value least =
      e.splat(e.f32(-std::numeric_limits<double>::infinity()), e.lanes);
  for (int64_t at = 0; at < blockSize(); at += e.lanes)
    vector::StoreOp::create(b, loc, least, tail, e.index(at));
  e.forPiecesStatic(rest, [&](int64_t at, unsigned width) {
    Value from = e.index(whole * blockSize() + at);
    Value part =
        vector::LoadOp::create(b, loc, e.vectorType(width), values, from);
    vector::StoreOp::create(b, loc, part, tail, e.index(at));
  });
}

SmallVector<Value> RowBlocks::forBlocks(ValueRange state, Body body) {
  auto loadFrom = [&](Value memref, Value first, int64_t number) -> Value {
    return vector::LoadOp::create(b, loc, e.vectorType(e.lanes), memref,
                                  e.add(first, e.index(number * e.lanes)));
  };
  SmallVector<Value> results(state);
  if (whole > 0) {
    auto loop = e.loop(e.index(0), e.index(whole), e.index(1), state,
                       [&](Value block, ValueRange args) {
                         Value first = e.mul(block, e.index(blockSize()));
                         auto load = [&](int64_t number) {
                           return loadFrom(values, first, number);
                         };
                         return body(block, first, load, args);
                       });
    results.assign(loop.result_begin(), loop.result_end());
  }
  if (rest > 0) {
    auto load = [&](int64_t number) {
      return loadFrom(tail, e.index(0), number);
    };
    results = body(e.index(whole), e.index(whole * blockSize()), load,
                   SmallVector<Value>(results));
  }
  return results;
}

Value RowBlocks::maximaOf(Value block) {
  return e.loadMemref(maxima, e.mul(block, e.index(e.lanes)), e.lanes);
}

void RowBlocks::scan(Value row, bool ignoreNan) {
  values = row;
  if (rest > 0)
    copyRest();
  // Where NaN is ignored it must not win; where not, it is looked for apart,
  // and the maximum is one instruction.
  auto larger = [&](Value lhs, Value rhs) -> Value {
    if (ignoreNan)
      return make<arith::MaxNumFOp>(lhs, rhs);
    return e.select(compare(arith::CmpFPredicate::OGT, lhs, rhs), lhs, rhs);
  };
  VectorType integers = e.vectorType(e.lanes, b.getI32Type());
  Value least = e.f32(-std::numeric_limits<double>::infinity());
  SmallVector<Value> state = {splat(least), number(integers, 0)};
  state =
      forBlocks(state, [&](Value block, Value, Load load, ValueRange before) {
        SmallVector<Value> parts;
        for (int64_t i = 0; i < kVectors; ++i)
          parts.push_back(load(i));
        Value nans = before[1];
        if (!ignoreNan) {
          Value found;
          for (int64_t i = 0; i < kVectors; i += 2) {
            Value pair =
                compare(arith::CmpFPredicate::UNO, parts[i], parts[i + 1]);
            found = found ? make<arith::OrIOp>(found, pair) : pair;
          }
          nans = make<arith::OrIOp>(
              nans, arith::ExtSIOp::create(b, loc, integers, found));
        }
        for (int64_t count = kVectors; count > 1; count /= 2)
          for (int64_t i = 0; i < count / 2; ++i)
            parts[i] = larger(parts[i], parts[i + count / 2]);
        e.store(parts[0], maxima, e.mul(block, e.index(e.lanes)));
        return SmallVector<Value>{larger(parts[0], before[0]), nans};
      });
  largest = vector::ReductionOp::create(b, loc, vector::CombiningKind::MAXNUMF,
                                        state[0]);
  hasNan =
      any(compare(arith::CmpIPredicate::ne, state[1], number(integers, 0)));
}

Value RowBlocks::firstLargest() {
  VectorType integers = e.vectorType(e.lanes, b.getI32Type());
  constexpr int32_t most = std::numeric_limits<int32_t>::max();
  Value none = number(integers, most), wanted = splat(largest);
  auto least = [&](Value numbers) -> Value {
    return vector::ReductionOp::create(b, loc, vector::CombiningKind::MINSI,
                                       numbers);
  };
  // The first block that has it, and there the first place.
  auto search = e.loop(
      e.index(0), e.index(blocks()), e.index(1), none,
      [&](Value block, ValueRange found) {
        Value has = compare(arith::CmpFPredicate::OEQ, maximaOf(block), wanted);
        Value here =
            splat(arith::IndexCastOp::create(b, loc, b.getI32Type(), block));
        return SmallVector<Value>{
            make<arith::MinSIOp>(found[0], e.select(has, here, none))};
      });
  Value found = least(search.getResult(0));
  Value block = toIndex(
      make<arith::MinSIOp>(found, i32(std::max<int64_t>(blocks() - 1, 0))));

  Value lanes = e.laneNumbers();
  auto placeIn = [&](Value memref, Value first) {
    Value place = none;
    for (int64_t i = 0; i < kVectors; ++i) {
      Value part = vector::LoadOp::create(b, loc, e.vectorType(e.lanes), memref,
                                          e.add(first, e.index(i * e.lanes)));
      Value here = make<arith::AddIOp>(lanes, number(integers, i * e.lanes));
      Value has = compare(arith::CmpFPredicate::OEQ, part, wanted);
      place = make<arith::MinSIOp>(place, e.select(has, here, none));
    }
    return least(place);
  };
  Value first = e.mul(block, e.index(blockSize()));
  auto inRow = [&] { return placeIn(values, first); };
  auto inTail = [&] { return placeIn(tail, e.index(0)); };
  Value place = rest == 0 ? inRow()
                : whole == 0
                    ? inTail()
                    : ifElse(e.isLess(block, e.index(whole)), inRow, inTail);
  // Without the value anywhere, the place is no column.
  Value column = e.add(first, toIndex(place));
  return e.select(e.isLess(column, e.index(size)),
                  arith::IndexCastOp::create(b, loc, b.getI32Type(), column),
                  i32(0));
}

//===----------------------------------------------------------------------===//
// argmax
//===----------------------------------------------------------------------===//

void mlir::kf::emitArgmaxKernel(KernelEmitter &e) {
  auto op = e.find<ArgmaxOp>();
  RowBlocks blocks(e, op.getLogits());
  e.loop(e.sizesOf(op.getLogits())[0], [&](Value row) {
    Value values = blocks.inPlace(row);
    if (!values)
      values = blocks.copy(row);
    blocks.scan(values, /*ignoreNan=*/true);
    e.storeResult(blocks.firstLargest(), row);
  });
}
