//===- ThreadLoops.cpp - What the threads of a workgroup share ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads stride over what they share. Memory takes long to answer, so that a
// thread asks for several elements before it needs the first of them.
//
//===----------------------------------------------------------------------===//

#include "Units/WarpOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

/// Lanes of a warp.
static constexpr int64_t warpLanes = 32;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void GPUEmitter::forThreads(Value size, function_ref<void(Value)> body) {
  loop(thread, size, index(shape.threadCount), {}, [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>();
  });
}

void GPUEmitter::forThreadsOfTile(Value size, function_ref<void(Value)> body) {
  const int64_t parts = kernel.getScheduleAttr().getParts();
  Value first =
      part ? add(thread, mul(part, index(shape.threadCount))) : thread;
  loop(first, size, index(shape.threadCount * parts), {},
       [&](Value iv, ValueRange) {
         body(iv);
         return SmallVector<Value>();
       });
}

/// `count` numbers from `first` on, a thread's stride apart, of those below
/// `size`.
GPUEmitter::Batch GPUEmitter::batchFrom(Value first, int64_t count,
                                        Value size) {
  const int64_t threads = shape.threadCount;
  std::optional<int64_t> begin = getConstantIntValue(first),
                         end = getConstantIntValue(size);
  Value own = add(first, thread);
  Batch batch;
  for (int64_t i = 0; i < count; ++i) {
    Value number = add(own, index(i * threads)), isInside;
    if (!begin || !end || *begin + (i + 1) * threads > *end) {
      isInside = isLess(number, size);
      number = select(isInside, number, first);
    }
    batch.numbers.push_back(number);
    batch.isInside.push_back(isInside);
  }
  return batch;
}

GPUEmitter::Batch GPUEmitter::wholeBatch(Value size) {
  int64_t count = *getConstantIntValue(size);
  return batchFrom(index(0), llvm::divideCeil(count, shape.threadCount), size);
}

bool GPUEmitter::isOneBatch(Value size) {
  std::optional<int64_t> count = getConstantIntValue(size);
  return count && *count > 0 && shape.batch > 1 &&
         *count <= shape.threadCount * shape.batch;
}

SmallVector<Value> GPUEmitter::forBatches(
    Value size, ValueRange start,
    function_ref<SmallVector<Value>(const Batch &, ValueRange)> body) {
  const int64_t threads = shape.threadCount, step = threads * shape.batch;
  if (shape.batch == 1) {
    auto all = loop(thread, size, index(threads), start,
                    [&](Value number, ValueRange state) {
                      return body({{number}, {Value()}}, state);
                    });
    return SmallVector<Value>(all.getResults());
  }
  if (isOneBatch(size))
    return body(rowBatch ? *rowBatch : wholeBatch(size), start);
  auto visit = [&](Value end, ValueRange state,
                   function_ref<Batch(Value)> batch) {
    auto all = loop(
        index(0), end, index(step), state,
        [&](Value first, ValueRange args) { return body(batch(first), args); });
    return SmallVector<Value>(all.getResults());
  };
  std::optional<int64_t> count = getConstantIntValue(size);
  if (!count)
    return visit(size, start, [&](Value first) {
      return batchFrom(first, shape.batch, size);
    });
  const int64_t end = *count / step * step;
  SmallVector<Value> state = visit(index(end), start, [&](Value first) {
    Batch batch;
    for (int64_t i = 0; i < shape.batch; ++i)
      batch.numbers.push_back(add(add(first, thread), index(i * threads)));
    batch.isInside.assign(shape.batch, Value());
    return batch;
  });
  if (end == *count)
    return state;
  return body(
      batchFrom(index(end), llvm::divideCeil(*count - end, threads), size),
      state);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

bool GPUEmitter::hasWarps() {
  return machine.warpThreads == warpLanes && shape.threadCount % warpLanes == 0;
}

Value GPUEmitter::reduce(Value size, Value neutral, CombineFn combine,
                         function_ref<Value(Value)> element) {
  auto own =
      forBatches(size, neutral, [&](const Batch &batch, ValueRange state) {
        Value result = state[0];
        for (auto [i, number] : llvm::enumerate(batch.numbers)) {
          Value next = element(number);
          if (Value isInside = batch.isInside[i])
            next = select(isInside, next, neutral);
          result = combine(result, next);
        }
        return SmallVector<Value>{result};
      });
  return combineThreads(own[0], neutral, combine);
}

/// Lanes of a warp exchange what they have, and then warps do through memory.
Value GPUEmitter::combineWarps(Value own, Value neutral, Value memory,
                               CombineFn combine) {
  const int64_t warps = shape.threadCount / warpLanes;
  const int64_t bits = llvm::Log2_64(warpLanes);
  WarpOps ops(*this);
  own = ops.combineLanes(own, 0, bits, combine);
  if (warps == 1)
    return own;
  Value lane = arith::RemUIOp::create(b, loc, thread, index(warpLanes));
  Value warp = arith::DivUIOp::create(b, loc, thread, index(warpLanes));
  ifThen(
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, index(0)),
      [&] { memref::StoreOp::create(b, loc, own, memory, warp); });
  barrier();
  const int64_t places = llvm::PowerOf2Ceil(warps);
  Value place = arith::RemUIOp::create(b, loc, lane, index(places));
  Value hasOne = isLess(place, index(warps));
  Value found =
      memref::LoadOp::create(b, loc, memory, select(hasOne, place, index(0)));
  Value total = ops.combineLanes(select(hasOne, found, neutral), 0,
                                 llvm::Log2_64(places), combine);
  // The next reduction writes only once all threads have read this one.
  barrier();
  return total;
}

Value GPUEmitter::combineThreads(Value own, Value neutral, CombineFn combine) {
  if (shape.threadCount == 1)
    return own;
  Value &memory = partials[own.getType()];
  if (!memory)
    memory = workgroupMemory(shape.partialSums(), own.getType());
  if (hasWarps())
    return combineWarps(own, neutral, memory, combine);
  memref::StoreOp::create(b, loc, own, memory, thread);
  barrier();
  // Halves 2^n of the values that are left; the first may lack some.
  int64_t first = llvm::PowerOf2Ceil(shape.threadCount) / 2;
  loop(index(llvm::Log2_64(first) + 1), [&](Value step) {
    Value half = arith::ShRUIOp::create(b, loc, index(first), step);
    Value partner = add(thread, half);
    Value inside = isLess(thread, half);
    if (2 * first != shape.threadCount)
      inside = arith::AndIOp::create(b, loc, inside,
                                     isLess(partner, index(shape.threadCount)));
    ifThen(inside, [&] {
      Value other = memref::LoadOp::create(b, loc, memory, partner);
      Value mine = memref::LoadOp::create(b, loc, memory, thread);
      memref::StoreOp::create(b, loc, combine(mine, other), memory, thread);
    });
    barrier();
  });
  Value total = memref::LoadOp::create(b, loc, memory, index(0));
  // The next reduction writes only once all threads have read this one.
  barrier();
  return total;
}
