//===- SpanStaging.cpp - A packed weight to workgroup memory --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpanStaging.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kf;

using Tile = ::kf::FragmentTile;

SpanStaging::SpanStaging(GPUEmitter &emitter, MatmulOp op, Value columns,
                         ElementStaging &memory)
    : e(emitter), memory(memory), weight(findWeightRows(emitter, op)),
      blockColumns(Tile::rows / emitter.shape.groups) {
  auto type = cast<RankedTensorType>(weight.argument.getType());
  element = type.getElementType();
  tile = *getFragmentTile(element);
  tilesOfRow = tile.tilesOf(type.getShape().back());
  lastBlock = e.sub(e.ceilDiv(columns, blockColumns), e.index(1));
  table = LaneTiles::makeTable(e, element);
  if (table)
    e.barrier();
}

int64_t SpanStaging::spans() const {
  auto quant = dyn_cast<QuantType>(element);
  return quant ? getPartSpans(getStorage(quant.getFormat())) : 1;
}

void SpanStaging::stage(Value first, int64_t span) {
  const int64_t blocks = e.shape.columns / blockColumns;
  e.forThreads(e.index(blocks * Tile::lanes), [&](Value number) {
    stageLane(e.div(number, Tile::lanes), e.rem(number, Tile::lanes), first,
              span);
  });
}

/// What `lane` has of the span in 16 lines of the weight. Behind the last ones
/// they are staged again, and not stored.
void SpanStaging::stageLane(Value block, Value lane, Value first,
                            int64_t span) {
  constexpr int64_t units = Tile::span / LanesShape::unitColumns;
  Value group = e.div(lane, LanesShape::sharers);
  Value inGroup = e.rem(lane, LanesShape::sharers);
  LaneTiles lanes(e, element, group, inGroup, table);
  Value own = e.select(e.isLess(block, lastBlock), block, lastBlock);
  Value ofBlock =
      e.scaled(e.add(e.div(weight.first, blockColumns), own), tilesOfRow);
  Value buffer = e.bufferOf(weight.argument);
  SmallVector<LaneTiles::Tile, 0> tiles;
  if (lanes.hasBlocks()) {
    Value part = e.div(first, spans() * Tile::span);
    Value number = e.add(ofBlock, e.div(part, lanes.parts()));
    tiles.push_back(lanes.load(buffer, number, e.rem(part, lanes.parts())));
  } else {
    const int64_t count = Tile::span / tile.columns;
    for (int64_t i = 0; i < count; ++i) {
      Value number = e.add(e.div(first, tile.columns), e.index(i));
      if (tilesOfRow % count != 0) {
        Value last = e.index(tilesOfRow - 1);
        number = e.select(e.isLess(number, last), number, last);
      }
      tiles.push_back(lanes.load(buffer, e.add(ofBlock, number), Value()));
    }
  }
  for (int64_t row = 0; row < 2; ++row) {
    const bool isPair = e.shape.groups == 2;
    Value line = e.add(e.scaled(block, blockColumns), group);
    if (!isPair)
      line = e.add(line, e.index(row * blockColumns / 2));
    for (int64_t i = 0; i < units; ++i) {
      const int64_t unit = units * span + i;
      LaneTiles::Scale scale;
      if (lanes.hasBlocks())
        scale = lanes.scaleOf(tiles.front(), unit, row);
      SmallVector<Value> values = lanes.elementsOf(tiles, unit, row);
      for (auto [j, value] : llvm::enumerate(values)) {
        if (scale.factor)
          value = scale.addend ? math::FmaOp::create(e.b, e.loc, scale.factor,
                                                     value, scale.addend)
                                     .getResult()
                               : e.mul(scale.factor, value);
        Value column =
            LaneTiles::columnOf(e, element, inGroup, static_cast<int64_t>(j));
        memory.store(isPair ? row : 0, line,
                     e.add(column, e.index(i * LanesShape::unitColumns)),
                     value);
      }
    }
  }
}
