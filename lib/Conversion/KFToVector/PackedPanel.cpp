//===- PackedPanel.cpp - Fields of a packed panel of blocks ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackedPanel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;
using ::kf::SubScales;

Value PackedPanel::splatInt(int32_t value) {
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(intType(), b.getI32IntegerAttr(value)));
}

Value PackedPanel::toFloat(Value integers) {
  return arith::SIToFPOp::create(b, loc, e.vectorType(e.lanes), integers);
}

SmallVector<Value>
PackedPanel::forUnits(Value p, Vectors read, ValueRange inits,
                      function_ref<SmallVector<Value>(Value, ValueRange)> body,
                      Blocks range) {
  panelIndex = p;
  vectors = read;
  if (!range.end)
    range = {e.index(0), e.index(extent / format.elements)};
  int64_t units = format.elements / unit;
  auto inBlock = [&](Value block, ValueRange state) {
    startBlock(block);
    Value firstUnit = e.mul(block, e.index(units));
    auto inUnit = [&](Value number, ValueRange args) {
      startUnit(number);
      return body(e.add(firstUnit, number), args);
    };
    if (units == 1)
      return inUnit(e.index(0), state);
    auto loop = e.loop(e.index(0), e.index(units), e.index(1), state, inUnit);
    return SmallVector<Value>(loop.getResults());
  };
  auto loop = e.loop(range.first, range.end, e.index(1), inits, inBlock);
  return SmallVector<Value>(loop.getResults());
}

void PackedPanel::moveTo(Value p, Vectors read, Value number) {
  panelIndex = p;
  vectors = read;
  int64_t units = format.elements / unit;
  if (units == 1) {
    startBlock(number);
    startUnit(e.index(0));
    return;
  }
  startBlock(arith::DivUIOp::create(b, loc, number, e.index(units)));
  startUnit(arith::RemUIOp::create(b, loc, number, e.index(units)));
}

void PackedPanel::startBlock(Value number) {
  blockIndex = number;
  d.clear();
  m.clear();
  for (int64_t v = vectors.first; v < vectors.first + vectors.count; ++v) {
    d.push_back(loadScales(v));
    if (!hasMins())
      continue;
    Value min = loadHalves(v, packed.min);
    m.push_back(format.minIsNegative
                    ? arith::NegFOp::create(b, loc, min).getResult()
                    : min);
  }
  prefetch(e.index(0), packed.firstUnit * panel);
}

void PackedPanel::startUnit(Value number) {
  unitIndex = number;
  loaded.clear();
  int64_t header = packed.firstUnit * panel;
  int64_t unitBytes = packed.unitBytes * panel;
  prefetch(e.add(e.mul(number, e.index(unitBytes)), e.index(header)),
           unitBytes);
}

std::pair<SmallVector<Value>, SmallVector<Value>>
PackedPanel::scales(int64_t sub) {
  if (format.subScales == SubScales::None)
    return {d, m};
  std::pair<SmallVector<Value>, SmallVector<Value>> result;
  auto &[scales, mins] = result;
  auto widen = [&](Value bytes, bool isSigned) -> Value {
    if (isSigned)
      return arith::ExtSIOp::create(b, loc, intType(), bytes);
    return arith::ExtUIOp::create(b, loc, intType(), bytes);
  };
  for (int64_t i = 0; i < vectors.count; ++i) {
    int64_t v = vectors.first + i;
    Value scale = widen(loadOfUnit(v, packed.subScales, sub, 1), !hasMins());
    Value min;
    if (format.subScales == SubScales::Nibbles) {
      min = arith::ShRUIOp::create(b, loc, scale, splatInt(4));
      scale = arith::AndIOp::create(b, loc, scale, splatInt(15));
    } else if (format.subScales == SubScales::Packed6) {
      min = widen(loadOfUnit(v, packed.subMins, sub, 1), false);
    }
    scales.push_back(e.mul(d[i], toFloat(scale)));
    if (min)
      mins.push_back(e.mul(m[i], toFloat(min)));
  }
  return result;
}

SmallVector<Value> PackedPanel::codes(int64_t quad) {
  SmallVector<Value> codes;
  for (int64_t v = vectors.first; v < vectors.first + vectors.count; ++v) {
    Value code = loadFields(v, packed.low, format.low.bits, quad);
    if (format.high.bits) {
      Value high = loadFields(v, packed.high, format.high.bits, quad);
      Value by = splatInt(format.low.bits);
      code = arith::OrIOp::create(b, loc, code,
                                  arith::ShLIOp::create(b, loc, high, by));
    }
    codes.push_back(code);
  }
  return codes;
}

Value PackedPanel::code(Value quad, int64_t j) {
  if (j > 0)
    quad = arith::ShRUIOp::create(b, loc, quad, splatInt(8 * j));
  if (j < 3)
    quad = arith::AndIOp::create(b, loc, quad, splatInt(255));
  return quad;
}

/// The group that vector `v` is of.
Value PackedPanel::groupOf(int64_t v) {
  Value number = e.index(v / (panel / e.lanes));
  return vectors.group ? e.add(vectors.group, number) : number;
}

/// `lanes` rows' bytes of a field of `size` bytes a row, which lies `offset`
/// rows behind `column` of the block.
Value PackedPanel::loadRow(int64_t v, Value column, int64_t offset,
                           int64_t size) {
  int64_t lanes = e.lanes, perGroup = panel / lanes;
  column = e.add(column, e.index(offset * panel + v % perGroup * lanes * size));
  return vector::LoadOp::create(
      b, loc, e.vectorType(lanes * size, b.getI8Type()), weights,
      ValueRange{panelIndex, groupOf(v), blockIndex, column});
}

/// The same for field `number` of those at `offset` in the current unit.
Value PackedPanel::loadOfUnit(int64_t v, int64_t offset, int64_t number,
                              int64_t size) {
  Value column = e.mul(unitIndex, e.index(packed.unitBytes * panel));
  return loadRow(v, column, packed.firstUnit + offset + number * size, size);
}

/// Prefetches lines of each group behind `bytes` that are read from `column` of
/// the block on.
void PackedPanel::prefetch(Value column, int64_t bytes) {
  // [panels, groups, blocks, bytes]
  ArrayRef<int64_t> sizes = cast<MemRefType>(weights.getType()).getShape();
  int64_t groupBytes = sizes[2] * sizes[3], perGroup = panel / e.lanes;
  // Behind the end of one of several groups that are read side by side comes
  // the same group of the next panel.
  auto skipGroups = [&](int64_t ahead) -> Value {
    if (vectors.count == perGroup)
      return column;
    Value position = e.add(e.mul(blockIndex, e.index(sizes[3])), column);
    Value isBehind = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::uge, position,
        e.index(std::max<int64_t>(groupBytes - ahead, 0)));
    Value next = e.add(column, e.index((sizes[1] - 1) * groupBytes));
    return e.select(isBehind, next, column);
  };
  SmallVector<Value> columns;
  for (auto [ahead, locality] : prefetches)
    columns.push_back(e.add(skipGroups(ahead), e.index(ahead)));
  for (int64_t v = vectors.first; v < vectors.first + vectors.count;
       v += perGroup)
    for (int64_t at = 0; at < bytes; at += 64)
      for (auto [prefetch, from] : llvm::zip(prefetches, columns))
        memref::PrefetchOp::create(
            b, loc, weights,
            ValueRange{panelIndex, groupOf(v), blockIndex,
                       e.add(from, e.index(at))},
            /*isWrite=*/false, prefetch.locality, /*isDataCache=*/true);
}

Value PackedPanel::loadHalves(int64_t v, int64_t offset) {
  Value halves =
      vector::BitCastOp::create(b, loc, e.vectorType(e.lanes, b.getF16Type()),
                                loadRow(v, e.index(0), offset, 2));
  return arith::ExtFOp::create(b, loc, e.vectorType(e.lanes), halves);
}

/// d of the current block, in f32.
Value PackedPanel::loadScales(int64_t v) {
  if (format.scale == ::kf::BlockScale::Half)
    return loadHalves(v, packed.scale);
  return e.widenHalvedE8M0(arith::ExtUIOp::create(
      b, loc, intType(), loadRow(v, e.index(0), packed.scale, 1)));
}

/// Fields of `bits` bits of a quad, in the bytes of 32-bit lanes.
Value PackedPanel::loadFields(int64_t v, int64_t offset, int64_t bits,
                              int64_t quad) {
  int64_t quadsPerChunk = 8 / bits;
  int64_t chunk = quad / quadsPerChunk;
  Value &lanesOf = loaded[{v, offset, chunk}];
  if (!lanesOf)
    lanesOf = vector::BitCastOp::create(b, loc, intType(),
                                        loadOfUnit(v, offset, chunk, 4));
  Value fields = lanesOf;
  if (int64_t by = quad % quadsPerChunk * bits)
    fields = arith::ShRUIOp::create(b, loc, fields, splatInt(by));
  if (bits == 8)
    return fields;
  int32_t mask = ((1 << bits) - 1) * 0x01010101;
  return arith::AndIOp::create(b, loc, fields, splatInt(mask));
}
