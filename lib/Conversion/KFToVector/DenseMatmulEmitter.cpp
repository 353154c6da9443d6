//===- DenseMatmulEmitter.cpp - Products with weights of floats -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Panels of f32, f16 or bf16, the latter mostly interleaved so that one load
// holds two vectors, whose elements are halves of 32-bit lanes: columns of one
// row of the panel. Products of pairs take halves from two rows instead.
//
//===----------------------------------------------------------------------===//

#include "FloatMatmulEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class DenseMatmulEmitter : public FloatMatmulEmitter {
public:
  using FloatMatmulEmitter::FloatMatmulEmitter;

private:
  void readLayout(LayoutAttr layout) override {
    interleaved = layout.getInterleave() != 0;
    isFloat8 = isa<Float8E4M3FNType>(
        cast<RankedTensorType>(op.getW().getType()).getElementType());
  }

  SmallVector<Value> loadPanelRow(Value p, Value k, Groups read) override {
    if (depth() == 2)
      return loadPairs(p, k, read);
    SmallVector<Value> vectors;
    Type element = cast<MemRefType>(weights.getType()).getElementType();
    for (int64_t group = read.first; group < read.first + read.count; ++group) {
      prefetch(p, group, k, element.getIntOrFloatBitWidth() / 8);
      for (int64_t column = 0; column < panel;
           column += interleaved ? 2 * lanes : lanes) {
        SmallVector<Value> indices = {p, e.index(group), k, e.index(column)};
        if (!interleaved) {
          Value stored = e.loadMemref(weights, indices, lanes);
          vectors.push_back(isFloat8 ? e.widenFloat8(stored) : stored);
          continue;
        }
        // Low and high halves of 32-bit lanes are f32's upper 16 bits.
        Value bits = loadHalves(indices);
        for (Value half : {lowerAsFloat(bits), upperAsFloat(bits)})
          vectors.push_back(
              vector::BitCastOp::create(b, loc, e.vectorType(lanes), half));
      }
    }
    return vectors;
  }

  /// Vectors of pairs: columns of two rows, of one half of their lanes where
  /// these are interleaved; the first row's are in the lower half.
  SmallVector<Value> loadPairs(Value p, Value k, Groups read) {
    SmallVector<Value> vectors;
    Value first = e.mul(k, e.index(2)), next = e.add(first, e.index(1));
    for (int64_t group = read.first; group < read.first + read.count; ++group) {
      for (Value row : {first, next})
        prefetch(p, group, row, /*elementBytes=*/2);
      auto add = [&](Value pairs) {
        vectors.push_back(vector::BitCastOp::create(
            b, loc, e.vectorType(2 * lanes, b.getBF16Type()), pairs));
      };
      for (int64_t column = 0; column < panel;
           column += interleaved ? 2 * lanes : lanes) {
        SmallVector<Value> even = {p, e.index(group), first, e.index(column)};
        SmallVector<Value> odd = {p, e.index(group), next, e.index(column)};
        if (interleaved)
          llvm::for_each(pairRows(loadHalves(even), loadHalves(odd)), add);
        else
          add(vector::InterleaveOp::create(b, loc, loadColumns(even),
                                           loadColumns(odd)));
      }
    }
    return vectors;
  }

  /// A vector of neighbouring columns, as they are stored.
  Value loadColumns(ValueRange indices) {
    return vector::LoadOp::create(b, loc, e.vectorType(lanes, b.getBF16Type()),
                                  weights, indices);
  }

  /// Prefetches as many lines as row `k` of the panel has, of rows behind it.
  void prefetch(Value p, int64_t group, Value k, int64_t elementBytes) {
    int64_t rowBytes = panel * elementBytes;
    for (auto [ahead, locality] : prefetches()) {
      Value row = e.add(k, e.index(llvm::divideCeil(ahead, rowBytes)));
      for (int64_t at = 0; at < rowBytes; at += 64)
        memref::PrefetchOp::create(
            b, loc, weights,
            ValueRange{p, e.index(group), row, e.index(at / elementBytes)},
            /*isWrite=*/false, locality, /*isDataCache=*/true);
    }
  }

  bool interleaved = false, isFloat8 = false;
};

} // namespace

void mlir::kf::emitMatmulKernel(KernelEmitter &emitter) {
  DenseMatmulEmitter(emitter).emit();
}
