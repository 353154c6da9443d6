//===- TokenChoice.h - Choosing tokens --------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A workgroup chooses the token of a row. What filters keep are the first
// tokens in the order of likelihood. A bound from below is found for them, and
// what is not below it is copied: mostly some dozens of tokens, at most one for
// each thread. A thread then compares its token with all others, which tells
// what filters keep and where the draw falls.
//
// Where more tokens are not below the bound, or there is none, the whole row is
// searched. Each filter bisects for the least logit that it keeps, by the count
// or the sum of weights of all tokens from that one on, which threads add up
// together. Where equal logits are kept in part, it bisects for the last id
// among them in the same way. The draw narrows down a range of ids by the sums
// of groups, and then of as many parts as there are threads.
//
// Logits are compared by integers in their order, for devices may take
// subnormal numbers for zeros. All threads compute the same of what is not
// their own share, so that they agree on every branch around a barrier.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_SAMPLING_TOKENCHOICE_H
#define KF_LIB_CONVERSION_KFTOGPU_SAMPLING_TOKENCHOICE_H

#include "SampleRow.h"

#include <functional>

namespace mlir::kf {

/// Code for a row at a time.
class TokenChoice : public SampleRow {
public:
  TokenChoice(GPUEmitter &e, SampleOp op);

  /// The token (i32) of row number `number` of the tile.
  void emit(Value number);

private:
  Value choose(Value largestId);
  Value draw();
  Value lowestOrder();
  Words topPTarget(const Words &all);

  //===--- A few tokens --------------------------------------------------===//

  /// What may be drawn, and what is known of it: i32s.
  struct Candidates {
    Value count; ///< more than threads: they were not copied
    Words all;   ///< the sum of all weights, where top-k is not limited
    /// Orders of logits: the least that top-p keeps is within [low, high).
    Value low, high;
  };
  Candidates findCandidates();
  Value reachOfTopK();
  Value weightBin(Value weight);
  Value firstBin();
  Words addBins(Value first);
  Value reachOfTopP(const Words &all);
  SmallVector<Value>
  leastOrders(ArrayRef<std::function<Value(Value weight)>> suffices);
  Value copyCandidates(Value leastOrder);
  Value drawCandidate(const Candidates &candidates);

  //===--- All tokens ----------------------------------------------------===//

  /// A token is kept if the order of its logit is above `order`, or equal to it
  /// and its id (i32) at most `lastId`.
  struct Filter {
    Value order, lastId;
  };
  /// What of a token counts.
  enum class Measure { One, Weight };

  Value drawOfAll(const Candidates &candidates);
  Value passes(const Filter &filter, Value logit, Value id);
  Value weightOf(Value logit, Value id);
  Words reach(const Filter &filter, Measure measure);
  Value bisect(Value low, Value high, const Words &target,
               function_ref<Words(Value middle)> reach);
  void keep(Value condition, Measure measure, Value low, Value high,
            function_ref<Words()> wanted);
  SmallVector<Value> pass(Value number, ValueRange state, const Words &weight,
                          const Words &point);
  SmallVector<Value> findPart(const Words &point, Value first,
                              ValueRange before);
  Value pick(const Words &point);

  Words seed, random;
  Value largestOrder, largest, scale;
  Value ownLargest;           ///< order of the largest logit of the thread's
  Value isLimited, isNucleus; ///< whether top-k and top-p drop anything
  Value leastWeight;          ///< i32, that min-p keeps

  int64_t places; ///< of reachOfTopK: a largest logit for a pair of threads
  /// Workgroup memory, of candidates in any order, and of bins.
  Value orders, ids, copied;

  SmallVector<Filter> filters; ///< so far, of the whole row
  bool filtersByMinP = false;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_SAMPLING_TOKENCHOICE_H
