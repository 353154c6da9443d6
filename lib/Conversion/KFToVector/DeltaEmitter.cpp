//===- DeltaEmitter.cpp - Linear attention by the gated delta rule --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A workgroup walks the rows of a sequence for one head. Its matrix stays where
// it is in the cache, and each row reads it twice, in vectors along dv: for
// S^T k, and to change it and take S^T q.
//
//===----------------------------------------------------------------------===//

#include "../Common/DeltaFormulas.h"
#include "KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class DeltaEmitter {
public:
  explicit DeltaEmitter(KernelEmitter &e)
      : e(e), b(e.b), loc(e.loc), op(e.find<GatedDeltaOp>()), head(e, op),
        cache(e.memrefOf(cast<BlockArgument>(op.getCache()))),
        channels(e.scratch({op.getChannels()})),
        weights(e.scratch({op.getTaps(), op.getChannels()})) {}

  void emit() {
    for (const DeltaHead::Part &part : head.parts)
      transposeWeights(part);
    head.forRows([&](Value row, Value isFirst) {
      e.ifThen(isFirst, [&] { clearState(); });
      for (const DeltaHead::Part &part : head.parts)
        convolve(part, row);
      step(row);
    });
  }

private:
  /// The convolution's lines of a part, tap by tap, so that vectors take them.
  void transposeWeights(const DeltaHead::Part &part) {
    e.loop(e.index(part.size), [&](Value channel) {
      Value line = e.add(part.line, channel),
            place = e.add(channel, e.index(part.offset));
      for (int64_t tap = 0; tap < op.getTaps(); ++tap)
        e.store(
            e.load(op.getConvolution(), {line, e.index(0), e.index(tap)}, 0),
            weights, {e.index(tap), place});
    });
  }

  void clearState() {
    const int64_t elements = op.getCache().getType().getElements();
    e.forPieces(e.index(elements), [&](Value place, unsigned width) {
      e.store(e.splat(e.f32(0.0), width), cache, e.add(head.matrix, place));
    });
  }

  /// Row `row` of a part's channels, and what the next one looks back at.
  void convolve(const DeltaHead::Part &part, Value row) {
    const int64_t taps = op.getTaps();
    e.forPieces(e.index(part.size), [&](Value column, unsigned width) {
      Value place = e.add(column, e.index(part.offset));
      Value last = e.load(part.tensor, {row, part.head, column}, width), sum;
      for (int64_t tap = 0; tap < taps; ++tap) {
        auto before = [&](int64_t number) {
          return e.add(head.window,
                       e.add(place, e.index(number * op.getChannels())));
        };
        Value x =
            tap + 1 == taps ? last : e.loadMemref(cache, before(tap), width);
        Value weight = e.loadMemref(weights, {e.index(tap), place}, width);
        sum = sum ? e.add(sum, e.mul(x, weight)) : e.mul(x, weight);
        if (tap > 0)
          e.store(x, cache, before(tap - 1));
      }
      e.store(e.activate(ActivationKind::Silu, sum), channels, place);
    });
  }

  /// The inverse norm of the channels from `offset` on.
  Value inverseNorm(int64_t offset) {
    return head.inverseNorm(e.reduceRow(
        e.index(op.getKeyDim()), vector::CombiningKind::ADD,
        [&](Value column, unsigned width) {
          Value x =
              e.loadMemref(channels, e.add(column, e.index(offset)), width);
          return e.mul(x, x);
        }));
  }

  void step(Value row) {
    const int64_t dk = op.getKeyDim(), dv = op.getValueDim();
    Value ofQueries = e.mul(inverseNorm(0), head.queryScale()),
          ofKeys = inverseNorm(dk);
    auto [decay, share] = head.gatesOf(row);
    e.forPieces(e.index(dv), [&, decay = decay, share = share](Value column,
                                                               unsigned width) {
      auto wide = [&](Value scalar) { return e.splat(scalar, width); };
      auto placeOf = [&](Value i) {
        return e.add(head.matrix, e.add(e.mul(i, e.index(dv)), column));
      };
      auto scalar = [&](Value i, int64_t offset) {
        return wide(e.loadMemref(channels, e.add(i, e.index(offset)), 0));
      };
      auto fma = [&](Value x, Value y, Value z) -> Value {
        return vector::FMAOp::create(b, loc, x, y, z);
      };
      Value zero = wide(e.f32(0.0));
      auto known =
          e.loop(e.index(0), e.index(dk), e.index(1), zero,
                 [&](Value i, ValueRange sum) {
                   Value old = e.loadMemref(cache, placeOf(i), width);
                   return SmallVector<Value>{fma(scalar(i, dk), old, sum[0])};
                 });
      Value found = e.mul(known.getResult(0), wide(e.mul(ofKeys, decay)));
      Value v = e.loadMemref(channels, e.add(column, e.index(2 * dk)), width);
      Value change = e.mul(e.sub(v, found), wide(e.mul(share, ofKeys)));
      auto made =
          e.loop(e.index(0), e.index(dk), e.index(1), zero,
                 [&](Value i, ValueRange sum) {
                   Value old = e.loadMemref(cache, placeOf(i), width);
                   Value next =
                       fma(scalar(i, dk), change, e.mul(old, wide(decay)));
                   e.store(next, cache, placeOf(i));
                   return SmallVector<Value>{fma(scalar(i, 0), next, sum[0])};
                 });
      e.storeResult(e.mul(made.getResult(0), wide(ofQueries)),
                    {row, e.index(0), column});
    });
  }

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  GatedDeltaOp op;
  DeltaHead head;
  Value cache;    // of f32
  Value channels; // scratch [channels]: of the row, behind the convolution
  Value weights;  // scratch [taps][channels]
};

} // namespace

void mlir::kf::emitDeltaKernel(KernelEmitter &emitter) {
  DeltaEmitter(emitter).emit();
}
