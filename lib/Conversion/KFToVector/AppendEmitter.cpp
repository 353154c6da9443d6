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

#include "../Common/BlockRounding.h"
#include "CacheMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class AppendEmitter {
public:
  explicit AppendEmitter(KernelEmitter &e)
      : e(e), b(e.b), loc(e.loc), op(e.find<KVAppendOp>()),
        type(op.getCache().getType()),
        pages(e, op.getCache(), op.getSequences(), op.getPageTable()) {}

  void emit() {
    cache = pages.memref();
    if (type.isQuantized())
      row = e.scratch({type.getHeadDim()});
    SmallVector<Value> offsets;
    Value positions = e.sourceMemref(op.getPositions(), offsets);
    e.loop(e.sizesOf(op.getK())[0], [&](Value token) {
      e.beginToken(token);
      Value position = arith::IndexCastOp::create(
          b, loc, b.getIndexType(),
          memref::LoadOp::create(b, loc, positions, e.add(offsets[0], token)));
      pages.ifExists(pages.sequenceOf(token), position, [&](Value page) {
        Value place =
            arith::RemUIOp::create(b, loc, position, e.index(type.getPage()));
        e.loop(e.index(type.getKvHeads()), [&](Value h) {
          Value keys = e.add(page, e.mul(h, e.index(pages.headSize())));
          Value values = e.add(keys, e.index(pages.valuesOffset()));
          storeRow(op.getK(), {token, h},
                   locate(keys, place, type.getKeyBlock()));
          storeRow(op.getV(), {token, h}, locate(values, place, 1));
        });
      });
    });
  }

private:
  /// Where a row goes that is at place `place` of the head at `head`.
  CacheRow locate(Value head, Value place, int64_t step) {
    return locateCacheRow(e, pages, type, head, place, step);
  }

  void storeRow(Value tensor, ValueRange indices, const CacheRow &place) {
    if (!type.isQuantized())
      return e.emitRow(tensor, indices,
                       [&](Value column, unsigned width, Value values) {
                         storePiece(place, column, width, values);
                       });
    auto keep = [&](Value column, unsigned, Value values) {
      e.store(values, row, column);
    };
    e.emitRow(tensor, indices, keep);
    e.loop(e.index(pages.blocksOfRow()),
           [&](Value block) { storeBlock(place, block); });
  }

  void storePiece(const CacheRow &place, Value column, unsigned width,
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
  /// quantizeBlocks; what they do not hold makes the scale a NaN.
  void storeBlock(const CacheRow &place, Value block) {
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
    auto [scale, inverse] = codeScale(e, largest);
    pages.storeScale(
        scale, e.add(place.firstScale,
                     e.mul(block, e.index(place.step * pages.scaleBytes))));
    for (auto [column, piece] : llvm::zip(columns, pieces))
      storePiece(place, column, e.lanes,
                 round(e.mul(piece, e.splat(inverse, e.lanes))));
  }

  Value round(Value x) {
    return arith::TruncIOp::create(b, loc, e.vectorType(e.lanes, b.getI8Type()),
                                   roundToCodes(e, x));
  }

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  KVAppendOp op;
  KVCacheType type;
  CacheMemory pages;
  Value cache; // elements, or bytes
  Value row;   // scratch [head_dim], of blocks alone
};

} // namespace

void mlir::kf::emitAppendKernel(KernelEmitter &emitter) {
  AppendEmitter(emitter).emit();
}
