//===- StagedMatmulEmitter.cpp - Products through workgroup memory --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The workgroup walks along K: all threads stage a block of x and a block of
// the weight in workgroup memory, then each adds to the sums of its own
// elements, which stay in registers. Elements past an edge are staged as zeros,
// and not stored. A norm that is fused into x has the statistics of the tile's
// rows computed first.
//
//===----------------------------------------------------------------------===//

#include "GPUMatmulEmitter.h"
#include "SpanStaging.h"
#include "ThreadSums.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class StagedMatmulEmitter : public GPUMatmulEmitter {
public:
  using GPUMatmulEmitter::GPUMatmulEmitter;

private:
  void emitProduct() override {
    ElementStaging x(e, /*tiles=*/1, shape.rows);
    ElementStaging w(e, shape.groups, shape.columns);
    ThreadSums product(e);
    std::optional<SpanStaging> packed;
    if (shape.stagesSpans)
      packed.emplace(e, op, columns, w);
    const int64_t steps = packed ? packed->spans() : 1;
    visited = llvm::alignTo(extent, shape.step * steps);
    SmallVector<Value> zeros = product.zeros();
    auto blocks =
        e.loop(e.index(0), e.index(extent), e.index(shape.step * steps), zeros,
               [&](Value k, ValueRange before) {
                 SmallVector<Value> sums(before);
                 for (int64_t i = 0; i < steps; ++i) {
                   stageRows(x, e.add(k, e.index(i * shape.step)));
                   if (packed)
                     packed->stage(k, i);
                   else
                     stageColumns(w, k);
                   e.barrier();
                   sums = addBlock(product, x, w, sums);
                   e.barrier();
                 }
                 return sums;
               });
    product.forElements(blocks.getResults(),
                        [&](Value row, Value column, ValueRange sums) {
                          storeElement(row, column, sums);
                        });
  }

  /// Stages the block at `k` of the tile's rows, and of its columns.
  void stageRows(ElementStaging &x, Value k) {
    x.copy(0, rows, k, extent, visited,
           [&](Value row, Value position) { return loadX(row, position); });
  }
  void stageColumns(ElementStaging &w, Value k) {
    for (int64_t group = 0; group < shape.groups; ++group)
      w.copy(group, columns, k, extent, visited,
             [&](Value column, Value position) {
               return e.load(op.getW(), groupIndices(group, {column, position}),
                             0);
             });
  }

  /// `sums` with the products of the staged block added.
  SmallVector<Value> addBlock(ThreadSums &product, ElementStaging &x,
                              ElementStaging &w, ValueRange sums) {
    auto steps =
        e.loop(e.index(0), e.index(shape.step), e.index(shape.unroll), sums,
               [&](Value k, ValueRange args) {
                 SmallVector<Value> acc(args);
                 for (int64_t u = 0; u < shape.unroll; ++u)
                   product.multiplyAdd(x, w, e.add(k, e.index(u)), acc);
                 return acc;
               });
    return SmallVector<Value>(steps.getResults());
  }

  int64_t visited = 0; // columns of K that rounds of steps go through
};

} // namespace

void mlir::kf::emitStagedMatmul(GPUEmitter &emitter) {
  StagedMatmulEmitter(emitter).emit();
}
