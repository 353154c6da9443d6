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

#include "MatmulEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class StagedMatmulEmitter : public GPUMatmulEmitter {
public:
  using GPUMatmulEmitter::GPUMatmulEmitter;

private:
  LogicalResult emitProduct() override {
    Type element = b.getF32Type();
    x = e.workgroupMemory(shape.rows * shape.stride(), element);
    w = e.workgroupMemory(shape.groups * shape.columns * shape.stride(),
                          element);
    SmallVector<Value> zeros(shape.tileRows * shape.tileColumns * shape.groups,
                             e.f32(0.0));
    auto blocks = e.loop(e.index(0), e.index(extent), e.index(shape.step),
                         zeros, [&](Value k, ValueRange sums) {
                           stageRows(k);
                           stageColumns(k);
                           e.barrier();
                           SmallVector<Value> next = addBlock(sums);
                           e.barrier();
                           return next;
                         });
    return storeTile(blocks.getResults());
  }

  /// Stages [lines, step] elements at `memory`, row by row; `element` is asked
  /// only for lines below `limit` and k below K.
  void stage(Value memory, int64_t base, int64_t lines, Value limit, Value k,
             function_ref<Value(Value, Value)> element) {
    e.forThreads(e.index(lines * shape.step), [&](Value i) {
      Value step = e.index(shape.step);
      Value line = arith::DivUIOp::create(b, loc, i, step);
      Value offset = arith::RemUIOp::create(b, loc, i, step);
      Value position = e.add(k, offset);
      Value inside = e.isLess(line, limit);
      if (extent % shape.step != 0)
        inside = arith::AndIOp::create(b, loc, inside,
                                       e.isLess(position, e.index(extent)));
      Value zero = e.index(0);
      Value value = element(e.select(inside, line, zero),
                            e.select(inside, position, zero));
      Value place = e.add(e.mul(line, e.index(shape.stride())), offset);
      memref::StoreOp::create(b, loc, e.select(inside, value, e.f32(0.0)),
                              memory, e.add(place, e.index(base)));
    });
  }

  void stageRows(Value k) {
    stage(x, 0, shape.rows, rows, k,
          [&](Value row, Value position) { return loadX(row, position); });
  }

  void stageColumns(Value k) {
    for (int64_t group = 0; group < shape.groups; ++group)
      stage(w, group * shape.columns * shape.stride(), shape.columns, columns,
            k, [&](Value column, Value position) {
              return e.load(op.getW(), groupIndices(group, {column, position}),
                            0);
            });
  }

  /// Row and column, in the tile, of this thread's element (i, j).
  Value rowOf(int64_t i) {
    return e.add(e.threadY, e.index(i * shape.threads[1]));
  }
  Value columnOf(int64_t j) {
    return e.add(e.threadX, e.index(j * shape.threads[0]));
  }

  /// Adds the products of the staged block to `sums`: [groups][rows][columns].
  SmallVector<Value> addBlock(ValueRange sums) {
    auto steps = e.loop(e.index(0), e.index(shape.step), e.index(shape.unroll),
                        sums, [&](Value k, ValueRange args) {
                          SmallVector<Value> acc(args);
                          for (int64_t u = 0; u < shape.unroll; ++u)
                            addProducts(e.add(k, e.index(u)), acc);
                          return acc;
                        });
    return SmallVector<Value>(steps.getResults());
  }

  void addProducts(Value k, MutableArrayRef<Value> acc) {
    auto staged = [&](Value memory, Value line, int64_t base) -> Value {
      Value place = e.add(e.mul(line, e.index(shape.stride())), k);
      return memref::LoadOp::create(b, loc, memory,
                                    e.add(place, e.index(base)));
    };
    SmallVector<Value> left;
    for (int64_t i = 0; i < shape.tileRows; ++i)
      left.push_back(staged(x, rowOf(i), 0));
    Value *sum = acc.begin();
    for (int64_t group = 0; group < shape.groups; ++group) {
      SmallVector<Value> right;
      for (int64_t j = 0; j < shape.tileColumns; ++j)
        right.push_back(
            staged(w, columnOf(j), group * shape.columns * shape.stride()));
      for (Value row : left)
        for (Value column : right) {
          *sum = multiplyAdd(row, column, *sum);
          ++sum;
        }
    }
  }

  LogicalResult storeTile(ValueRange sums) {
    int64_t count = shape.tileRows * shape.tileColumns;
    for (int64_t i = 0; i < shape.tileRows; ++i)
      for (int64_t j = 0; j < shape.tileColumns; ++j) {
        SmallVector<Value> own;
        for (int64_t group = 0; group < shape.groups; ++group)
          own.push_back(sums[group * count + i * shape.tileColumns + j]);
        if (failed(storeElement(rowOf(i), columnOf(j), own)))
          return failure();
      }
    return success();
  }

  Value x; // workgroup memory [rows][stride]
  Value w; // workgroup memory [groups][columns][stride]
};

} // namespace

LogicalResult mlir::kf::emitStagedMatmul(GPUEmitter &emitter) {
  return StagedMatmulEmitter(emitter).emit();
}
