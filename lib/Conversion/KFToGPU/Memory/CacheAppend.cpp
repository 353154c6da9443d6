//===- CacheAppend.cpp - Keys and values into the KV cache ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads share the elements of a token's heads; of a cache of blocks, a thread
// rounds a block. Where heads are normalized, one head follows another, for its
// statistics take all threads. Elements that need no others are read while the
// token's page is looked up.
//
//===----------------------------------------------------------------------===//

#include "../../Common/BlockRounding.h"
#include "CacheBuffer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class AppendEmitter {
public:
  explicit AppendEmitter(GPUEmitter &e)
      : e(e), b(e.b), loc(e.loc), op(e.find<KVAppendOp>()),
        type(op.getCache().getType()),
        cache(e, op.getCache(), op.getSequences(), op.getPageTable()) {}

  void emit() {
    const bool readsFirst = !cache.isQuantized() && e.isOneBatch(elements()) &&
                            e.isLoadable(op.getK()) && e.isLoadable(op.getV());
    e.loop(e.sizesOf(op.getK())[0], [&](Value token) {
      Value position = arith::IndexCastOp::create(
          b, loc, b.getIndexType(), e.load(op.getPositions(), token, 0));
      Value sequence = cache.sequenceOf(token);
      if (readsFirst)
        readHeads(token);
      // All threads read the same, so all or none of them come in.
      cache.ifExists(sequence, position, [&](Value page) {
        Value place =
            arith::RemUIOp::create(b, loc, position, e.index(type.getPage()));
        if (readsFirst)
          return storeElements(page, place);
        storeHeads(op.getK(), token, page, place);
        storeHeads(op.getV(), token, e.add(page, e.index(cache.valuesOffset())),
                   place);
      });
    });
  }

private:
  /// All elements of the heads of a token.
  Value elements() { return e.index(type.getKvHeads() * type.getHeadDim()); }

  /// Reads the thread's elements of row `token` of K and V.
  void readHeads(Value token) {
    batch = e.wholeBatch(elements());
    places.clear();
    for (Value number : batch.numbers) {
      Value columns = e.index(type.getHeadDim());
      Place &place = places.emplace_back();
      place.head = arith::DivUIOp::create(b, loc, number, columns);
      place.column = arith::RemUIOp::create(b, loc, number, columns);
    }
    for (Value tensor : {op.getK(), op.getV()})
      for (Place &place : places)
        place.values.push_back(
            e.load(tensor, {token, place.head, place.column}, 0));
    // Else compilers move what is read to where it is stored.
    e.barrier();
  }

  /// Stores what readHeads() has read.
  void storeElements(Value page, Value inPage) {
    for (auto [place, isInside] : llvm::zip(places, batch.isInside)) {
      auto store = [&, place = place] {
        Value head = e.add(page, e.mul(place.head, e.index(cache.headSize())));
        for (Value value : place.values) {
          cache.store(value, cache.locate(head, inPage), place.column);
          head = e.add(head, e.index(cache.valuesOffset()));
        }
      };
      if (isInside)
        e.ifThen(isInside, store);
      else
        store();
    }
  }

  /// Stores the heads of `tensor`'s row `token`, of which the first lies at
  /// `page`.
  void storeHeads(Value tensor, Value token, Value page, Value place) {
    auto rowOf = [&](Value head) {
      return cache.locate(e.add(page, e.mul(head, e.index(cache.headSize()))),
                          place);
    };
    // What a thread stores at once: an element, or a block.
    int64_t parts =
        cache.isQuantized() ? cache.blocksOfRow() : type.getHeadDim();
    auto storePart = [&](Value head, Value part) {
      auto element = [&](Value column) {
        return e.load(tensor, {token, head, column}, 0);
      };
      if (cache.isQuantized())
        storeBlock(element, rowOf(head), part);
      else
        cache.store(element(part), rowOf(head), part);
    };
    if (e.isLoadable(tensor)) {
      e.forThreads(e.index(type.getKvHeads() * parts), [&](Value i) {
        storePart(arith::DivUIOp::create(b, loc, i, e.index(parts)),
                  arith::RemUIOp::create(b, loc, i, e.index(parts)));
      });
      return;
    }
    e.loop(e.index(type.getKvHeads()), [&](Value head) {
      e.prepareRow(tensor, {token, head});
      e.forThreads(e.index(parts), [&](Value part) { storePart(head, part); });
    });
  }

  /// Rounds block `block` of a row to bits that are those of quantizeBlocks;
  /// what they do not hold makes the scale a NaN.
  void storeBlock(function_ref<Value(Value)> element, const CacheRow &row,
                  Value block) {
    Value first = e.mul(block, e.index(cache.blockSize()));
    Value size = e.index(cache.blockSize());
    auto magnitudes =
        e.loop(e.index(0), size, e.index(1), e.f32(0.0),
               [&](Value i, ValueRange largest) {
                 Value magnitude =
                     math::AbsFOp::create(b, loc, element(e.add(first, i)));
                 return SmallVector<Value>{
                     arith::MaximumFOp::create(b, loc, largest[0], magnitude)};
               });
    auto [scale, inverse] = codeScale(e, magnitudes.getResult(0));
    cache.storeScale(scale, row, block);
    e.loop(size, [&, inverse = inverse](Value i) {
      Value column = e.add(first, i);
      cache.storeCode(roundToCodes(e, e.mul(element(column), inverse)), row,
                      column);
    });
  }

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  KVAppendOp op;
  KVCacheType type;
  CacheBuffer cache;

  /// An element of a thread, of K and of V.
  struct Place {
    Value head, column;
    SmallVector<Value> values;
  };
  GPUEmitter::Batch batch;
  SmallVector<Place> places;
};

} // namespace

void mlir::kf::emitGPUAppend(GPUEmitter &emitter) {
  AppendEmitter(emitter).emit();
}
