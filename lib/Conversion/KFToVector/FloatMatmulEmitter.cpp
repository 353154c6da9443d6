//===- FloatMatmulEmitter.cpp - Products in f32 ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FloatMatmulEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

LogicalResult FloatMatmulEmitter::computeRows(int64_t most) {
  x = e.scratch({most, rowStride(16)});
  LogicalResult result = success();
  e.loop(rows, [&](Value row) {
    result = emitRow(row, [&](Value column, unsigned, Value values) {
      e.store(values, x, {row, column});
    });
  });
  return result;
}

void FloatMatmulEmitter::unpackPanel(Value p) {
  beginUnpacking();
  e.loop(e.index(extent),
         [&](Value k) { storeUnpacked(k, loadPanelRow(p, k, {0, groups})); });
}

void FloatMatmulEmitter::beginUnpacking() {
  unpacked = e.scratch({extent, vectorsPerRow(), lanes});
}

void FloatMatmulEmitter::storeUnpacked(Value k, ArrayRef<Value> values) {
  for (int64_t v = 0; v < vectorsPerRow(); ++v)
    e.store(values[v], unpacked, {k, e.index(v), e.index(0)});
}

SmallVector<Value> FloatMatmulEmitter::loadUnpacked(Value k) {
  SmallVector<Value> vectors;
  for (int64_t v = 0; v < vectorsPerRow(); ++v)
    vectors.push_back(
        e.loadMemref(unpacked, {k, e.index(v), e.index(0)}, lanes));
  return vectors;
}

void FloatMatmulEmitter::step(Value firstRow, Value k, ArrayRef<Value> w,
                              MutableArrayRef<Value> into) {
  size_t next = 0;
  for (int64_t row = 0; row < tileRows; ++row) {
    Value scalar = memref::LoadOp::create(
        b, loc, x, ValueRange{e.add(firstRow, e.index(row)), k});
    Value broadcast = e.splat(scalar, lanes);
    for (Value column : w) {
      into[next] = vector::FMAOp::create(b, loc, broadcast, column, into[next]);
      ++next;
    }
  }
}

SmallVector<Value> FloatMatmulEmitter::sumTile(Value p, Value firstRow) {
  if (!takesGroupsInTurn())
    return sumGroups(p, firstRow, {0, groups});
  SmallVector<Value> sums;
  for (int64_t group = 0; group < groups; ++group)
    llvm::append_range(sums, sumGroups(p, firstRow, {group, 1}));
  return sums;
}

SmallVector<Value> FloatMatmulEmitter::sumGroups(Value p, Value firstRow,
                                                 Groups read) {
  int64_t unroll = std::min<int64_t>(e.schedule.getUnroll(), extent);
  int64_t sums = std::min<int64_t>(e.schedule.getAccumulators(), unroll);
  int64_t perSum = tileRows * vectorsPerRow() / groups * read.count;
  SmallVector<Value> acc(perSum * sums, e.splat(e.f32(0.0), lanes));
  auto sumFrom = [&](int64_t first, int64_t end, int64_t steps) {
    if (first == end)
      return;
    auto reduction = e.loop(
        e.index(first), e.index(end), e.index(steps), acc,
        [&](Value k, ValueRange args) {
          SmallVector<Value> into(args);
          if (prefetchesMeanwhile())
            prefetchMeanwhile(
                p, firstRow, arith::DivUIOp::create(b, loc, k, e.index(unroll)),
                llvm::divideCeil(extent, unroll));
          for (int64_t u = 0; u < steps; ++u) {
            Value at = e.add(k, e.index(u));
            step(firstRow, at,
                 unpacks() ? loadUnpacked(at) : loadPanelRow(p, at, read),
                 MutableArrayRef<Value>(into).slice(u % sums * perSum, perSum));
          }
          return into;
        });
    acc.assign(reduction.result_begin(), reduction.result_end());
  };
  int64_t whole = extent / unroll * unroll;
  sumFrom(0, whole, unroll);
  sumFrom(whole, extent, 1);
  for (int64_t sum = 1; sum < sums; ++sum)
    for (int64_t i = 0; i < perSum; ++i)
      acc[i] = e.add(acc[i], acc[sum * perSum + i]);
  acc.resize(perSum);
  return acc;
}
