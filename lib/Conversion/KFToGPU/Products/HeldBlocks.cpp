//===- HeldBlocks.cpp - Blocks times rows in registers --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeldBlocks.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::kf;

using Sums = StreamShape::Sums;

SmallVector<Value> HeldBlocks::product(ValueRange left, ValueRange right,
                                       ValueRange sums) {
  return code.multiplyAdd(b.getF16Type(), left, right, sums);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

HeldBlocks::Rows HeldBlocks::hold(ArrayRef<SmallVector<Value>> words) {
  const Type half = b.getF16Type();
  Rows rows;
  SmallVector<Value> sums; // of 32 columns, or of 16: of this lane's row
  for (ArrayRef<Value> span : words) {
    SmallVector<Value> parts;
    for (int64_t i = 0; StreamShape::hasAny(sumsOfX) && i < 4; ++i) {
      auto [first, second] = code.unpack(half, span[i]);
      Value sum = e.add(first, second);
      if (i % 2 == 0)
        parts.push_back(sum);
      else
        parts.back() = e.add(parts.back(), sum);
    }
    if (!parts.empty() && !StreamShape::hasHalves(sumsOfX))
      parts = {e.add(parts[0], parts[1])};
    for (Value part : parts)
      sums.push_back(code.combineLanes(
          part, 0, 2, [&](Value x, Value y) { return e.add(x, y); }));

    SmallVector<Value> &scaled = rows.spans.emplace_back();
    for (int64_t i = 0; i < 4; ++i)
      scaled.push_back(scaledPair(span[i], i));
  }
  // A lane's are those of numbers 2 t and 2 t + 1.
  for (size_t first = 0; first < sums.size(); first += spans) {
    Value own[2];
    for (int64_t i = 0; i < 2; ++i) {
      own[i] = sums[first + i];
      for (int64_t t = 1; t < 4; ++t)
        own[i] = e.select(e.isLess(lanes.inGroup, e.index(t)), own[i],
                          sums[first + 2 * t + i]);
      own[i] = e.mul(own[i], e.f32(minimumScale));
    }
    auto [high, low] = code.split(half, own[0], own[1]);
    rows.sums.push_back(high);
    rows.sums.push_back(low);
  }
  return rows;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void HeldBlocks::multiply(Value pointer, ArrayRef<Rows> rows,
                          MutableArrayRef<Value> sums) {
  Tile tile;
  loadScales(tile, pointer);
  SmallVector<Value> ofTile = beginTile(tile, sums);
  const int64_t parts = StreamShape::hasHalves(sumsOfX) ? 2 : 1;
  for (int64_t span = 0; span < spans; ++span) {
    // x takes most registers, so that there are none for all codes.
    loadCodes(tile, pointer, span);
    if (scalesCodes()) {
      addScaled(tile, span, rows, ofTile);
      continue;
    }
    for (int64_t part = 0; part < parts; ++part) {
      SmallVector<SmallVector<Value>> products(rows.size(), zeros());
      for (int64_t half = part; half < 2; half += parts) {
        SmallVector<Value> left = fragment(tile, span, half);
        for (auto [number, own] : llvm::enumerate(rows))
          products[number] =
              product(left, ArrayRef(own.spans[span]).slice(2 * half, 2),
                      products[number]);
      }
      auto [upper, lower] = scalesOf(tile, parts * span + part);
      for (size_t i = 0; i < ofTile.size(); ++i)
        ofTile[i] =
            fma(i % 4 < 2 ? upper : lower, products[i / 4][i % 4], ofTile[i]);
    }
  }
  const bool hasMinimums = StreamShape::hasMinimums(sumsOfX);
  if (StreamShape::hasAny(sumsOfX) && !hasMinimums)
    subtract(pointer, rows, ofTile);
  endTile(tile, ofTile, sums);
  if (hasMinimums)
    addMinimums(tile, rows, sums);
}

/// Adds the products of a span whose codes are scaled. Sums of halves are not
/// by themselves, as in StreamBlocks: x has the registers, and of 16 rows there
/// are two sums that do not wait for one another.
void HeldBlocks::addScaled(const Tile &tile, int64_t span, ArrayRef<Rows> rows,
                           MutableArrayRef<Value> sums) {
  for (int64_t half = 0; half < 2; ++half) {
    SmallVector<Value> left = fragment(tile, span, half);
    for (auto [number, own] : llvm::enumerate(rows)) {
      MutableArrayRef<Value> ofRows = sums.slice(4 * number, 4);
      llvm::copy(
          product(left, ArrayRef(own.spans[span]).slice(2 * half, 2), ofRows),
          ofRows.begin());
    }
  }
}

/// Subtracts what codes are above values, times their scales: the left
/// operand.
void HeldBlocks::subtract(Value pointer, ArrayRef<Rows> rows,
                          MutableArrayRef<Value> sums) {
  const size_t count = sumsOfX == Sums::Halves ? 2 : 1;
  const int64_t ofLane = scaling.pairBytes() / 4;
  SmallVector<Value> own = code.loadRegisters(
      code.advance(code.advance(pointer, 512 * tileOf.vectors),
                   e.mul(lanes.lane, e.index(ofLane))),
      ofLane);
  SmallVector<SmallVector<Value>> left;
  if (!hasSubScales())
    left.push_back({own[0], own[1], own[0], own[1]});
  // Bytes in the lowest bits of 1024, above scales.
  for (size_t i = 0; hasSubScales() && i < count; ++i) {
    SmallVector<Value> &operand = left.emplace_back();
    for (int64_t selector : {0x4140, 0x4342}) {
      Value bytes =
          pairOf(code.selectBytes(own[i], e.word(0x64646464), selector));
      Value scales =
          arith::SubFOp::create(b, loc, bytes, pairOf(1024.0 + scaling.above));
      operand.push_back(
          LLVM::BitcastOp::create(b, loc, b.getI32Type(), scales));
    }
    llvm::append_range(operand, SmallVector<Value>(operand));
  }
  const auto zero = static_cast<double>(::kf::PackedBlock(format).zero);
  Value factor = e.f32(-zero * codeScale() / minimumScale);
  for (auto [number, row] : llvm::enumerate(rows)) {
    SmallVector<Value> products = zeros();
    for (size_t i = 0; i < count; ++i)
      products = product(left[i], ArrayRef(row.sums).slice(2 * i, 2), products);
    for (int64_t i = 0; i < 4; ++i)
      sums[4 * number + i] = fma(factor, products[i], sums[4 * number + i]);
  }
}

/// Minimums are multiplied where they lie, as codes are.
void HeldBlocks::addMinimums(const Tile &tile, ArrayRef<Rows> rows,
                             MutableArrayRef<Value> sums) {
  const SmallVector<SmallVector<Value>> left = minimums(tile);
  auto [upper, lower] = scalesOfMinimums(tile);
  for (auto [number, row] : llvm::enumerate(rows)) {
    SmallVector<Value> products = zeros();
    for (auto [i, operand] : llvm::enumerate(left))
      products = product(operand, ArrayRef(row.sums).slice(2 * i, 2), products);
    for (int64_t i = 0; i < 4; ++i)
      sums[4 * number + i] =
          fma(i < 2 ? upper : lower, products[i], sums[4 * number + i]);
  }
}
