//===- ExpertPlaces.cpp - Rows that have the same expert ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpertPlaces.h"

#include "../../Common/RowFormulas.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

void ExpertPlaces::forGroups(Value tokens, function_ref<void(Value)> body) {
  if (groups.rows == 1) {
    ofGroup = nearestExpert(e, op, e.index(0), e.index(0));
    return body(e.index(1));
  }
  find(tokens);
  e.loop(tokens, [&](Value row) {
    listOfRow = e.scaled(row, 1 + groups.rows);
    Value together = wordAt(lists, listOfRow);
    e.ifThen(e.isLess(e.index(0), together), [&] {
      beginGroup();
      ofGroup = wordAt(numbers, placeAt(listOfRow, e.index(0)));
      body(together);
    });
  });
}

//===----------------------------------------------------------------------===//
// Words of workgroup memory
//===----------------------------------------------------------------------===//

Value ExpertPlaces::wordAt(Value memory, Value at) {
  return arith::IndexCastUIOp::create(
      b, loc, b.getIndexType(), memref::LoadOp::create(b, loc, memory, at));
}

void ExpertPlaces::setWord(Value value, Value memory, Value at) {
  memref::StoreOp::create(
      b, loc, arith::IndexCastUIOp::create(b, loc, b.getI32Type(), value),
      memory, at);
}

/// Row `row` of `list`: the number of a place of the window.
Value ExpertPlaces::placeAt(Value list, Value row) {
  return wordAt(lists, e.add(list, e.add(row, e.index(1))));
}

ExpertPlaces::Place ExpertPlaces::placeOf(Value inWindow) {
  const SmallVector<Value> offsets = e.tileOffsets();
  return {e.sub(e.add(windowStart, e.div(inWindow, groups.top)), offsets[0]),
          e.sub(e.rem(inWindow, groups.top), offsets[1])};
}

ExpertPlaces::Place ExpertPlaces::placeOfRow(Value row) {
  if (groups.rows == 1)
    return {e.index(0), e.index(0)};
  return placeOf(placeAt(listOfRow, row));
}

Value ExpertPlaces::leaderOf(Value token) {
  const SmallVector<Value> offsets = e.tileOffsets();
  token = e.sub(e.add(offsets[0], token), windowStart);
  return e.add(e.scaled(token, groups.top), offsets[1]);
}

Value ExpertPlaces::expertOf(Value inWindow) {
  return memref::LoadOp::create(b, loc, numbers, inWindow);
}

Value ExpertPlaces::nearestExpertOf(const Place &place) {
  return nearestExpert(e, op, place[0], place[1]);
}

/// Finds where the window begins and how many places it has.
void ExpertPlaces::findWindow() {
  auto type = cast<RankedTensorType>(e.kernel.getResultTypes()[0]);
  Value tokens = type.isDynamicDim(0) ? e.loadSize(getSizeName(type))
                                      : e.index(type.getDimSize(0));
  Value token = e.tileOffsets()[0];
  windowStart = e.scaled(e.div(token, groups.window), groups.window);
  Value left = e.sub(tokens, windowStart);
  left = e.select(e.isLess(left, e.index(groups.window)), left,
                  e.index(groups.window));
  inWindow = e.scaled(left, groups.top);
}

//===----------------------------------------------------------------------===//
// Places that parts of the window have
//===----------------------------------------------------------------------===//

/// Brings the numbers of experts of the window to workgroup memory.
void ExpertParts::readNumbers() {
  findWindow();
  e.forBatches(inWindow, {}, [&](const GPUEmitter::Batch &batch, ValueRange) {
    SmallVector<Value> found;
    for (Value number : batch.numbers) {
      found.push_back(nearestExpertOf(placeOf(number)));
    }
    for (auto [i, number] : llvm::enumerate(batch.numbers)) {
      auto store = [&, number = number, own = found[i]] {
        setWord(own, numbers, number);
      };
      if (Value isInside = batch.isInside[i])
        e.ifThen(isInside, store);
      else
        store();
    }
    return SmallVector<Value>();
  });
}

void ExpertParts::find(Value tokens) {
  numbers = e.workgroupMemory(groups.numberWords(), b.getI32Type());
  counts = e.workgroupMemory(groups.countWords(), b.getI32Type());
  lists = e.workgroupMemory(groups.listWords(), b.getI32Type());
  readNumbers();
  e.barrier();
  Value partSize = e.ceilDiv(inWindow, groups.parts);
  auto atMost = [&](Value value, Value most) {
    return e.select(e.isLess(value, most), value, most);
  };
  // This thread's part, and the workgroup's place that it is looked at for: one
  // that there is.
  Value row = e.div(e.thread, groups.parts);
  Value part = e.rem(e.thread, groups.parts);
  Value begin = atMost(e.mul(part, partSize), inWindow);
  Value end = atMost(e.add(begin, partSize), inWindow);
  Value isOne = e.isLess(row, tokens);
  row = e.select(isOne, row, e.index(0));
  Value leader = leaderOf(row);
  Value own = expertOf(leader);
  auto isOwn = [&](Value place) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                 expertOf(place), own);
  };
  auto countIf = [&](Value condition) {
    return e.select(condition, e.index(1), e.index(0));
  };
  auto count = e.loop(begin, end, e.index(1), e.index(0),
                      [&](Value place, ValueRange sum) -> SmallVector<Value> {
                        return {e.add(sum[0], countIf(isOwn(place)))};
                      });
  Value firstCount = e.scaled(row, groups.parts);
  e.ifThen(isOne, [&] {
    setWord(count.getResult(0), counts, e.add(firstCount, part));
  });
  e.barrier();

  // Of those with the same expert: before this part, all, before the leader.
  Value ofLeader = arith::DivUIOp::create(b, loc, leader, partSize);
  auto sums =
      e.loop(e.index(0), e.index(groups.parts), e.index(1),
             {e.index(0), e.index(0), e.index(0)},
             [&](Value other, ValueRange before) -> SmallVector<Value> {
               Value found = wordAt(counts, e.add(firstCount, other));
               auto foundIf = [&](Value condition) {
                 return e.select(condition, found, e.index(0));
               };
               return {e.add(before[0], foundIf(e.isLess(other, part))),
                       e.add(before[1], found),
                       e.add(before[2], foundIf(e.isLess(other, ofLeader)))};
             });
  auto rank =
      e.loop(e.mul(ofLeader, partSize), leader, e.index(1), sums.getResult(2),
             [&](Value place, ValueRange sum) -> SmallVector<Value> {
               return {e.add(sum[0], countIf(isOwn(place)))};
             });
  Value ofFirst = rank.getResult(0);
  Value leads = e.isLess(e.rem(ofFirst, groups.rows), e.index(1));
  Value list = e.scaled(row, 1 + groups.rows);
  e.ifThen(isOne, [&] {
    e.loop(begin, end, e.index(1), sums.getResult(0),
           [&](Value place, ValueRange before) -> SmallVector<Value> {
             Value isFound = isOwn(place);
             // Of one before the leader, far above all.
             Value at = e.sub(before[0], ofFirst);
             Value isListed = arith::AndIOp::create(
                 b, loc, isFound, e.isLess(at, e.index(groups.rows)));
             e.ifThen(isListed, [&] {
               setWord(place, lists, e.add(list, e.add(at, e.index(1))));
             });
             return {e.add(before[0], countIf(isFound))};
           });
    e.ifThen(e.isLess(part, e.index(1)), [&] {
      Value behind = e.sub(sums.getResult(1), ofFirst);
      setWord(e.select(leads, atMost(behind, e.index(groups.rows)), e.index(0)),
              lists, list);
    });
  });
  e.barrier();
}

//===----------------------------------------------------------------------===//
// Operands and results
//===----------------------------------------------------------------------===//

Value ExpertPlaces::loadX(const Place &place, Value k) {
  SmallVector<Value> indices = {place[0], place[1]};
  indices.resize(op.hasRowForEach() ? 2 : 1);
  indices.push_back(k);
  return e.load(op.getX(), indices, 0);
}

Value ExpertPlaces::finishElement(Value row, Value column, ValueRange sums) {
  Value value = finishProduct(e, op, sums, column, 0, Value(), ofGroup);
  e.define(op.getResult(),
           [value](ValueRange, unsigned, Value) { return value; });
  return e.load(e.tileResult(), resultIndices(row, column), 0);
}

SmallVector<Value> ExpertPlaces::resultIndices(Value row, Value column) {
  const Place place = placeOfRow(row);
  return {place[0], place[1], column};
}
