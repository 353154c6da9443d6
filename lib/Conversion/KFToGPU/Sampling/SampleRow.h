//===- SampleRow.h - What threads read of a row of logits -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A workgroup goes through a row. Groups of threads have a part of the ids
// each, of which neighbours read neighbours.
//
// Logits are adjusted where they are read, for a kernel has no memory for a row
// of its own: bits in workgroup memory tell which ids may be in the lists. Who
// reads one of those finds what became of its logit among the entries, which
// are in workgroup memory in order of their ids; if there are more than
// threads, it goes through the lists.
//
// All sums are integers, so it does not matter in which order threads add.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_SAMPLING_SAMPLEROW_H
#define KF_LIB_CONVERSION_KFTOGPU_SAMPLING_SAMPLEROW_H

#include "../../Common/SampleFormulas.h"
#include "../GPUEmitter.h"

namespace mlir::kf {

class SampleRow : public SampleFormulas {
public:
  SampleRow(GPUEmitter &e, SampleOp op);

protected:
  using CmpF = arith::CmpFPredicate;
  using CmpI = arith::CmpIPredicate;

  /// Goes on with row number `number` of the tile: the thread's share of it,
  /// and the row's settings.
  void startRow(Value number);
  /// Makes adjusted logits readable. All threads must come here.
  void markEntries();

  Value readLogit(Value id);
  /// The logit of token `id`, an index, after adjustments and mask.
  Value changedLogit(Value id);
  /// The state after a token, from that before it.
  using NextFn =
      function_ref<SmallVector<Value>(Value logit, Value id, ValueRange state)>;
  SmallVector<Value> scan(ValueRange start, NextFn next);

  Value workgroupWords() {
    return e.workgroupMemory(e.shape.threadCount, b.getI32Type());
  }
  Value loadWord(Value words, Value place);
  void storeWord(Value word, Value words, Value place);
  /// What `words` had at `place` before `word` was added.
  Value addToWord(Value word, Value words, Value place);
  Words load(Value lows, Value highs, Value place);
  Words addLanes(Words own, int64_t count);
  void addGroups(const Words &own, bool storesOwn);
  Words addAll(const Words &own);
  Words sum(function_ref<Value(Value logit, Value id)> element);

  /// The `count` i32s of the branch that is taken.
  using WordsFn = function_ref<SmallVector<Value>()>;
  SmallVector<Value> ifElseWords(Value condition, int64_t count, WordsFn yes,
                                 WordsFn no);

  GPUEmitter &e;
  SampleOp op;
  int64_t columns;
  int64_t lanes, groups, span; ///< threads of a group; groups; ids of a group
  Value lane;
  Value row;
  SampleSettings settings;     ///< the row's
  SampleMask mask;             ///< the same
  Value lowWords, highWords;   ///< workgroup memory, of a thread each
  Value groupLows, groupHighs; ///< the same, of a group each
  /// The same, free while no logits are read: those of sorted entries are here.
  Value weights;

private:
  void findEntries();
  void sortEntries();
  Value afterEntry(Value i, Value id, Value logit);
  Value findEntry(Value logit, Value id);
  Value adjusted(Value logit, Value id);
  Value masked(Value logit, Value id);
  Value changesOf(ArrayRef<Value> ids);
  Value markPlace(Value id);
  Value marksOf(ArrayRef<Value> ids);
  void store(const Words &words, Value lows, Value highs, Value place);
  Words addUp(Value lows, Value highs, int64_t count, Value first = Value());

  Value shareBegin, shareEnd; ///< the ids of the thread's group
  Value entry, entriesEnd;    ///< of the lists, the row's
  Value hasEntries, areSorted;
  Value marks;    ///< workgroup memory: a bit an id
  Value entryIds; ///< the same, of sorted entries
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_SAMPLING_SAMPLEROW_H
