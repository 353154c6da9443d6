//===- StreamExperts.cpp - Rows that have the same expert -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How #kf.stream multiplies rows with the weights of their experts. A place is
// a token and one of its experts, and a workgroup has as many neighbouring
// tokens, each with the same place, as rows are multiplied together. Of all
// places in its window that have the same expert, the first, and then each that
// has as many before it as make another group, leads those behind it up to the
// next leader. A workgroup multiplies the groups that places of its own lead,
// one after the other: so each place is in one group, whatever experts there
// are, and nothing is sorted.
//
//===----------------------------------------------------------------------===//

#include "StreamMatmulEmitter.h"

#include "../../Common/RowFormulas.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

void StreamMatmulEmitter::emitExperts() {
  // Which weights are read is known behind the kernels before this one.
  e.waitForInputs();
  if (stream.rows == 1) {
    rows = e.index(1);
    expert = nearestExpert(e, experts, e.index(0), e.index(0));
    return emitRows();
  }
  findPlaces();
  Value own = rows; // in the tile
  e.loop(own, [&](Value number) {
    auto toIndex = [&](Value word) -> Value {
      return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), word);
    };
    placesOfRow = e.scaled(number, 1 + stream.rows);
    auto wordAt = [&](Value at) {
      return toIndex(memref::LoadOp::create(b, loc, places, at));
    };
    rows = wordAt(placesOfRow);
    e.ifThen(e.isLess(e.index(0), rows), [&] {
      e.barrier(); // before memory of the rows before is overwritten
      expert = toIndex(expertOf(wordAt(e.add(placesOfRow, e.index(1)))));
      emitRows();
    });
  });
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Finds what each place of the tile leads; a warp takes some of them.
void StreamMatmulEmitter::findPlaces() {
  places =
      e.workgroupMemory(llvm::alignTo(stream.placeWords(), 4), b.getI32Type());
  auto type = cast<RankedTensorType>(e.kernel.getResultTypes()[0]);
  Value tokens = type.isDynamicDim(0) ? e.loadSize(getSizeName(type))
                                      : e.index(type.getDimSize(0));
  Value token = e.tileOffsets()[0];
  windowStart = e.scaled(e.div(token, stream.window), stream.window);
  Value left = e.sub(tokens, windowStart);
  inWindow = e.scaled(e.select(e.isLess(left, e.index(stream.window)), left,
                               e.index(stream.window)),
                      stream.top);
  numbers = e.workgroupMemory(stream.expertWords(), b.getI32Type());
  e.forThreads(inWindow, [&](Value number) {
    const Place place = placeOf(number);
    Value own = nearestExpert(e, experts, place[0], place[1]);
    memref::StoreOp::create(
        b, loc, arith::IndexCastUIOp::create(b, loc, b.getI32Type(), own),
        numbers, number);
  });
  e.barrier();
  Value warp = e.div(e.thread, StreamShape::lanes);
  e.loop(warp, rows, e.index(stream.warps), {},
         [&](Value number, ValueRange) -> SmallVector<Value> {
           findPlacesOf(number);
           return {};
         });
  e.barrier();
}

void StreamMatmulEmitter::findPlacesOf(Value number) {
  constexpr int64_t lanes = StreamShape::lanes;
  const SmallVector<Value> offsets = e.tileOffsets();
  Value lane = e.rem(e.thread, lanes);
  Value token = e.sub(e.add(offsets[0], number), windowStart);
  Value leader = e.add(e.scaled(token, stream.top), offsets[1]);
  Value own = expertOf(leader);
  auto isOwn = [&](Value place) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                 expertOf(place), own);
  };
  auto before =
      e.loop(lane, leader, e.index(lanes), e.index(0),
             [&](Value place, ValueRange count) -> SmallVector<Value> {
               return {e.add(count[0],
                             e.select(isOwn(place), e.index(1), e.index(0)))};
             });
  Value count =
      arith::IndexCastOp::create(b, loc, b.getI32Type(), before.getResult(0));
  count = code.combineLanes(count, 0, 5, [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, loc, x, y);
  });
  count = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), count);
  Value leads = e.isLess(e.rem(count, stream.rows), e.index(1));

  // Lanes go together: each has the place that many behind the first.
  Value list = e.scaled(number, 1 + stream.rows);
  auto toWord = [&](Value index) -> Value {
    return arith::IndexCastUIOp::create(b, loc, b.getI32Type(), index);
  };
  Value below = arith::SubIOp::create(
      b, loc, arith::ShLIOp::create(b, loc, e.word(1), toWord(lane)),
      e.word(1));
  auto popCount = [&](Value bits) -> Value {
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(),
                                        math::CtPopOp::create(b, loc, bits));
  };
  auto listPlaces = [&]() -> Value {
    auto found = e.loop(
        leader, inWindow, e.index(lanes), e.index(0),
        [&](Value first, ValueRange args) -> SmallVector<Value> {
          Value place = e.add(first, lane);
          Value isInside = e.isLess(place, inWindow);
          Value nearest = e.select(isInside, place, leader);
          Value isSame =
              arith::AndIOp::create(b, loc, isInside, isOwn(nearest));
          Value mask = code.ballot(isSame);
          Value at = e.add(
              args[0], popCount(arith::AndIOp::create(b, loc, mask, below)));
          Value isListed = arith::AndIOp::create(
              b, loc, isSame, e.isLess(at, e.index(stream.rows)));
          e.ifThen(isListed, [&] {
            memref::StoreOp::create(b, loc, toWord(place), places,
                                    e.add(list, e.add(at, e.index(1))));
          });
          return {e.add(args[0], popCount(mask))};
        });
    Value all = found.getResult(0);
    return e.select(e.isLess(all, e.index(stream.rows)), all,
                    e.index(stream.rows));
  };
  Value together = e.ifElse(leads, listPlaces, [&] { return e.index(0); });
  e.ifThen(e.isLess(lane, e.index(1)), [&] {
    memref::StoreOp::create(b, loc, toWord(together), places, list);
  });
}

/// The expert (i32) of place number `number` of the window.
Value StreamMatmulEmitter::expertOf(Value number) {
  return memref::LoadOp::create(b, loc, numbers, number);
}

/// Where place number `number` of the window is.
StreamMatmulEmitter::Place StreamMatmulEmitter::placeOf(Value number) {
  const SmallVector<Value> offsets = e.tileOffsets();
  return {e.sub(e.add(windowStart, e.div(number, stream.top)), offsets[0]),
          e.sub(e.rem(number, stream.top), offsets[1])};
}

/// Where row `row` of those that are multiplied is.
StreamMatmulEmitter::Place StreamMatmulEmitter::placeOfRow(Value row) {
  if (stream.rows == 1)
    return {e.index(0), e.index(0)};
  Value word = memref::LoadOp::create(
      b, loc, places, e.add(placesOfRow, e.add(row, e.index(1))));
  return placeOf(arith::IndexCastUIOp::create(b, loc, b.getIndexType(), word));
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Value StreamMatmulEmitter::finishElement(Value row, Value column,
                                         ValueRange sums) {
  if (!experts)
    return GPUMatmulEmitter::finishElement(row, column, sums);
  Value value = finishProduct(e, experts, sums, column, 0, Value(), expert);
  e.define(experts.getResult(),
           [value](ValueRange, unsigned, Value) { return value; });
  return e.load(e.tileResult(), resultIndices(row, column), 0);
}

SmallVector<Value> StreamMatmulEmitter::resultIndices(Value row, Value column) {
  if (!experts)
    return GPUMatmulEmitter::resultIndices(row, column);
  const Place place = placeOfRow(row);
  return {place[0], place[1], column};
}
