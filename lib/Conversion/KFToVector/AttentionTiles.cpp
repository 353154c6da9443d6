//===- AttentionTiles.cpp - Attention's products by tiles of AMX ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

/// Sums of tiles at a time: with two operands of a product there are eight
/// registers.
static constexpr int64_t mostSums = 4;

/// Bits of a bf16 that is infinite; those of a NaN are more.
static constexpr int64_t infiniteBits = 0x7f80;

AttentionTiles::AttentionTiles(KernelEmitter &emitter, CacheMemory &pages,
                               KeyTile &tile, int64_t dim, int64_t rows,
                               bool isOfBlocks)
    : e(emitter), b(e.b), loc(e.loc), pages(pages), tile(tile), code(emitter),
      dim(dim), isOfBlocks(isOfBlocks) {
  Type half = b.getBF16Type();
  queries = e.scratch({rows, dim}, half);
  weights = e.scratch({amxTile, tile.size()}, half);
  keys = e.scratch({keyTiles(), columnSteps(), amxTile, step}, half);
  values = e.scratch({columnTiles(), keySteps(), amxTile, step}, half);
  largest = e.scratch({step}, b.getI16Type());
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void AttentionTiles::storeQuery(Value values, Value row, Value column) {
  vector::StoreOp::create(b, loc, e.narrow(values, b.getBF16Type()), queries,
                          ValueRange{row, column});
}

void AttentionTiles::storeWeights(Value values, Value row, Value key) {
  vector::StoreOp::create(b, loc, e.narrow(values, b.getBF16Type()), weights,
                          ValueRange{row, key});
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

Value AttentionTiles::pairsOf(Value even, Value odd) {
  Type half = b.getBF16Type();
  return vector::InterleaveOp::create(b, loc, e.narrow(even, half),
                                      e.narrow(odd, half));
}

void AttentionTiles::unpack() {
  unpackKeys();
  unpackValues();
}

/// Keys lie as tiles want them but for two elements of a key next to one
/// another. The tile's values are next, and asked for meanwhile.
void AttentionTiles::unpackKeys() {
  e.loop(e.index(columnSteps()), [&](Value number) {
    Value first = e.mul(number, e.index(step));
    SmallVector<Value> scales;
    if (isOfBlocks)
      scales = tile.loadKeyScales(
          arith::DivUIOp::create(b, loc, first, e.index(pages.blockSize())));
    e.loop(e.index(amxTile), [&](Value line) {
      Value column = e.add(first, e.mul(line, e.index(2)));
      tile.prefetch(tile.valuesAt(column), 2 * tile.size());
      SmallVector<Value> even = tile.loadKeys(column, scales);
      SmallVector<Value> odd = tile.loadKeys(e.add(column, e.index(1)), scales);
      for (int64_t v = 0; v < keyTiles(); ++v)
        vector::StoreOp::create(
            b, loc, pairsOf(even[v], odd[v]), keys,
            ValueRange{e.index(v), number, line, e.index(0)});
    });
  });
}

void AttentionTiles::unpackValues() {
  VectorType bits = e.vectorType(step, b.getI16Type());
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(bits));
  auto loop = e.loop(
      e.index(0), e.index(tile.size() / 2), e.index(1), none,
      [&](Value pair, ValueRange args) {
        Value even = e.mul(pair, e.index(2)), odd = e.add(even, e.index(1));
        Value number = arith::DivUIOp::create(b, loc, pair, e.index(amxTile));
        Value line = arith::RemUIOp::create(b, loc, pair, e.index(amxTile));
        tile.prefetch(tile.nextKey(even), 2 * dim);
        Value most = args[0];
        for (int64_t c = 0; c < columnTiles(); ++c) {
          Value column = e.index(c * amxTile);
          Value both = pairsOf(tile.loadValue(even, column, amxTile),
                               tile.loadValue(odd, column, amxTile));
          vector::StoreOp::create(
              b, loc, both, values,
              ValueRange{e.index(c), number, line, e.index(0)});
          most = arith::MaxUIOp::create(b, loc, most, magnitudes(both));
        }
        return SmallVector<Value>{most};
      });
  vector::StoreOp::create(b, loc, loop.getResult(0), largest, e.index(0));
}

Value AttentionTiles::magnitudes(Value pairs) {
  VectorType type = e.vectorType(step, b.getI16Type());
  Value mask = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, b.getI16IntegerAttr(0x7fff)));
  return arith::AndIOp::create(
      b, loc, vector::BitCastOp::create(b, loc, type, pairs), mask);
}

Value AttentionTiles::areFinite() {
  Value bits = vector::LoadOp::create(
      b, loc, e.vectorType(step, b.getI16Type()), largest, e.index(0));
  Value most =
      vector::ReductionOp::create(b, loc, vector::CombiningKind::MAXUI, bits);
  Value infinite =
      arith::ConstantOp::create(b, loc, b.getI16IntegerAttr(infiniteBits));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, most,
                               infinite);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void AttentionTiles::multiplyKeys(Value row, Value scores) {
  for (int64_t first = 0; first < keyTiles(); first += mostSums) {
    const int64_t count = std::min(mostSums, keyTiles() - first);
    SmallVector<Value> zeros;
    for (int64_t v = 0; v < count; ++v)
      zeros.push_back(code.zero());
    auto sums = e.loop(
        e.index(0), e.index(columnSteps()), e.index(1), zeros,
        [&](Value number, ValueRange args) {
          SmallVector<Value> acc(args);
          Value ofRows =
              code.loadLines(queries, {row, e.mul(number, e.index(step))});
          for (int64_t v = 0; v < count; ++v)
            acc[v] = code.multiply(
                acc[v], ofRows, code.load(keys, {e.index(first + v), number}));
          return acc;
        });
    for (int64_t v = 0; v < count; ++v)
      code.storeLines(sums.getResult(v), scores,
                      {e.index(0), e.index((first + v) * amxTile)});
  }
}

void AttentionTiles::addValues(Value row, Value sums) {
  for (int64_t first = 0; first < columnTiles(); first += mostSums) {
    const int64_t count = std::min(mostSums, columnTiles() - first);
    auto placeOf = [&](int64_t c) -> SmallVector<Value> {
      return {row, e.index((first + c) * amxTile)};
    };
    SmallVector<Value> inits;
    for (int64_t c = 0; c < count; ++c)
      inits.push_back(code.loadLines(sums, placeOf(c)));
    auto loop =
        e.loop(e.index(0), e.index(keySteps()), e.index(1), inits,
               [&](Value number, ValueRange args) {
                 SmallVector<Value> acc(args);
                 Value ofRows = code.loadLines(
                     weights, {e.index(0), e.mul(number, e.index(step))});
                 for (int64_t c = 0; c < count; ++c)
                   acc[c] = code.multiply(
                       acc[c], ofRows,
                       code.load(values, {e.index(first + c), number}));
                 return acc;
               });
    for (int64_t c = 0; c < count; ++c)
      code.storeLines(loop.getResult(c), sums, placeOf(c));
  }
}
