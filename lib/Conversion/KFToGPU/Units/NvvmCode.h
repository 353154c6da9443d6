//===- NvvmCode.h - What NVIDIA GPUs alone have -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops of the NVVM dialect on pointers, for schedules that no other target
// takes.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_UNITS_NVVMCODE_H
#define KF_LIB_CONVERSION_KFTOGPU_UNITS_NVVMCODE_H

#include "../GPUEmitter.h"

namespace mlir::kf {

class NvvmCode {
public:
  explicit NvvmCode(GPUEmitter &e) : e(e), b(e.b), loc(e.loc) {}

  /// Workgroup memory of `bytes`, at a multiple of 16.
  Value workgroupBytes(int64_t bytes);
  /// Where a flat buffer begins: in shared memory for workgroup memory, else in
  /// global memory.
  Value pointerTo(Value buffer);
  /// `pointer` moved by bytes, an index.
  Value advance(Value pointer, Value bytes);
  Value advance(Value pointer, int64_t bytes) {
    return advance(pointer, e.index(bytes));
  }

  /// Starts to copy 16 bytes from global to shared memory, both at multiples of
  /// 16. Those from number `bytes` (i32) on are zeros, and not read.
  void copyAsync(Value to, Value from, Value bytes);
  /// Ends a group of the copies that this thread has started.
  void commitCopies();
  /// Waits until at most `groups` of this thread's groups are under way.
  void waitForCopies(int64_t groups);

  /// Up to 4 (1, 2 or 4) tiles of 8 x 8 elements of 16 bits. Lanes 8i to 8i+7
  /// of `pointer` say where the rows of tile i begin; lane l gets elements
  /// 2 (l % 4) and the next one of row l / 4 of each, as an i32; of column
  /// l / 4 where they are transposed.
  SmallVector<Value> loadMatrices(Value pointer, int64_t count,
                                  bool isTransposed = false);
  /// `sums` (4 f32) with the product of a 16 x 16 tile and a 16 x 8 tile of
  /// `element` added, f16 or bf16: 4 and 2 words of i32 a lane, laid out as PTX
  /// says of mma.m16n8k16. Of f32, tiles are 16 x 8 and 8 x 8, as of
  /// mma.m16n8k8, and elements those of TF32: see splitSingle().
  SmallVector<Value> multiplyAdd(Type element, ValueRange left,
                                 ValueRange right, ValueRange sums);
  /// The bits (i32) of two numbers of TF32, which have 11 bits of significand
  /// each. Their sum is less by 2^-21 at most of the f32 that they are made of,
  /// unless the rest is a subnormal number. An infinity is large, and leaves 0.
  /// A NaN has one as its rest.
  struct Split {
    Value large, rest;
    Value isInfinite; ///< i1
  };
  Split splitSingle(Value bits);

  /// The values of the four codes of f8E4M3FN in a word, as pairs of f16: of
  /// the two lowest bytes, and of the others.
  std::pair<Value, Value> widenFloat8(Value codes);

  // Of sm_90: workgroups of a cluster.

  /// Where `pointer`, of shared memory, is in that of workgroup number `rank`
  /// (index) of the cluster.
  Value pointerInCluster(Value pointer, Value rank);
  /// Waits for all threads of the cluster, whose writes are seen then.
  void clusterBarrier();

  // Of sm_90a: 4 warps (a warpgroup) multiply together, and go on while they
  // do.

  /// `pointer`, of shared memory, at the next multiple of `bytes`.
  Value align(Value pointer, int64_t bytes);
  /// Makes what this thread has written to shared memory, or copied there and
  /// waited for, visible to warpgroups' units behind the next barrier.
  void fenceShared();
  /// What beginProducts() takes for 16 columns, those of number `sixteen`, of
  /// rows of 64 elements at `pointer`, where chunk c of 16 bytes of row r is in
  /// place c xor r % 8 of its 128 bytes.
  Value describeRows(Value pointer, int64_t sixteen);
  /// The same of columns, for products with 16 of the rows that lie there,
  /// those of number `sixteen`: columns from number 64 on are in another such
  /// block, `bytes` behind.
  Value describeColumns(Value pointer, int64_t sixteen, int64_t bytes);
  /// Starts to add the products of 64 lines, of which each warp has 16, and as
  /// many rows as there are `sums` (4 for 8 rows), along 16 columns for each of
  /// `rows`; or as many columns along 16 rows, where `isTransposed`. `left`, 4
  /// words for each, and sums are as multiplyAdd()'s; neither is to be touched
  /// before the wait. It is one piece of code: what comes between products
  /// would let them wait for one another.
  SmallVector<Value> beginProducts(Type element, ValueRange left,
                                   ValueRange rows, ValueRange sums,
                                   bool isTransposed = false);
  /// Waits until at most `groups` groups of products are under way.
  void waitForProducts(int64_t groups);
  /// Waits for all, and gives the sums.
  SmallVector<Value> waitForSums(ValueRange sums);

protected:
  Value assembly(StringRef text, StringRef constraints, Type result,
                 ValueRange operands);

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;

private:
  Value describe(Value pointer, int64_t offset, uint64_t rest);
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_UNITS_NVVMCODE_H
