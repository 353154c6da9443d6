//===- RowRange.cpp - Rows past the range of f16 --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowRange.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kf;

/// Scaled rows are below 2^15: 32 of their elements, which some products add
/// up, are below 2^20.
static constexpr int64_t largestExponent = 14;
/// Of an exponent in the bits of an f32.
static constexpr int64_t bias = 127, significandBits = 23;

RowRange::RowRange(GPUEmitter &emitter, int64_t rows)
    : e(emitter), b(e.b), loc(e.loc), rows(rows),
      largest(rows > 0 ? e.workgroupMemory(rows, b.getI32Type()) : Value()),
      // What lies behind it begins at a multiple of 16 bytes.
      flag(e.workgroupMemory(4, b.getI32Type())) {}

//===----------------------------------------------------------------------===//
// Whether
//===----------------------------------------------------------------------===//

void RowRange::reset() {
  e.onFirstThread(
      [&] { memref::StoreOp::create(b, loc, e.word(0), flag, e.index(0)); });
}

void RowRange::noteIfOdd(ValueRange sums, function_ref<void()> note) {
  // What is not finite makes a NaN of 0.
  Value zero = e.f32(0.0), odd = zero;
  for (Value sum : sums)
    odd = math::FmaOp::create(b, loc, sum, zero, odd);
  Value isOdd =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, odd, zero);
  e.ifThen(isOdd, note);
}

void RowRange::check(ValueRange sums) {
  noteIfOdd(sums, [&] {
    memref::StoreOp::create(b, loc, e.word(1), flag, e.index(0));
  });
}

void RowRange::checkForCluster(ValueRange sums) {
  if (!e.part)
    return check(sums);
  noteIfOdd(sums, [&] {
    WarpOps code(e);
    for (Value own : code.inEachPart(code.pointerTo(flag)))
      LLVM::StoreOp::create(b, loc, e.word(1), own);
  });
}

Value RowRange::isNoted() {
  Value noted = memref::LoadOp::create(b, loc, flag, e.index(0));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, noted,
                               e.word(0));
}

SmallVector<Value>
RowRange::unlessNoted(ValueRange results,
                      function_ref<SmallVector<Value>()> again) {
  e.barrier();
  Value isOdd = isNoted();
  const bool hasResults = !results.empty();
  auto branch = scf::IfOp::create(b, loc, results.getTypes(), isOdd,
                                  /*addThenBlock=*/true,
                                  /*addElseBlock=*/hasResults);
  OpBuilder::InsertionGuard guard(b);
  if (hasResults) {
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, results);
  }
  b.setInsertionPointToStart(branch.thenBlock());
  // What is computed from the number of a thread is computed anew, or it would
  // take registers all the while.
  Value thread = std::exchange(e.thread, WarpOps(e).sameNumber(e.thread));
  SmallVector<Value> scaled = again();
  e.thread = thread;
  scf::YieldOp::create(b, loc, scaled);
  return SmallVector<Value>(branch.getResults());
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// A magnitude, as bits (i32) that compare as it does.
static Value magnitudeOf(GPUEmitter &e, Value element) {
  Value bits = arith::BitcastOp::create(e.b, e.loc, e.b.getI32Type(), element);
  return arith::AndIOp::create(e.b, e.loc, bits, e.word(0x7fffffff));
}

/// Bits of an infinite f32.
static constexpr int64_t infinity = 0x7f800000;

void RowRange::checkBits(ValueRange sums) {
  Value most = e.word(0);
  for (Value sum : sums)
    most = arith::MaxUIOp::create(b, loc, most, magnitudeOf(e, sum));
  Value isOdd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, most,
                                      e.word(infinity));
  e.ifThen(isOdd, [&] {
    memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::ori, e.word(1),
                                flag, e.index(0));
  });
}

void RowRange::findByThreads(
    Value count, int64_t parts,
    function_ref<SmallVector<Value>(Value row, Value part)> elements) {
  e.forThreads(e.index(rows), [&](Value row) {
    memref::StoreOp::create(b, loc, e.word(0), largest, row);
  });
  e.barrier();
  e.forThreads(e.scaled(count, parts), [&](Value number) {
    Value row = e.div(number, parts), most = e.word(0);
    for (Value element : elements(row, e.rem(number, parts)))
      most = arith::MaxUIOp::create(b, loc, most, magnitudeOf(e, element));
    memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::maxu, most,
                                largest, row);
  });
  e.barrier();
}

/// Warps have parts of rows, whose elements lanes ask for several at a time.
void RowRange::find(Value count, int64_t extent,
                    function_ref<Value(Value row, Value column)> element) {
  constexpr int64_t lanes = 32, atOnce = 8;
  const int64_t warps = e.shape.threadCount / lanes;
  const int64_t parts = llvm::divideCeil(warps, rows);
  const int64_t stride = parts * lanes;
  WarpOps code(e);
  e.forThreads(e.index(rows), [&](Value row) {
    memref::StoreOp::create(b, loc, e.word(0), largest, row);
  });
  e.barrier();
  Value lane = e.rem(e.thread, lanes), warp = e.div(e.thread, lanes);
  auto larger = [&](Value x, Value y) -> Value {
    return arith::MaxUIOp::create(b, loc, x, y);
  };
  e.loop(warp, e.mul(count, e.index(parts)), e.index(warps), {},
         [&](Value number, ValueRange) -> SmallVector<Value> {
           Value row = e.div(number, parts);
           Value own = e.add(e.scaled(e.rem(number, parts), lanes), lane);
           auto part =
               e.loop(own, e.index(extent), e.index(atOnce * stride), e.word(0),
                      [&](Value first, ValueRange args) -> SmallVector<Value> {
                        SmallVector<Value> elements;
                        for (int64_t i = 0; i < atOnce; ++i) {
                          Value column = e.add(first, e.index(i * stride));
                          if (i > 0) // else once more what is there
                            column = e.select(e.isLess(column, e.index(extent)),
                                              column, first);
                          elements.push_back(element(row, column));
                        }
                        Value largest = args[0];
                        for (Value each : elements)
                          largest = larger(largest, magnitudeOf(e, each));
                        return {largest};
                      });
           Value all = code.combineLanes(part.getResult(0), 0, 5, larger);
           e.ifThen(e.isLess(lane, e.index(1)), [&] {
             memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::maxu,
                                         all, largest, row);
           });
           return {};
         });
  e.barrier();
}

/// s: by how much a row's exponents are too large, 0 at least.
Value RowRange::exponentOf(Value row) {
  Value bits = memref::LoadOp::create(b, loc, largest, row);
  Value exponent =
      arith::ShRUIOp::create(b, loc, bits, e.word(significandBits));
  Value most = e.word(bias + largestExponent);
  return arith::SubIOp::create(
      b, loc, arith::MaxUIOp::create(b, loc, exponent, most), most);
}

/// 2^`exponent` (i32).
static Value powerOfTwo(GPUEmitter &e, Value exponent) {
  Value biased = arith::AddIOp::create(e.b, e.loc, exponent, e.word(bias));
  Value bits =
      arith::ShLIOp::create(e.b, e.loc, biased, e.word(significandBits));
  return arith::BitcastOp::create(e.b, e.loc, e.b.getF32Type(), bits);
}

Value RowRange::scaleOf(Value row) {
  return powerOfTwo(e,
                    arith::SubIOp::create(b, loc, e.word(0), exponentOf(row)));
}

Value RowRange::inverseOf(Value row) { return powerOfTwo(e, exponentOf(row)); }

//===----------------------------------------------------------------------===//
// Outliers
//===----------------------------------------------------------------------===//

OutlierRows::OutlierRows(GPUEmitter &emitter, MatmulOp op)
    : e(emitter), code(emitter), rounded(op.getX()),
      outliers(op.getOutliers()) {}

/// `element`, finite or infinite, with as many significant bits as f16 has, as
/// matrix units get it.
static Value roundToHalfBits(GPUEmitter &e, Value element) {
  constexpr int64_t dropped = 13; // of f32's significand
  Value bits = arith::BitcastOp::create(e.b, e.loc, e.b.getI32Type(), element);
  Value last = arith::AndIOp::create(
      e.b, e.loc, arith::ShRUIOp::create(e.b, e.loc, bits, e.word(dropped)),
      e.word(1));
  Value half = e.word((int64_t(1) << (dropped - 1)) - 1);
  Value up = arith::AddIOp::create(
      e.b, e.loc, bits, arith::AddIOp::create(e.b, e.loc, half, last));
  Value kept =
      arith::AndIOp::create(e.b, e.loc, up, e.word(-(int64_t(1) << dropped)));
  return arith::BitcastOp::create(e.b, e.loc, e.b.getF32Type(), kept);
}

Value OutlierRows::replace(Value element, ValueRange indices) {
  Value isInfinite =
      arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq,
                            magnitudeOf(e, element), e.word(infinity));
  return e.ifElse(
      isInfinite,
      [&] { return roundToHalfBits(e, e.load(outliers, indices, 0)); },
      [&] { return element; });
}

Value OutlierRows::load(ValueRange indices) {
  Value element = e.load(rounded, indices, 0);
  return exist() ? replace(element, indices) : element;
}

Value OutlierRows::rescale(Value word, ValueRange row, Value column,
                           Value scale) {
  auto [first, second] = code.unpack(e.b.getF16Type(), word);
  Value next = e.add(column, e.index(1));
  first = replace(first, indicesAt(row, column));
  second = replace(second, indicesAt(row, next));
  return code.pack(e.b.getF16Type(), e.mul(first, scale), e.mul(second, scale));
}
