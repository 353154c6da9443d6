//===- StreamExperts.cpp - Rows that have the same expert -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How #kf.stream finds the rows that have the same expert (ExpertPlaces.h): a
// warp looks at the window for a place of its own, by ballots.
//
//===----------------------------------------------------------------------===//

#include "StreamMatmulEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class ExpertBallots : public ExpertPlaces {
public:
  ExpertBallots(GPUEmitter &emitter, ExpertMatmulOp op,
                const StreamShape &stream, WarpOps &code)
      : ExpertPlaces(
            emitter, op,
            {.rows = stream.rows, .window = stream.window, .top = stream.top}),
        stream(stream), code(code) {}

private:
  void find(Value tokens) override;
  void findPlacesOf(Value number);
  /// Behind this, memory of the rows before is overwritten.
  void beginGroup() override { e.barrier(); }

  const StreamShape &stream;
  WarpOps &code;
};

/// Finds what each place of the tile leads; a warp takes some of them.
void ExpertBallots::find(Value tokens) {
  lists =
      e.workgroupMemory(llvm::alignTo(stream.placeWords(), 4), b.getI32Type());
  findWindow();
  numbers = e.workgroupMemory(stream.expertWords(), b.getI32Type());
  e.forThreads(inWindow, [&](Value number) {
    setWord(nearestExpertOf(placeOf(number)), numbers, number);
  });
  e.barrier();
  Value warp = e.div(e.thread, StreamShape::lanes);
  e.loop(warp, tokens, e.index(stream.warps), {},
         [&](Value number, ValueRange) -> SmallVector<Value> {
           findPlacesOf(number);
           return {};
         });
  e.barrier();
}

void ExpertBallots::findPlacesOf(Value number) {
  constexpr int64_t lanes = StreamShape::lanes;
  Value lane = e.rem(e.thread, lanes);
  Value leader = leaderOf(number);
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
            setWord(place, lists, e.add(list, e.add(at, e.index(1))));
          });
          return {e.add(args[0], popCount(mask))};
        });
    Value all = found.getResult(0);
    return e.select(e.isLess(all, e.index(stream.rows)), all,
                    e.index(stream.rows));
  };
  Value together = e.ifElse(leads, listPlaces, [&] { return e.index(0); });
  e.ifThen(e.isLess(lane, e.index(1)), [&] { setWord(together, lists, list); });
}

} // namespace

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

void StreamMatmulEmitter::emitExperts() {
  // Which weights are read is known behind the kernels before this one.
  e.waitForInputs();
  places = std::make_unique<ExpertBallots>(e, experts, stream, code);
  places->forGroups(rows, [&](Value together) {
    rows = together;
    emitRows();
  });
}

Value StreamMatmulEmitter::finishElement(Value row, Value column,
                                         ValueRange sums) {
  if (!experts)
    return GPUMatmulEmitter::finishElement(row, column, sums);
  return places->finishElement(row, column, sums);
}

SmallVector<Value> StreamMatmulEmitter::resultIndices(Value row, Value column) {
  if (!experts)
    return GPUMatmulEmitter::resultIndices(row, column);
  return places->resultIndices(row, column);
}
