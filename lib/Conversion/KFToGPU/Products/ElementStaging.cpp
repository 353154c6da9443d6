//===- ElementStaging.cpp - Operands in workgroup memory ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementStaging.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

ElementStaging::ElementStaging(GPUEmitter &emitter, int64_t tiles,
                               int64_t lines)
    : e(emitter), lines(lines),
      memory(e.workgroupMemory(tiles * lines * e.shape.stride(),
                               e.b.getF32Type())) {}

Value ElementStaging::placeOf(Value line, Value column) {
  return e.add(e.mul(line, e.index(e.shape.stride())), column);
}

Value ElementStaging::inTile(int64_t tile, Value place) {
  return e.add(place, e.index(tile * lines * e.shape.stride()));
}

void ElementStaging::store(int64_t tile, Value line, Value column,
                           Value value) {
  memref::StoreOp::create(e.b, e.loc, value, memory,
                          inTile(tile, placeOf(line, column)));
}

Value ElementStaging::load(int64_t tile, Value line, Value column) {
  return memref::LoadOp::create(e.b, e.loc, memory,
                                inTile(tile, placeOf(line, column)));
}

void ElementStaging::copy(int64_t tile, Value count, Value first,
                          int64_t extent, int64_t visited,
                          function_ref<Value(Value, Value)> element) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  const int64_t step = e.shape.step;
  e.forThreads(e.index(lines * step), [&](Value i) {
    Value line = arith::DivUIOp::create(b, loc, i, e.index(step));
    Value offset = arith::RemUIOp::create(b, loc, i, e.index(step));
    Value column = e.add(first, offset), inside = e.isLess(line, count);
    if (visited > extent)
      inside = arith::AndIOp::create(b, loc, inside,
                                     e.isLess(column, e.index(extent)));
    Value zero = e.index(0);
    Value value =
        element(e.select(inside, line, zero), e.select(inside, column, zero));
    Value place = placeOf(line, offset);
    memref::StoreOp::create(b, loc, e.select(inside, value, e.f32(0.0)), memory,
                            inTile(tile, place));
  });
}
