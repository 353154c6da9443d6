//===- SampleMath.h - Formulas of kf.sample ---------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code for the functions of runtime/core/SamplingMath.h, which gives the same
// bits.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KFTOVECTOR_SAMPLEMATH_H
#define KF_CONVERSION_KFTOVECTOR_SAMPLEMATH_H

#include "RowBlocks.h"

namespace mlir::kf {

class SampleMath : public ScalarCode {
public:
  using ScalarCode::ScalarCode;

  /// Whether `low` <= value <= `high`, and `low` < value with `isOpen`; false
  /// for NaN.
  Value isWithin(Value value, double low, double high, bool isOpen = false);

  /// See kf::adjustLogit; f32 but for `seen`, which is an i32.
  Value adjustLogit(Value logit, Value seen, Value bias, Value repetition,
                    Value presence, Value frequency);

  /// See kf::exponentScale.
  Value exponentScale(Value temperature);
  /// The weights (i32) of a vector of logits; `largest` and `scale` are
  /// scalars. See kf::tokenWeight.
  Value tokenWeights(Value logits, Value largest, Value scale);

  /// Vectors of i64 that hold the lanes, without sign, of a vector of i32.
  SmallVector<Value> widen(Value vector);
  /// What widen() made them of, from values below 2^32.
  Value narrow(ArrayRef<Value> parts, VectorType type);
  /// The sum of all lanes of vectors of i64.
  Value sum(ValueRange parts);

  /// See kf::topPSum; `sum` is an i64, `topP` an f32.
  Value topPSum(Value sum, Value topP);
  /// See kf::minPWeight: an i32.
  Value minPWeight(Value minP);
  /// See kf::drawPoint and kf::randomBits; i64 but for `counter`, an i32.
  Value drawPoint(Value sum, Value bits);
  Value randomBits(Value seed, Value counter);

  /// Numbers (i64) in the order of the floats (f32) that they stand for: a
  /// float's bits, those behind the sign turned over if it is negative.
  Value keyOf(Value number);
  Value floatOf(Value key);

private:
  Value highWord(Value product);
};

} // namespace mlir::kf

#endif // KF_CONVERSION_KFTOVECTOR_SAMPLEMATH_H
