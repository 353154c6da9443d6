//===- SharedMatmulEmitter.cpp - Products of few rows ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With few rows the weight is read once and hardly reused, so that its way
// through workgroup memory would only cost. The threads along x read
// consecutive elements of a weight's row, so that each sums up one in
// `sharing` of the products; what they have is added through workgroup memory,
// a few elements at a time. The tile's rows and `tileColumns` columns are
// summed together, other columns by the other threads along y.
//
//===----------------------------------------------------------------------===//

#include "GPUMatmulEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class SharedMatmulEmitter : public GPUMatmulEmitter {
public:
  using GPUMatmulEmitter::GPUMatmulEmitter;

private:
  void emitProduct() override {
    // Past an edge, threads sum the products of an element inside.
    for (int64_t i = 0; i < shape.tileRows; ++i)
      tileRows.push_back(clamp(e.index(i), rows));
    for (int64_t j = 0; j < shape.tileColumns; ++j)
      tileColumns.push_back(clamp(columnOf(e.index(j), e.threadY), columns));
    SmallVector<Value> sums(shape.tileRows * shape.tileColumns * shape.groups,
                            e.f32(0.0));
    const int64_t step = shape.sharing * shape.unroll;
    const int64_t whole = extent / step * step;
    if (whole > 0)
      sums = sumFrom(e.index(0), e.index(whole), shape.unroll, sums);
    if (whole < extent)
      sums = sumFrom(e.index(whole), e.index(extent), 1, sums);
    storeTile(sums);
  }

  Value clamp(Value position, Value limit) {
    return e.select(e.isLess(position, limit), position, e.index(0));
  }
  Value columnOf(Value j, Value y) {
    return e.add(y, e.mul(j, e.index(shape.threads[1])));
  }

  /// Adds this thread's products of K in [begin, end), `unroll` a step, to
  /// `sums`: [rows][columns][groups].
  SmallVector<Value> sumFrom(Value begin, Value end, int64_t unroll,
                             ValueRange sums) {
    auto steps =
        e.loop(e.add(begin, e.threadX), end, e.index(shape.sharing * unroll),
               sums, [&](Value k, ValueRange args) {
                 SmallVector<Value> acc(args);
                 SmallVector<SmallVector<Value>> left, right;
                 for (int64_t u = 0; u < unroll; ++u) {
                   Value position = e.add(k, e.index(u * shape.sharing));
                   left.push_back(loadRows(position));
                   right.push_back(loadColumns(position));
                 }
                 for (int64_t u = 0; u < unroll; ++u)
                   for (auto [i, x] : llvm::enumerate(left[u]))
                     for (auto [j, w] : llvm::enumerate(right[u])) {
                       Value &sum = acc[i * right[u].size() + j];
                       sum = math::FmaOp::create(b, loc, x, w, sum);
                     }
                 return acc;
               });
    return SmallVector<Value>(steps.getResults());
  }

  SmallVector<Value> loadRows(Value k) {
    return llvm::map_to_vector(tileRows,
                               [&](Value row) { return loadX(row, k); });
  }

  SmallVector<Value> loadColumns(Value k) {
    SmallVector<Value> values;
    for (Value column : tileColumns)
      for (int64_t group = 0; group < shape.groups; ++group)
        values.push_back(
            e.load(op.getW(), groupIndices(group, {column, k}), 0));
    return values;
  }

  /// Adds what the threads along x have of an element, of `sharedElements` of
  /// them at a time, and stores it.
  void storeTile(ValueRange sums) {
    memory = e.workgroupMemory(shape.sharedSums() * shape.sharedStride(),
                               b.getF32Type());
    const int64_t elements = shape.tileRows * shape.tileColumns;
    for (int64_t first = 0; first < elements; first += shape.sharedElements) {
      int64_t count = std::min(shape.sharedElements, elements - first);
      if (first > 0)
        e.barrier();
      for (auto [number, sum] : llvm::enumerate(
               sums.slice(first * shape.groups, count * shape.groups)))
        memref::StoreOp::create(
            b, loc, sum, memory,
            e.add(place(e.index(number), e.threadY), e.threadX));
      e.barrier();
      storeElements(first, count);
    }
  }

  /// Where sum number `number` of the threads (0, y) and following begins.
  Value place(Value number, Value y) {
    Value line = e.add(e.mul(number, e.index(shape.threads[1])), y);
    return e.mul(line, e.index(shape.sharedStride()));
  }

  Value total(Value first) {
    return e
        .loop(e.index(0), e.index(shape.sharing), e.index(1), e.f32(0.0),
              [&](Value i, ValueRange sum) -> SmallVector<Value> {
                Value part =
                    memref::LoadOp::create(b, loc, memory, e.add(first, i));
                return {e.add(sum[0], part)};
              })
        .getResult(0);
  }

  /// Elements `first` and following of each y, one to a thread.
  void storeElements(int64_t first, int64_t count) {
    Value y = e.index(shape.threads[1]), width = e.index(shape.tileColumns);
    e.ifThen(e.isLess(e.thread, e.index(count * shape.threads[1])), [&] {
      Value lane = arith::RemUIOp::create(b, loc, e.thread, y);
      Value number = arith::DivUIOp::create(b, loc, e.thread, y);
      Value element = e.add(number, e.index(first));
      Value row = arith::DivUIOp::create(b, loc, element, width);
      Value column =
          columnOf(arith::RemUIOp::create(b, loc, element, width), lane);
      SmallVector<Value> sums;
      for (int64_t group = 0; group < shape.groups; ++group) {
        Value sum = e.add(e.mul(number, e.index(shape.groups)), e.index(group));
        sums.push_back(total(place(sum, lane)));
      }
      storeElement(row, column, sums);
    });
  }

  SmallVector<Value> tileRows, tileColumns; // of the elements of a thread
  Value memory; // [sharedElements][groups][threads along y][sharedStride]
};

} // namespace

void mlir::kf::emitSharedMatmul(GPUEmitter &emitter) {
  SharedMatmulEmitter(emitter).emit();
}
