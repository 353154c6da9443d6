//===- SampleFormulas.h - Formulas of kf.sample -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code for the functions of runtime/core/SamplingMath.h, which gives the same
// bits. Integers of 64 bits are two of 32, for targets that have no wider ones.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_COMMON_SAMPLEFORMULAS_H
#define KF_CONVERSION_COMMON_SAMPLEFORMULAS_H

#include "ScalarCode.h"

#include <limits>

namespace mlir::kf {

/// An integer of 64 bits without sign, in two of 32.
struct Words {
  Value low, high;
};

/// What a row's token is chosen by, scalars as kf.sample has them, but for the
/// seed; `first` and what follows with adjustments only.
struct SampleSettings {
  Value temperature, topK, topP, minP, counter;
  Value first, count, repetition, presence, frequency;
};

/// Which tokens a row may choose; null values where kf.sample has no mask.
struct SampleMask {
  Value row;      ///< an index: of `mask`, the row's
  Value isMasked; ///< whether there is one; any token else
};

class SampleFormulas : public ScalarCode {
public:
  using ScalarCode::ScalarCode;
  virtual ~SampleFormulas() = default;

  /// The largest finite f32.
  static constexpr double kMost = std::numeric_limits<float>::max();

  SampleSettings loadSettings(SampleOp op, Value row);
  SampleMask loadMask(SampleOp op, Value row);
  /// Whether a token can be chosen by them.
  Value areValid(const SampleSettings &settings);

  /// Whether `low` <= value <= `high`, and `low` < value with `isOpen`; false
  /// for NaN.
  Value isWithin(Value value, double low, double high, bool isOpen = false);
  /// The same of what orderOf() gives.
  Value isOrderWithin(Value order, double low, double high,
                      bool isOpen = false);

  /// See kf::adjustLogit; f32 but for `seen`, which is an i32.
  Value adjustLogit(Value logit, Value seen, Value bias,
                    const SampleSettings &settings);

  /// Whether bit `place` (i32, below 32) of a mask's word (i32) is set.
  Value isAllowed(Value word, Value place);

  /// See kf::exponentScale.
  Value exponentScale(Value temperature);
  /// The weights (i32) of logits, a scalar or a vector; `largest` and `scale`
  /// are scalars. See kf::tokenWeight.
  Value tokenWeights(Value logits, Value largest, Value scale);

  /// See kf::topPSum; `topP` is an f32 below 1.
  Words topPSum(const Words &sum, Value topP);
  /// See kf::minPWeight: an i32.
  Value minPWeight(Value minP);
  /// See kf::drawPoint and kf::randomBits; `counter` is an i32.
  Words drawPoint(const Words &sum, const Words &bits);
  Words randomBits(const Words &seed, Value counter);

  /// Numbers (i32) in the order of the floats (f32) that they stand for: a
  /// float's bits, and the negative of those behind the sign if that is set.
  /// Zeros are equal, and subnormal numbers other than them everywhere; NaNs
  /// come before and behind the infinities.
  Value orderOf(Value number);
  Value numberOf(Value order);

  Words add(const Words &lhs, const Words &rhs);
  Words subtract(const Words &lhs, const Words &rhs);
  /// Of i32s without sign.
  Words multiply(Value lhs, Value rhs);
  Value isBelow(const Words &lhs, const Words &rhs);

protected:
  /// 2^(30 + fraction / 2^32) of integers (i32) without sign, rounded down at
  /// each step; see kf::kExp2.
  virtual Value powerOfTwo(Value fraction);

private:
  Value dropTiny(Value x);
};

} // namespace mlir::kf

#endif // KF_CONVERSION_COMMON_SAMPLEFORMULAS_H
