//===- FloatMatmulEmitter.cpp - Products of floats ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FloatMatmulEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

void FloatMatmulEmitter::computeRows(int64_t most) {
  x = e.scratch({most, rowStride(16 * depth())}, elementType());
  e.loop(rows, [&](Value row) {
    emitRow(row, [&](Value column, unsigned, Value values) {
      e.store(values, x, {row, column});
    });
  });
}

void FloatMatmulEmitter::unpackPanel(Value p) {
  beginUnpacking();
  e.loop(e.index(extent / depth()),
         [&](Value k) { storeUnpacked(k, loadPanelRow(p, k, {0, groups})); });
}

void FloatMatmulEmitter::beginUnpacking() {
  unpacked = e.scratch({extent / depth(), vectorsPerRow(), lanes * depth()},
                       elementType());
}

void FloatMatmulEmitter::storeUnpacked(Value k, ArrayRef<Value> values) {
  for (int64_t v = 0; v < vectorsPerRow(); ++v)
    e.store(values[v], unpacked, {k, e.index(v), e.index(0)});
}

SmallVector<Value> FloatMatmulEmitter::loadUnpacked(Value k, Groups read) {
  SmallVector<Value> vectors;
  int64_t perGroup = vectorsPerRow() / groups, first = read.first * perGroup;
  for (int64_t v = first; v < first + read.count * perGroup; ++v)
    vectors.push_back(vector::LoadOp::create(
        b, loc, e.vectorType(lanes * depth(), elementType()), unpacked,
        ValueRange{k, e.index(v), e.index(0)}));
  return vectors;
}

Value FloatMatmulEmitter::broadcast(Value row, Value k) {
  if (depth() == 1)
    return e.splat(
        memref::LoadOp::create(b, loc, x, ValueRange{row, k}).getResult(),
        lanes);
  Value pair = vector::LoadOp::create(b, loc, e.vectorType(2, elementType()), x,
                                      ValueRange{row, e.mul(k, e.index(2))});
  pair =
      vector::BitCastOp::create(b, loc, e.vectorType(1, b.getI32Type()), pair);
  Value pairs =
      vector::BroadcastOp::create(b, loc, e.vectorType(lanes, b.getI32Type()),
                                  vector::ExtractOp::create(b, loc, pair, 0));
  return vector::BitCastOp::create(
      b, loc, e.vectorType(2 * lanes, elementType()), pairs);
}

Value FloatMatmulEmitter::multiplyAdd(Value x, Value w, Value sum) {
  if (depth() == 1)
    return vector::FMAOp::create(b, loc, x, w, sum);
  return LLVM::CallIntrinsicOp::create(
             b, loc, sum.getType(),
             b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
             ValueRange{sum, x, w})
      .getResult(0);
}

void FloatMatmulEmitter::step(RegisterTile tile, Value k, ArrayRef<Value> w,
                              MutableArrayRef<Value> into) {
  size_t next = 0;
  for (int64_t row = 0; row < tile.rows; ++row) {
    Value ofRow = broadcast(e.add(tile.first, e.index(row)), k);
    for (Value column : w) {
      into[next] = multiplyAdd(ofRow, column, into[next]);
      ++next;
    }
  }
}

SmallVector<Value> FloatMatmulEmitter::sumTile(Value p, RegisterTile tile) {
  if (!takesGroupsInTurn())
    return sumGroups(p, tile, {0, groups});
  return sumInTurn(
      tile, [&](int64_t group) { return sumGroups(p, tile, {group, 1}); });
}

/// Sums that are added up in the end, so that an addition waits for none
/// before: a smaller tile has as many vectors of them as the schedule's has, or
/// fewer.
int64_t FloatMatmulEmitter::partialSums(RegisterTile tile,
                                        int64_t unroll) const {
  return std::clamp<int64_t>(
      e.schedule.getAccumulators() * tileRows / tile.rows, 1, unroll);
}

SmallVector<Value> FloatMatmulEmitter::sumGroups(Value p, RegisterTile tile,
                                                 Groups read) {
  int64_t count = extent / depth();
  int64_t unroll = std::min<int64_t>(e.schedule.getUnroll(), count);
  int64_t steps = llvm::divideCeil(count, unroll), turns = groups / read.count;
  int64_t sums = partialSums(tile, unroll);
  int64_t perSum = tile.rows * vectorsPerRow() / groups * read.count;
  SmallVector<Value> acc(perSum * sums, e.splat(e.f32(0.0), lanes));
  auto sumFrom = [&](int64_t first, int64_t end, int64_t atOnce) {
    if (first == end)
      return;
    auto reduction = e.loop(
        e.index(first), e.index(end), e.index(atOnce), acc,
        [&](Value k, ValueRange args) {
          SmallVector<Value> into(args);
          if (prefetchesMeanwhile())
            prefetchMeanwhile(
                p, tile,
                e.add(arith::DivUIOp::create(b, loc, k, e.index(unroll)),
                      e.index(read.first / read.count * steps)),
                turns * steps);
          for (int64_t u = 0; u < atOnce; ++u) {
            Value at = e.add(k, e.index(u));
            step(tile, at,
                 unpacks() ? loadUnpacked(at, read) : loadPanelRow(p, at, read),
                 MutableArrayRef<Value>(into).slice(u % sums * perSum, perSum));
          }
          return into;
        });
    acc.assign(reduction.result_begin(), reduction.result_end());
  };
  int64_t whole = count / unroll * unroll;
  sumFrom(0, whole, unroll);
  sumFrom(whole, count, 1);
  for (int64_t sum = 1; sum < sums; ++sum)
    for (int64_t i = 0; i < perSum; ++i)
      acc[i] = e.add(acc[i], acc[sum * perSum + i]);
  acc.resize(perSum);
  return acc;
}
