//===- DeltaEmitter.cpp - Linear attention by the gated delta rule --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A workgroup walks the rows of a sequence for one head. What a thread reads of
// the state it has written itself: columns of the matrix, and channels of the
// rows behind it. A row's channels go through workgroup memory.
//
//===----------------------------------------------------------------------===//

#include "../../Common/DeltaFormulas.h"
#include "../GPUEmitter.h"

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
};

} // namespace

void mlir::kf::emitGPUDelta(GPUEmitter &emitter) {
  DeltaEmitter(emitter).emit();
}
