//===- AppendEmitter.cpp - Keys and values into the KV cache --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows of keys and values are rounded to the cache's elements as they are
// stored. Where these lie in blocks, a row is computed whole before its first
// element is stored, for a scale is known when all of its block is.
//
//===----------------------------------------------------------------------===//

#include "PagedCache.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// The largest code of q8_0; the smallest is the negative one.
constexpr int64_t largestCode = 127;

class AppendEmitter {
public:
  explicit AppendEmitter(KernelEmitter &e)
      : e(e), b(e.b), loc(e.loc), op(e.find<KVAppendOp>()),
        type(op.getCache().getType()),
        pages(e, op.getCache(), op.getSequences(), op.getPageTable()) {}

  LogicalResult emit() {
    cache = pages.memref();
    if (type.isQuantized()) {
      if (pages.blockSize() % e.lanes != 0)
        return op.emitOpError("convert-kf-to-vector: blocks of ")
               << pages.blockSize()
               << " elements need vectors of no more lanes, found " << e.lanes;
      row = e.scratch({type.getHeadDim()});
    }
    SmallVector<Value> offsets;
    Value positions = e.sourceMemref(op.getPositions(), offsets);
    LogicalResult result = success();
    e.loop(e.sizesOf(op.getK())[0], [&](Value token) {
      e.beginToken(token);
      Value position = arith::IndexCastOp::create(
          b, loc, b.getIndexType(),
          memref::LoadOp::create(b, loc, positions, e.add(offsets[0], token)));
      pages.ifExists(pages.sequenceOf(token), position, [&](Value page) {
        Value place = remainder(position, type.getPage());
        e.loop(e.index(type.getKvHeads()), [&](Value h) {
          Value keys = e.add(page, e.mul(h, e.index(pages.headSize())));
          Value values = e.add(keys, e.index(pages.valuesOffset()));
          if (failed(storeRow(op.getK(), {token, h},
                              locate(keys, place, type.getKeyBlock()))) ||
              failed(storeRow(op.getV(), {token, h}, locate(values, place, 1))))
            result = failure();
        });
      });
    });
    return result;
  }

private:
  Value divide(Value value, int64_t by) {
    return by == 1 ? value : arith::DivUIOp::create(b, loc, value, e.index(by));
  }
  Value remainder(Value value, int64_t by) {
    return by == 1 ? e.index(0)
                   : arith::RemUIOp::create(b, loc, value, e.index(by));
  }

  /// Where a row goes: its first element, or code; `step` elements on lies the
  /// next. The same of its scales, if it has any.
  struct Place {
    Value first, firstScale;
    int64_t step;
  };

  /// That of place `place` of the head of a page that begins at `head`, with
  /// positions in blocks of `step`.
  Place locate(Value head, Value place, int64_t step) {
    Value block = divide(place, step), lane = remainder(place, step);
    Place result;
    result.step = step;
    result.first = e.add(
        head, e.add(e.mul(block, e.index(step * type.getHeadDim())), lane));
    if (type.isQuantized())
      result.firstScale =
          e.add(pages.scalesOf(head),
                e.add(e.mul(block, e.index(step * pages.scaleBytesOfRow())),
                      e.mul(lane, e.index(pages.scaleBytes))));
    return result;
  }

  LogicalResult storeRow(Value tensor, ValueRange indices, const Place &place) {
    if (!type.isQuantized())
      return e.emitRow(tensor, indices,
                       [&](Value column, unsigned width, Value values) {
                         storePiece(place, column, width, values);
                       });
    auto keep = [&](Value column, unsigned, Value values) {
      e.store(values, row, column);
    };
    if (failed(e.emitRow(tensor, indices, keep)))
      return failure();
    e.loop(e.index(pages.blocksOfRow()),
           [&](Value block) { storeBlock(place, block); });
    return success();
  }

  void storePiece(const Place &place, Value column, unsigned width,
                  Value values) {
    if (place.step == 1)
      return e.store(values, cache, e.add(place.first, column));
    for (unsigned lane = 0; lane < width; ++lane) {
      Value element = vector::ExtractOp::create(b, loc, values, lane);
      Value offset = e.mul(e.add(column, e.index(lane)), e.index(place.step));
      e.store(element, cache, e.add(place.first, offset));
    }
  }

  /// Rounds block `block` of the row in scratch to bits that are those of
  /// quantizeBlocks; a NaN goes into the scale.
  void storeBlock(const Place &place, Value block) {
    Value first = e.mul(block, e.index(pages.blockSize()));
    SmallVector<Value> columns, pieces;
    Value largest;
    for (int64_t i = 0; i < pages.blockSize(); i += e.lanes) {
      columns.push_back(e.add(first, e.index(i)));
      pieces.push_back(e.loadMemref(row, columns.back(), e.lanes));
      Value magnitude = math::AbsFOp::create(b, loc, pieces.back());
      largest = largest ? arith::MaximumFOp::create(b, loc, largest, magnitude)
                        : magnitude;
    }
    largest = vector::ReductionOp::create(
        b, loc, vector::CombiningKind::MAXIMUMF, largest);
    Value scale = arith::DivFOp::create(b, loc, largest, e.f32(largestCode));
    Value isZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                         scale, e.f32(0.0));
    Value inverse = e.select(isZero, e.f32(0.0),
                             arith::DivFOp::create(b, loc, e.f32(1.0), scale));
    pages.storeScale(
        scale, e.add(place.firstScale,
                     e.mul(block, e.index(place.step * pages.scaleBytes))));
    for (auto [column, piece] : llvm::zip(columns, pieces))
      storePiece(place, column, e.lanes,
                 round(e.mul(piece, e.splat(inverse, e.lanes))));
  }

  /// The nearest codes, halves away from zero; the smallest for NaN.
  Value round(Value x) {
    unsigned lanes = e.lanes;
    VectorType ints = e.vectorType(lanes, b.getI32Type());
    x = arith::MaxNumFOp::create(b, loc, x,
                                 e.splat(e.f32(-largestCode), lanes));
    x = arith::MinNumFOp::create(b, loc, x, e.splat(e.f32(largestCode), lanes));
    Value whole = arith::FPToSIOp::create(b, loc, ints, x);
    Value rest =
        e.sub(x, arith::SIToFPOp::create(b, loc, e.vectorType(lanes), whole));
    auto isBeyond = [&](arith::CmpFPredicate predicate, double half) -> Value {
      Value is = arith::CmpFOp::create(b, loc, predicate, rest,
                                       e.splat(e.f32(half), lanes));
      return arith::ExtUIOp::create(b, loc, ints, is);
    };
    Value up = isBeyond(arith::CmpFPredicate::OGE, 0.5);
    Value down = isBeyond(arith::CmpFPredicate::OLE, -0.5);
    Value code = arith::SubIOp::create(
        b, loc, arith::AddIOp::create(b, loc, whole, up), down);
    return arith::TruncIOp::create(b, loc, e.vectorType(lanes, b.getI8Type()),
                                   code);
  }

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  KVAppendOp op;
  KVCacheType type;
  PagedCache pages;
  Value cache; // elements, or bytes
  Value row;   // scratch [head_dim], of blocks alone
};

} // namespace

LogicalResult mlir::kf::emitAppendKernel(KernelEmitter &emitter) {
  return AppendEmitter(emitter).emit();
}
