//===- TrainingBatches.h - Examples as batches ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Examples are packed into rows once, by their lengths alone: the longest
// first, each into the row with the least room that is enough. An epoch is all
// rows in an order that the seed and its number give, and batches are the rows
// of one epoch behind another's. So the n-th batch follows from the data, the
// seed and n.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_TRAININGBATCHES_H
#define KF_RUNTIME_TRAIN_TRAININGBATCHES_H

#include "runtime/train/ExampleEncoder.h"
#include "runtime/train/TrainingModel.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kf {

/// One thread.
class TrainingBatches {
public:
  struct Options {
    int64_t rows = 1;    ///< B
    int64_t length = 0;  ///< T
    bool pack = true;    ///< else a row has one example
    bool shuffle = true; ///< else rows are in the order of their longest
                         ///< examples' lengths, or, not packed, of the data
    uint64_t seed = 0;   ///< of the order
    int64_t epochs = 0;  ///< rows behind them are empty; 0: there is no end
  };

  /// Of examples of 2 to T + 1 tokens, at least one, which must outlive it.
  TrainingBatches(std::span<const TrainingExample> examples,
                  const Options &options);

  /// Rows of one epoch.
  int64_t epochRows() const {
    return static_cast<int64_t>(rowStarts.size()) - 1;
  }
  /// Batches until the end; INT64_MAX where there is none.
  int64_t count() const;

  /// The batch number `number`, from 0. An example of n tokens takes n - 1
  /// places, whose labels are the tokens from the second on.
  TrainingBatch batch(int64_t number);

private:
  void pack();
  void addRow(size_t row, int64_t place, TrainingBatch &batch) const;

  std::span<const TrainingExample> examples;
  Options options;
  // Examples of row r: rowExamples[rowStarts[r] ... rowStarts[r + 1]).
  std::vector<size_t> rowStarts, rowExamples;
  int64_t orderedEpoch = -1;
  std::vector<size_t> order; ///< of the rows in that epoch
};

} // namespace kf

#endif // KF_RUNTIME_TRAIN_TRAININGBATCHES_H
