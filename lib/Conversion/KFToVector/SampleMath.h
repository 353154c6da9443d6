//===- SampleMath.h - Sampling in vectors and wide integers -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas of kf.sample with sums and keys of 64 bits.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KFTOVECTOR_SAMPLEMATH_H
#define KF_CONVERSION_KFTOVECTOR_SAMPLEMATH_H

#include "../Common/SampleFormulas.h"
#include "RowBlocks.h"

namespace mlir::kf {

class SampleMath : public SampleFormulas {
public:
  explicit SampleMath(KernelEmitter &e) : SampleFormulas(e), e(e) {}

  /// The integer `value` on every lane of a vector.
  Value splat(Value value) { return e.splat(value, e.lanes); }

  /// Vectors of i64 that hold the lanes, without sign, of a vector of i32.
  SmallVector<Value> widen(Value vector);
  /// What widen() made them of, from values below 2^32.
  Value narrow(ArrayRef<Value> parts, VectorType type);
  /// The sum of all lanes of vectors of i64.
  Value sum(ValueRange parts);

  /// The formulas of Words, on i64s; `counter` is an i32, `topP` an f32.
  Value topPSum(Value sum, Value topP);
  Value drawPoint(Value sum, Value bits);
  Value randomBits(Value seed, Value counter);

  /// orderOf() in 64 bits, and back.
  Value keyOf(Value number);
  Value floatOf(Value key);

  KernelEmitter &e;

protected:
  Value powerOfTwo(Value fraction) override;

private:
  Words split(Value value);
  Value join(const Words &words);
};

} // namespace mlir::kf

#endif // KF_CONVERSION_KFTOVECTOR_SAMPLEMATH_H
