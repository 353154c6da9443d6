//===- TokenCandidates.h - Tokens that can be drawn -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Filters without sorting. Vectors of the row that hold anything above a bound
// are copied, in order of ids, and the others are not looked at again. Each
// filter bisects for the least logit that it keeps, by counts or by sums of
// weights, and takes their weights from all tokens below.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KFTOVECTOR_TOKENCANDIDATES_H
#define KF_CONVERSION_KFTOVECTOR_TOKENCANDIDATES_H

#include "SampleMath.h"

namespace mlir::kf {

/// Emits code in the order in which its methods are called: collect(), filters,
/// pick().
class TokenCandidates : public SampleMath {
public:
  /// Of the rows that `row` scans.
  TokenCandidates(KernelEmitter &e, RowBlocks &row);

  /// Starts with the tokens of the row that was scanned. Without `isLimited`
  /// (i1) all can be drawn, else the `topK` (i32) most likely ones, and less
  /// likely ones may be missing.
  void collect(Value temperature, Value isLimited, Value topK);
  /// Applies a filter where `condition` (i1) holds.
  void filterIf(Value condition, function_ref<void()> filter);
  /// Keeps the topK most likely tokens; topK is positive.
  void keepTopK(Value topK);
  /// Keeps the most likely tokens whose weights sum up to topP of all.
  void keepTopP(Value topP);
  /// Keeps what weighs enough; the sum (i64) of all that is left.
  Value keepMinP(Value minP);
  /// The first token (i32), in order of ids, up to which weights sum up to more
  /// than `point`, which is below the sum of all.
  Value pick(Value point);

private:
  using Predicate = arith::CmpFPredicate;
  /// Logits of neighbouring ids, a vector of them, and their weights, which are
  /// 0 for what is no candidate.
  struct Group {
    Value logits, weights, ids;
  };
  /// What is kept if logits below that of `key`, an i64, are not.
  using Measure = function_ref<Value(Value key)>;
  /// Keys, and what is kept at both.
  struct Range {
    Value low, high, atLow, atHigh;
  };
  /// The largest key that keeps as much as is wanted.
  struct Threshold {
    Value key;
    Value at;    ///< what it keeps
    Value above; ///< what the next one keeps, unless `at` is what is wanted
  };

  Value reachOfTopK(Value topK);
  Value copyBlock(Value firstId, RowBlocks::Load load, Value number);
  Range range(Value low, Value high);
  Threshold bisect(Range range, Value wanted, Measure measure);
  Threshold search(Value wanted, Measure measure);
  void dropUnless(function_ref<Value(const Group &)> mask);
  void keep(const Threshold &threshold, Value wanted, Value unit);
  Value lastOfEquals(Value logit, Value wanted);

  Group group(Value number);
  void setGroup(Value number, Value values, Value weights, Value firstId);
  void setWeights(Value number, Value values);
  void forGroups(function_ref<void(Value number)> body);
  Value countLanes(function_ref<Value(const Group &)> mask);
  Value sumWeights(function_ref<Value(Value number, const Group &)> part);

  Value zeros() { return number(integers, 0); }
  Value weigh(Value logits) { return tokenWeights(logits, row.largest, scale); }
  Value wide(Value value) {
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), value);
  }
  Value isAtLeast(Value values, Value limit) {
    return compare(Predicate::OGE, values, splat(limit));
  }
  Value isNonzero(Value values) {
    return compare(arith::CmpIPredicate::ne, values, zeros());
  }

  RowBlocks &row;
  VectorType integers;   ///< of i32, as wide as a register
  Value lanes;           ///< 0, 1, 2 ... of that type
  Value logits, weights; ///< scratch [groups][lanes] of f32 and i32
  Value firstIds;        ///< scratch [groups] of i32
  Value groups;          ///< how many there are, an index

  Value scale;      ///< of differences of logits to exponents of weights
  Value leastLogit; ///< of what was collected
};

} // namespace mlir::kf

#endif // KF_CONVERSION_KFTOVECTOR_TOKENCANDIDATES_H
