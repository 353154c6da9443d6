//===- RowQuantizer.cpp - Rows in 8 bits ----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowQuantizer.h"

#include "../Common/BlockRounding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Elements that share a scale.
constexpr int64_t unit = ::kf::PackedBlock::unit;

class RowQuantizer {
public:
  RowQuantizer(KernelEmitter &e, Value x, ValueRange row, Value number,
               int64_t group, const QuantizedRows &into)
      : e(e), b(e.b), loc(e.loc), lanes(e.lanes), x(x), row(row), group(group),
        into(into), target(e.add(into.firstRow, number)),
        factors(e.scratch({unitsAtOnce()})),
        masks(e.scratch({unitsAtOnce()}, b.getI32Type())) {}

  /// The row: x = scale * code, |code| <= 127.
  void quantize(int64_t units) {
    int64_t count = unitsAtOnce(), whole = units / count * count;
    if (whole > 0)
      e.loop(e.index(0), e.index(whole), e.index(count), {},
             [&](Value u, ValueRange) {
               quantizeUnits(u, count);
               return SmallVector<Value>();
             });
    int64_t at = whole;
    for (count /= 2; count > 0; count /= 2) {
      if (((units - whole) & count) == 0)
        continue;
      quantizeUnits(e.index(at), count);
      at += count;
    }
  }

private:
  using Combine = function_ref<Value(Value, Value)>;

  /// As many as have 16 vectors of elements: half of the registers, or all.
  int64_t unitsAtOnce() const { return lanes / 2; }
  VectorType ints(int64_t width) { return e.vectorType(width, b.getI32Type()); }
  Value splatInt(int64_t width, int32_t value) {
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(ints(width), b.getI32IntegerAttr(value)));
  }
  Value bitcast(VectorType type, Value value) {
    return vector::BitCastOp::create(b, loc, type, value);
  }

  /// `count` units from unit `u` on; a power of two.
  void quantizeUnits(Value u, int64_t count) {
    prefetch(u, count);
    SmallVector<Value> values, largest;
    // As integers, magnitudes are in the same order, and a NaN is the largest.
    auto larger = [&](Value one, Value other) -> Value {
      return arith::MaxSIOp::create(b, loc, one, other);
    };
    Value magnitude = splatInt(lanes, 0x7fffffff);
    for (int64_t at = 0; at < count * unit; at += lanes) {
      values.push_back(e.load(x, indicesAt(row, column(u, at)), lanes));
      Value bits = arith::AndIOp::create(
          b, loc, bitcast(ints(lanes), values.back()), magnitude);
      if (at % unit == 0)
        largest.push_back(bits);
      else
        largest.back() = larger(largest.back(), bits);
    }
    Value most = bitcast(e.vectorType(count), fold(largest, larger));
    RowScale scale = rowScale(e, most);
    vector::StoreOp::create(b, loc, scale.scale, into.scales,
                            ValueRange{target, u});
    Value mask =
        e.select(scale.isFinite, splatInt(count, -1), splatInt(count, 0));
    Value zero = e.index(0);
    vector::StoreOp::create(b, loc, scale.inverse, factors, zero);
    vector::StoreOp::create(b, loc, mask, masks, zero);
    round(u, count, values);
  }

  /// Prefetches as many elements of an argument as the units have, behind them:
  /// in the next page where it matters, before which hardware stops.
  void prefetch(Value u, int64_t count) {
    constexpr int64_t aheadBytes = 4096, lineBytes = 64;
    SmallVector<Value> at;
    Value memref = e.sourceMemref(x, at);
    if (!memref)
      return;
    int64_t bits = cast<MemRefType>(memref.getType()).getElementTypeBitWidth();
    for (auto [offset, index] : llvm::zip(at, row))
      offset = e.add(offset, index);
    Value first = e.add(at.back(), column(u, 8 * aheadBytes / bits));
    for (int64_t bytes = 0; bytes < count * unit * bits / 8;
         bytes += lineBytes) {
      at.back() = e.add(first, e.index(8 * bytes / bits));
      memref::PrefetchOp::create(b, loc, memref, at, /*isWrite=*/false,
                                 /*localityHint=*/3, /*isDataCache=*/true);
    }
  }

  /// Codes of the units' `values`, and the sums of their groups.
  void round(Value u, int64_t count, ArrayRef<Value> values) {
    auto sum = [&](Value one, Value other) -> Value {
      return arith::AddIOp::create(b, loc, one, other);
    };
    SmallVector<Value> sums;
    for (auto [i, value] : llvm::enumerate(values)) {
      int64_t at = i * lanes;
      Value bits = roundedBits(value, e.index(at / unit));
      Value bytes = arith::TruncIOp::create(
          b, loc, e.vectorType(lanes, b.getI8Type()), bits);
      vector::StoreOp::create(b, loc, bytes, into.codes,
                              ValueRange{target, column(u, at)});
      if (at % group == 0)
        sums.push_back(bits);
      else
        sums.back() = sum(sums.back(), bits);
    }
    Value first = e.mul(u, e.index(unit / group));
    auto base = static_cast<uint32_t>(group) * kIntegerBaseBits;
    Value less =
        arith::SubIOp::create(b, loc, fold(sums, sum),
                              splatInt(static_cast<int64_t>(sums.size()),
                                       static_cast<int32_t>(base)));
    vector::StoreOp::create(b, loc, less, into.sums, ValueRange{target, first});
  }

  /// kIntegerBaseBits and the code of each of the `value`s of unit `number` of
  /// those at once: adding kIntegerBase rounds to the nearest integer, even
  /// ones of two. Zeros where the unit is not finite, for NaN stays NaN. The
  /// mask also keeps the sum apart from the product, which is rounded before.
  Value roundedBits(Value value, Value number) {
    auto onLanes = [&](Value memref) {
      return e.splat(memref::LoadOp::create(b, loc, memref, number), lanes);
    };
    Value scaled = e.mul(value, onLanes(factors));
    Value finite = arith::AndIOp::create(b, loc, bitcast(ints(lanes), scaled),
                                         onLanes(masks));
    Value rounded = e.add(bitcast(e.vectorType(lanes), finite),
                          e.splat(e.f32(kIntegerBase), lanes));
    return bitcast(ints(lanes), rounded);
  }

  Value column(Value u, int64_t at) {
    return e.add(e.mul(u, e.index(unit)), e.index(at));
  }

  /// One lane for each of the vectors, a power of two of them and no more than
  /// they have lanes: what `combine` makes of all lanes of the vector.
  Value fold(ArrayRef<Value> of, Combine combine) {
    SmallVector<Value> vectors(of);
    // Lanes of a vector that are still apart.
    for (int64_t apart = lanes; apart > 1; apart /= 2) {
      SmallVector<Value> next;
      int64_t both = std::min<int64_t>(vectors.size(), 2);
      for (size_t i = 0; i < vectors.size(); i += both)
        next.push_back(foldHalves(vectors[i], vectors[i + both - 1], both,
                                  apart, combine));
      vectors = next;
    }
    return vectors.front();
  }

  /// Combines both halves of each run of `apart` lanes of `one`, and behind
  /// them of `other`, where `count` is 2.
  Value foldHalves(Value one, Value other, int64_t count, int64_t apart,
                   Combine combine) {
    int64_t all = count * cast<VectorType>(one.getType()).getNumElements();
    SmallVector<int64_t> lower, upper;
    for (int64_t lane = 0; lane < all; ++lane)
      (lane % apart < apart / 2 ? lower : upper).push_back(lane);
    auto shuffle = [&](ArrayRef<int64_t> mask) -> Value {
      return vector::ShuffleOp::create(b, loc, one, other, mask);
    };
    return combine(shuffle(lower), shuffle(upper));
  }

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  int64_t lanes;
  Value x;
  SmallVector<Value> row; // of x
  int64_t group;
  const QuantizedRows &into;
  Value target;         // the row of `into`
  Value factors, masks; // of the units at once: what makes codes, and all bits
};

} // namespace

void mlir::kf::quantizeRow(KernelEmitter &e, Value x, ValueRange row,
                           Value number, int64_t group,
                           const QuantizedRows &into) {
  // What is prepared holds in the body of the loop over rows alone.
  bool isPrepared = !e.isLoadable(x);
  e.prepareRow(x, row);
  int64_t extent = cast<RankedTensorType>(x.getType()).getShape().back();
  RowQuantizer(e, x, row, number, group, into).quantize(extent / unit);
  if (isPrepared)
    e.undefine(x);
}

void mlir::kf::emitQuantizeRowsKernel(KernelEmitter &e) {
  auto op = e.find<QuantizeRowsOp>();
  QuantizedRows rows = {e.resultStorage(0), e.resultStorage(1),
                        e.resultStorage(2), e.tileOffsets()[0]};
  e.loop(e.sizesOf(op.getX())[0], [&](Value row) {
    quantizeRow(e, op.getX(), row, row, op.getGroup(), rows);
  });
}
