//===- PackedMatmulEmitter.cpp - Products with tiles of weights -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackedMatmulEmitter.h"

using namespace mlir;
using namespace mlir::kf;

void PackedMatmulEmitter::findWeight() {
  weight = findWeightRows(e, product);
  element = cast<RankedTensorType>(weight.argument.getType()).getElementType();
  quant = dyn_cast<QuantType>(element);
  if (quant || isa<Float8E4M3FNType>(element))
    element = b.getF16Type();
}

void PackedMatmulEmitter::numberThread(int64_t blockColumns) {
  lane = e.rem(e.thread, lanes);
  warp = e.div(e.thread, lanes);
  group = e.div(lane, 4);
  inGroup = e.rem(lane, 4);
  blocks = e.ceilDiv(columns, blockColumns);
}

void PackedMatmulEmitter::startCopiesAt(Value tile, int64_t bytes) {
  ofLane = e.scaled(lane, vectorBytes);
  source = code.advance(code.pointerTo(e.bufferOf(weight.argument)),
                        e.add(e.scaled(tile, bytes), ofLane));
}

void PackedMatmulEmitter::storeTile(
    int64_t blockColumns,
    function_ref<SmallVector<Value>(Value row, Value block, Value line)>
        sumsOf) {
  e.forThreadsOfTile(e.scaled(rows, shape.columns), [&](Value number) {
    Value row = e.div(number, shape.columns);
    Value column = e.rem(number, shape.columns);
    Value block = e.div(column, blockColumns);
    Value line = e.rem(column, blockColumns);
    storeElement(row, column, sumsOf(row, block, line));
  });
}
