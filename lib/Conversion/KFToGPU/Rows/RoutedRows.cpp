//===- RoutedRows.cpp - The experts of a row ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A workgroup has a row. Its numbers go to workgroup memory, and each thread
// counts how many experts come before one of its own: that is the expert's
// rank, and its place among those that are chosen, if there is one. So nothing
// is sorted, and finding them takes as long for any number of places. Threads
// with a place each then see what all places have, and compute its weight.
//
//===----------------------------------------------------------------------===//

#include "RoutedRows.h"

#include "kf/Conversion/RouteShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;
using vector::CombiningKind;

namespace {

/// What kf.route adds to the sum of sigmoids that it divides by.
constexpr double leastTotal = 1e-20;

class RoutedRow {
public:
  RoutedRow(GPUEmitter &e, RouteOp op)
      : e(e), b(e.b), loc(e.loc), op(op),
        experts(cast<RankedTensorType>(op.getLogits().getType()).getDimSize(1)),
        top(static_cast<int64_t>(op.getTop())), words(op),
        logits(e.workgroupMemory(words.experts, b.getF32Type())),
        keys(e.workgroupMemory(words.experts, b.getF32Type())),
        numbers(e.workgroupMemory(words.places, b.getI32Type())),
        chosen(e.workgroupMemory(words.places, b.getF32Type())) {}

  void emit(Value row) {
    stage(row);
    e.barrier();
    // Of all experts, where those that are not chosen count.
    Value largest, inverse;
    if (!op.getSigmoid() && !op.getNormalized()) {
      auto reduce = [&](CombiningKind kind, function_ref<Value(Value)> value) {
        return e.reduceRow(e.index(experts), kind, [&](Value column, unsigned) {
          return value(loadFrom(logits, column));
        });
      };
      largest =
          reduce(CombiningKind::MAXIMUMF, [](Value logit) { return logit; });
      inverse = inverseOf(reduce(CombiningKind::ADD, [&](Value logit) {
        return exponential(logit, largest);
      }));
    }
    e.forThreads(e.index(experts), [&](Value expert) { choose(expert); });
    e.barrier();
    e.forThreads(e.index(top), [&](Value place) {
      Value number = memref::LoadOp::create(b, loc, numbers, place);
      e.storeResult(number, {row, place}, 0);
      Value weight =
          largest
              ? e.mul(exponential(loadFrom(chosen, place), largest), inverse)
              : weightAmongChosen(place);
      if (op.getScales())
        weight = e.mul(weight, e.load(op.getScales(), toIndex(number), 0));
      e.storeResult(weight, {row, place}, 1);
    });
  }

private:
  /// What a row has in workgroup memory: its logits, and by what experts are
  /// chosen, as many as a thread compares at a time.
  void stage(Value row) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    e.forThreads(e.index(words.experts), [&](Value column) {
      Value isOne = e.isLess(column, e.index(experts));
      Value own = e.select(isOne, column, e.index(0));
      Value logit = e.load(op.getLogits(), {row, own}, 0);
      memref::StoreOp::create(b, loc, logit, logits, column);
      Value key = logit;
      if (op.getBias())
        key = e.add(sigmoid(logit), e.load(op.getBias(), own, 0));
      // NaN is the least, and those that there are not come last of all.
      Value isNan =
          arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, key, key);
      key = e.select(isNan, e.f32(-inf), key);
      memref::StoreOp::create(b, loc, e.select(isOne, key, e.f32(-inf)), keys,
                              column);
    });
  }

  /// Stores an expert to its place, if it has one.
  void choose(Value expert) {
    constexpr int64_t atOnce = RouteWords::comparedAtOnce;
    Value own = loadFrom(keys, expert);
    auto before = e.loop(
        e.index(0), e.index(words.experts), e.index(atOnce), e.index(0),
        [&](Value first, ValueRange args) -> SmallVector<Value> {
          SmallVector<Value> others;
          for (int64_t i = 0; i < atOnce; ++i)
            others.push_back(loadFrom(keys, e.add(first, e.index(i))));
          Value count = args[0];
          for (auto [i, other] : llvm::enumerate(others))
            count = e.add(
                count,
                e.select(isBefore(other, e.add(first, e.index(i)), own, expert),
                         e.index(1), e.index(0)));
          return {count};
        });
    Value rank = before.getResult(0);
    e.ifThen(e.isLess(rank, e.index(top)), [&] {
      memref::StoreOp::create(
          b, loc, arith::IndexCastUIOp::create(b, loc, b.getI32Type(), expert),
          numbers, rank);
      Value logit = loadFrom(logits, expert);
      memref::StoreOp::create(b, loc, op.getSigmoid() ? sigmoid(logit) : logit,
                              chosen, rank);
    });
  }

  Value isBefore(Value other, Value otherNumber, Value own, Value ownNumber) {
    auto compare = [&](arith::CmpFPredicate predicate) -> Value {
      return arith::CmpFOp::create(b, loc, predicate, other, own);
    };
    return arith::OrIOp::create(
        b, loc, compare(arith::CmpFPredicate::OGT),
        arith::AndIOp::create(b, loc, compare(arith::CmpFPredicate::OEQ),
                              e.isLess(otherNumber, ownNumber)));
  }

  /// The weight of place `place`, which no other expert than those that are
  /// chosen changes.
  Value weightAmongChosen(Value place) {
    Value own = loadFrom(chosen, place);
    if (!op.getNormalized())
      return own; // a sigmoid
    auto combine = [&](double from, CombiningKind kind,
                       function_ref<Value(Value)> value) {
      return e
          .loop(e.index(0), e.index(top), e.index(1), e.f32(from),
                [&](Value other, ValueRange args) -> SmallVector<Value> {
                  return {vector::makeArithReduction(
                      b, loc, kind, args[0], value(loadFrom(chosen, other)))};
                })
          .getResult(0);
    };
    if (op.getSigmoid()) {
      Value total =
          combine(0, CombiningKind::ADD, [](Value share) { return share; });
      return arith::DivFOp::create(b, loc, own,
                                   e.add(total, e.f32(leastTotal)));
    }
    Value largest =
        combine(-std::numeric_limits<double>::infinity(),
                CombiningKind::MAXIMUMF, [](Value logit) { return logit; });
    Value total = combine(0, CombiningKind::ADD, [&](Value logit) {
      return exponential(logit, largest);
    });
    return e.mul(exponential(own, largest), inverseOf(total));
  }

  //===--- Numbers --------------------------------------------------------===//

  Value loadFrom(Value memory, Value place) {
    return memref::LoadOp::create(b, loc, memory, place);
  }
  Value toIndex(Value number) {
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), number);
  }
  Value exponential(Value logit, Value largest) {
    return math::ExpOp::create(b, loc, e.sub(logit, largest));
  }
  Value inverseOf(Value x) {
    return arith::DivFOp::create(b, loc, e.f32(1), x);
  }
  /// 1 / (1 + exp(-x)).
  Value sigmoid(Value x) {
    Value decay = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x));
    return inverseOf(e.add(e.f32(1), decay));
  }

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  RouteOp op;
  const int64_t experts, top;
  const RouteWords words;
  Value logits, keys;    // of the row
  Value numbers, chosen; // of each place: the expert, and its logit or sigmoid
};

} // namespace

void mlir::kf::emitGPURoute(GPUEmitter &e) {
  auto op = e.find<RouteOp>();
  RoutedRow routed(e, op);
  Value rows = e.sizesOf(op.getLogits())[0];
  e.forRows(rows, [&](ValueRange row) {
    routed.emit(row[0]);
    if (getConstantIntValue(rows) != 1)
      e.barrier(); // before the next row overwrites what this one has
  });
}
