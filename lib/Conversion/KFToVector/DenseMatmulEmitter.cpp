//===- DenseMatmulEmitter.cpp - Products with weights of floats -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each k: one vector load (and conversion) of the panel row, one broadcast
// and one fused multiply-add a row and vector. With one row, `accumulators`
// partial sums hide the latency of the additions.
//
//===----------------------------------------------------------------------===//

#include "MatmulEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class DenseMatmulEmitter : public MatmulEmitter {
public:
  using MatmulEmitter::MatmulEmitter;

private:
  void readLayout(LayoutAttr layout) override {
    interleaved = layout.getInterleave() != 0;
    unroll = std::min<int64_t>(e.schedule.getUnroll(), extent);
    sums = std::min<int64_t>(e.schedule.getAccumulators(), unroll);
  }

  LogicalResult computeRows(int64_t most) override {
    return computeFloatRows(most, x);
  }

  /// Vectors of row `k` of the panel, one a group and `lanes` columns.
  SmallVector<Value> loadPanelRow(Value p, Value k) {
    SmallVector<Value> vectors;
    Type element = cast<MemRefType>(weights.getType()).getElementType();
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t column = 0; column < panel;
           column += interleaved ? 2 * lanes : lanes) {
        SmallVector<Value> indices = {p, e.index(group), k, e.index(column)};
        if (!interleaved) {
          vectors.push_back(e.loadMemref(weights, indices, lanes));
          continue;
        }
        // Low and high halves of 32-bit lanes are f32's upper 16 bits.
        Value pairs = vector::LoadOp::create(
            b, loc, e.vectorType(2 * lanes, element), weights, indices);
        VectorType bitsType = e.vectorType(lanes, b.getI32Type());
        Value bits = vector::BitCastOp::create(b, loc, bitsType, pairs);
        auto constant = [&](uint32_t value) -> Value {
          return arith::ConstantOp::create(
              b, loc,
              DenseElementsAttr::get(
                  bitsType, b.getI32IntegerAttr(static_cast<int32_t>(value))));
        };
        Value low = arith::ShLIOp::create(b, loc, bits, constant(16));
        Value high = arith::AndIOp::create(b, loc, bits, constant(0xffff0000u));
        for (Value half : {low, high})
          vectors.push_back(
              vector::BitCastOp::create(b, loc, e.vectorType(lanes), half));
      }
    }
    return vectors;
  }

  /// Adds x[rows, k] * w[k, panel] to the partial sums `into`.
  void step(Value p, Value firstRow, Value k, MutableArrayRef<Value> into) {
    SmallVector<Value> w = loadPanelRow(p, k);
    size_t next = 0;
    for (int64_t row = 0; row < tileRows; ++row) {
      Value scalar = memref::LoadOp::create(
          b, loc, x, ValueRange{e.add(firstRow, e.index(row)), k});
      Value broadcast = e.splat(scalar, lanes);
      for (Value column : w) {
        into[next] =
            vector::FMAOp::create(b, loc, broadcast, column, into[next]);
        ++next;
      }
    }
  }

  SmallVector<Value> sumTile(Value p, Value firstRow) override {
    int64_t perSum = tileRows * vectorsPerRow();
    SmallVector<Value> zeros(perSum * sums, e.splat(e.f32(0.0), lanes));
    int64_t whole = extent / unroll * unroll;
    auto reduction = e.loop(
        e.index(0), e.index(whole), e.index(unroll), zeros,
        [&](Value k, ValueRange args) {
          SmallVector<Value> acc(args);
          for (int64_t u = 0; u < unroll; ++u)
            step(p, firstRow, e.add(k, e.index(u)),
                 MutableArrayRef<Value>(acc).slice(u % sums * perSum, perSum));
          return acc;
        });
    SmallVector<Value> acc(reduction.getResults());
    for (int64_t k = whole; k < extent; ++k)
      step(p, firstRow, e.index(k),
           MutableArrayRef<Value>(acc).take_front(perSum));
    for (int64_t sum = 1; sum < sums; ++sum)
      for (int64_t i = 0; i < perSum; ++i)
        acc[i] = e.add(acc[i], acc[sum * perSum + i]);
    acc.resize(perSum);
    return acc;
  }

  int64_t unroll = 1, sums = 1;
  bool interleaved = false;
  Value x; // scratch [rows of the workgroup tile, K + padding]
};

} // namespace

LogicalResult mlir::kf::emitMatmulKernel(KernelEmitter &emitter) {
  return DenseMatmulEmitter(emitter).emit();
}
