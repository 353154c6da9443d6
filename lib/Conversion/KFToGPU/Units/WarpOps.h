//===- WarpOps.h - What a warp of NVIDIA GPUs does together -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What code of warps needs beside NvvmCode. Registers of two 16-bit numbers are
// i32, the first number in the low half.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_UNITS_WARPOPS_H
#define KF_LIB_CONVERSION_KFTOGPU_UNITS_WARPOPS_H

#include "NvvmCode.h"

namespace mlir::kf {

class WarpOps : public NvvmCode {
public:
  explicit WarpOps(GPUEmitter &emitter)
      : NvvmCode(emitter), i32(b.getI32Type()) {}

  //===--- Lanes ---------------------------------------------------------===//

  /// `value` (i32 or f32) of lane number (own xor `mask`).
  Value exchange(Value value, int64_t mask);
  /// `value` (i32 or f32) of lane number `number` of the four lanes that this
  /// one is among.
  Value ofGroup(Value value, int64_t number);
  /// Two words of lanes whose numbers differ in the bit `mask` change places:
  /// the one without it has both first words then, the other one both second.
  void exchangeWords(Value &first, Value &second, int64_t mask);
  using CombineFn = function_ref<Value(Value, Value)>;
  /// A bit for each lane: its `condition`.
  Value ballot(Value condition);
  /// `value` of all lanes whose numbers differ in the bits [first, end) alone.
  Value combineLanes(Value value, int64_t first, int64_t end,
                     CombineFn combine);

  /// `number`, an index below 2^31; LLVM does not see that it is the same, and
  /// computes nothing that depends on it any earlier.
  Value sameNumber(Value number);
  /// Lets LLVM compute `value` here, and not in a branch behind that uses it:
  /// a float of 16 or 32 bits; others stay where they are.
  void computeHere(Value value);

  /// Waits for all threads that have parts of the tile: of the workgroup, or of
  /// its cluster.
  void synchronizeTile();
  /// Pointers to what each of its workgroups has at `pointer` to workgroup
  /// memory, in their order.
  SmallVector<Value> inEachPart(Value pointer);

  /// What a warp's lanes have copied and read is seen by the others.
  void syncLanes();

  //===--- Numbers -------------------------------------------------------===//

  /// 2^x: the error is below 2 units in the last place. What is too small for
  /// all bits is 0.
  Value exp2(Value x);
  /// Bytes of `low` (0..3) and of `high` (4..7), that the digits of `selector`
  /// name from the lowest on; the highest bit of each is 0.
  Value selectBytes(Value low, Value high, int64_t selector);
  Value selectBytes(Value low, Value high, Value selector);
  /// Two f32 in one register, rounded to `element`; and the other way.
  Value pack(Type element, Value first, Value second);
  std::pair<Value, Value> unpack(Type element, Value packed);
  /// Two f32 as the sums of two numbers of `element` each: what is rounded, and
  /// what that leaves.
  std::pair<Value, Value> split(Type element, Value first, Value second);
  /// The same of any two: what would round to an infinity is the largest number
  /// of bf16, `element`, and what that leaves, which is an infinity where it
  /// was one and a NaN where it was that.
  std::pair<Value, Value> splitAll(Type element, Value first, Value second);

  //===--- Memory --------------------------------------------------------===//

  /// `bytes` of memory, a power of two up to 16 at a multiple of it, as
  /// registers: i32, of which one of 2 bytes has its low half filled.
  SmallVector<Value> loadRegisters(Value pointer, int64_t bytes,
                                   bool isVolatile = false);
  /// Four registers to 16 bytes of memory, at a multiple of 16.
  void storeRegisters(ValueRange registers, Value pointer);

  /// Starts to copy what this lane has of a warp's tile of `bytes`: 16 bytes
  /// from `from` on, which is its own, and those that lie as many warps'
  /// behind. Where `each` (i32) is 0, they are zeros.
  void copyTile(Value to, Value from, int64_t bytes, Value lane, Value each);

private:
  Type i32;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_UNITS_WARPOPS_H
