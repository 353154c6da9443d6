//===- GPUDeltaEmitter.cpp - Linear attention by the gated delta rule -----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A workgroup walks the rows of a sequence for one head, whose channels of a
// row go through workgroup memory. Where there is a thread for each column of
// the matrix, or several, threads hold their parts of columns in registers from
// the first row to the last one, and add up what they find in workgroup memory.
// Else a row reads its columns from the cache twice, and writes them. What a
// thread reads there it has written itself, as channels of the rows behind the
// matrix.
//
//===----------------------------------------------------------------------===//

#include "../../Common/DeltaFormulas.h"
#include "../GPUEmitter.h"

#include "kf/Conversion/DeltaThreads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class DeltaEmitter {
public:
  explicit DeltaEmitter(GPUEmitter &e)
      : e(e), b(e.b), loc(e.loc), op(e.find<GatedDeltaOp>()), head(e, op),
        cache(e.bufferOf(cast<BlockArgument>(op.getCache()))),
        channels(e.workgroupMemory(op.getChannels(), b.getF32Type())) {}

  void emit() {
    const DeltaThreads threads(op, e.shape.threads);
    if (threads.held > 0)
      return emitHeld(threads);
    head.forRows([&](Value row, Value isFirst) {
      for (const DeltaHead::Part &part : head.parts)
        convolve(part, row, isFirst);
      e.barrier();
      step(row, isFirst);
      // The next row writes only once all threads have read this one.
      e.barrier();
    });
  }

private:
  /// What is at `place` of the state: zeros before the sequence's first row.
  Value loadState(Value place, Value isFirst) {
    return e.select(isFirst, e.f32(0.0),
                    e.loadBuffer(cache, place, b.getF32Type()));
  }
  void storeState(Value value, Value place) {
    e.storeBuffer(value, cache, place, b.getF32Type());
  }
  Value loadChannel(Value number, int64_t offset) {
    return memref::LoadOp::create(b, loc, channels,
                                  e.add(number, e.index(offset)));
  }

  /// Row `row` of a part's channels, and what the next one looks back at.
  void convolve(const DeltaHead::Part &part, Value row, Value isFirst) {
    const int64_t taps = op.getTaps();
    e.forThreads(e.index(part.size), [&](Value column) {
      Value place = e.add(column, e.index(part.offset));
      Value line = e.add(part.line, column), sum;
      auto before = [&](int64_t number) {
        return e.add(head.window,
                     e.add(place, e.index(number * op.getChannels())));
      };
      for (int64_t tap = 0; tap < taps; ++tap) {
        Value x = tap + 1 == taps
                      ? e.load(part.tensor, {row, part.head, column}, 0)
                      : loadState(before(tap), isFirst);
        Value product = e.mul(x, e.load(op.getConvolution(),
                                        {line, e.index(0), e.index(tap)}, 0));
        sum = sum ? e.add(sum, product) : product;
        if (tap > 0)
          storeState(x, before(tap - 1));
      }
      memref::StoreOp::create(b, loc, e.activate(ActivationKind::Silu, sum),
                              channels, place);
    });
  }

  /// Of the state, `held` rows of a column, from number `held` * threadY on.
  void emitHeld(const DeltaThreads &threads) {
    const int64_t dv = op.getValueDim();
    if (threads.parts > 1)
      sums = e.workgroupMemory(threads.sums(), b.getF32Type());
    Value isColumn = e.isLess(e.threadX, e.index(dv));
    Value column = e.select(isColumn, e.threadX, e.index(dv - 1));
    Value firstRow = e.mul(e.threadY, e.index(threads.held));
    auto placeOf = [&](int64_t i) {
      return e.add(
          head.matrix,
          e.add(e.mul(e.add(firstRow, e.index(i)), e.index(dv)), column));
    };
    SmallVector<Value> state;
    for (int64_t i = 0; i < threads.held; ++i)
      state.push_back(e.loadBuffer(cache, placeOf(i), b.getF32Type()));
    // A sequence without rows keeps its state as it is.
    state.push_back(arith::ConstantOp::create(b, loc, b.getBoolAttr(false)));
    state = head.forRows(state, [&](Value row, Value isFirst,
                                    ValueRange before) {
      for (const DeltaHead::Part &part : head.parts)
        convolve(part, row, isFirst);
      e.barrier();
      SmallVector<Value> after = stepHeld(threads, row, isFirst, firstRow,
                                          column, isColumn, before.drop_back());
      after.push_back(arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
      e.barrier();
      return after;
    });
    Value isWritten =
        arith::AndIOp::create(b, loc, state.pop_back_val(), isColumn);
    e.ifThen(isWritten, [&] {
      for (auto [i, value] : llvm::enumerate(state))
        storeState(value, placeOf(static_cast<int64_t>(i)));
    });
  }

  SmallVector<Value> stepHeld(const DeltaThreads &threads, Value row,
                              Value isFirst, Value firstRow, Value column,
                              Value isColumn, ValueRange before) {
    const int64_t dk = op.getKeyDim();
    auto [decay, share] = head.gatesOf(row);
    SmallVector<Value> state, queries, keys;
    // S^T k, and the squares of q and k.
    SmallVector<Value> found(3, e.f32(0.0));
    for (auto [i, value] : llvm::enumerate(before)) {
      Value number = e.add(firstRow, e.index(static_cast<int64_t>(i)));
      Value q = loadChannel(number, 0), k = loadChannel(number, dk),
            own = e.select(isFirst, e.f32(0.0), value);
      const std::pair<Value, Value> factors[] = {{k, own}, {q, q}, {k, k}};
      for (auto [sum, pair] : llvm::zip(found, factors))
        sum = e.add(sum, e.mul(pair.first, pair.second));
      state.push_back(own);
      queries.push_back(q);
      keys.push_back(k);
    }
    addParts(threads, found, /*first=*/0);
    Value ofQueries = e.mul(head.inverseNorm(found[1]), head.queryScale()),
          ofKeys = head.inverseNorm(found[2]);
    Value known = e.mul(found[0], e.mul(ofKeys, decay));
    Value v = loadChannel(column, 2 * dk);
    Value change = e.mul(e.sub(v, known), e.mul(share, ofKeys));
    SmallVector<Value> made(1, e.f32(0.0));
    for (auto [own, q, k] : llvm::zip(state, queries, keys)) {
      own = e.add(e.mul(own, decay), e.mul(k, change));
      made[0] = e.add(made[0], e.mul(q, own));
    }
    addParts(threads, made, /*first=*/3);
    Value isFirstPart = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                              e.threadY, e.index(0));
    e.ifThen(arith::AndIOp::create(b, loc, isColumn, isFirstPart), [&] {
      e.storeResult(e.mul(made[0], ofQueries), {row, e.index(0), column});
    });
    return state;
  }

  /// Adds up what the parts of a column have found, each number in memory of
  /// its own, [parts][columns], from number `first` on.
  void addParts(const DeltaThreads &threads, MutableArrayRef<Value> found,
                int64_t first) {
    if (threads.parts == 1)
      return;
    auto placeOf = [&](size_t number, Value part) {
      const int64_t before =
          (first + static_cast<int64_t>(number)) * threads.parts;
      return e.add(
          e.mul(e.add(part, e.index(before)), e.index(threads.columns)),
          e.threadX);
    };
    for (auto [number, value] : llvm::enumerate(found))
      memref::StoreOp::create(b, loc, value, sums, placeOf(number, e.threadY));
    e.barrier();
    for (auto [number, value] : llvm::enumerate(found)) {
      value = Value();
      for (int64_t part = 0; part < threads.parts; ++part) {
        Value each = memref::LoadOp::create(b, loc, sums,
                                            placeOf(number, e.index(part)));
        value = value ? e.add(value, each) : each;
      }
    }
  }

  void step(Value row, Value isFirst) {
    const int64_t dk = op.getKeyDim(), dv = op.getValueDim();
    auto [decay, share] = head.gatesOf(row);
    e.forThreads(e.index(dv), [&, decay = decay, share = share](Value column) {
      auto placeOf = [&](Value i) {
        return e.add(head.matrix, e.add(e.mul(i, e.index(dv)), column));
      };
      Value zero = e.f32(0.0);
      auto known = e.loop(
          e.index(0), e.index(dk), e.index(1), {zero, zero, zero},
          [&](Value i, ValueRange sums) {
            Value q = loadChannel(i, 0), k = loadChannel(i, dk);
            return SmallVector<Value>{
                e.add(sums[0], e.mul(k, loadState(placeOf(i), isFirst))),
                e.add(sums[1], e.mul(q, q)), e.add(sums[2], e.mul(k, k))};
          });
      Value ofQueries =
                e.mul(head.inverseNorm(known.getResult(1)), head.queryScale()),
            ofKeys = head.inverseNorm(known.getResult(2));
      Value found = e.mul(known.getResult(0), e.mul(ofKeys, decay));
      Value v = loadChannel(column, 2 * dk);
      Value change = e.mul(e.sub(v, found), e.mul(share, ofKeys));
      auto made = e.loop(e.index(0), e.index(dk), e.index(1), zero,
                         [&](Value i, ValueRange sum) {
                           Value next = e.add(
                               e.mul(loadState(placeOf(i), isFirst), decay),
                               e.mul(loadChannel(i, dk), change));
                           storeState(next, placeOf(i));
                           return SmallVector<Value>{
                               e.add(sum[0], e.mul(loadChannel(i, 0), next))};
                         });
      e.storeResult(e.mul(made.getResult(0), ofQueries),
                    {row, e.index(0), column});
    });
  }

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  GatedDeltaOp op;
  DeltaHead head;
  Value cache;    // the buffer, of f32
  Value channels; // workgroup memory: of the row, behind the convolution
  Value sums;     // of parts, see addParts; null: there is one
};

} // namespace

void mlir::kf::emitGPUDelta(GPUEmitter &emitter) {
  DeltaEmitter(emitter).emit();
}
