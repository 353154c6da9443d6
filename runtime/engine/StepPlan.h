//===- StepPlan.h - What a step reads and what is wanted --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_STEPPLAN_H
#define KF_RUNTIME_ENGINE_STEPPLAN_H

#include "runtime/core/SamplingMath.h"
#include "runtime/engine/PagePool.h"
#include "runtime/model/Step.h"

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kf {

/// What a step reads and what is wanted of it, as a value that is made without
/// a device: the columns that runtime/model/Step.h lists, those of rows in the
/// order of the rows, and those of wanted rows in theirs.
struct StepPlan {
  /// Elements of each input, by StepInput, but for the page table and what the
  /// step's programs hand on.
  std::array<std::vector<std::byte>, kStepInputCount> columns;
  std::vector<std::span<const int32_t>> pages; ///< [S], in use; not owned
  /// Those of windows, by their tables: [S], of models whose caches have any.
  std::vector<std::span<const std::vector<int32_t>>> windowPages;
  std::vector<PageCopy> copies; ///< to be made before the step
  /// Rows whose logits the host wants, beside the L whose tokens are chosen,
  /// and those whose embeddings it wants.
  std::vector<int32_t> logitRows, embeddedRows;
  /// Wanted rows whose logits the host gets with the tokens that are chosen.
  std::vector<int32_t> fetchedRows;

  int64_t rows() const { return lengthOf(kStepIds); }         ///< T
  int64_t wanted() const { return lengthOf(kStepWanted); }    ///< L
  int64_t adjustments() const { return lengthOf(kStepSeen); } ///< A
  int64_t masks() const { return maskCount; }                 ///< M
  StepCounts counts() const;

  /// Adds a sequence of the step.
  void addSequence(const PagedSequence &sequence);
  /// Says which slot has the state of the last of `pages`, of models with any.
  void useSlot(int32_t slot) { add(kStepStates, slot); }
  /// Adds a row of the last of `pages`, which has this adapter; 0: none.
  void addRow(int32_t id, int64_t position, int32_t adapter = 0);
  /// Asks for the logits behind the last row.
  void wantLogits() { logitRows.push_back(lastRow()); }
  /// Asks for the embedding of the last row.
  void wantEmbedding() { embeddedRows.push_back(lastRow()); }
  /// Asks for the token behind the last row; choose() says how it is chosen.
  void want() { add(kStepWanted, lastRow()); }
  /// Says so of the first wanted row that it is not known of yet. `allowed` has
  /// a bit for each token of the vocabulary, or is empty: any.
  void choose(const SampleSettings &settings, const SamplePenalties &penalties,
              std::span<const LogitAdjustment> adjustments,
              std::span<const uint32_t> allowed = {});
  /// Has the logits of the wanted row that this was last said of come to the
  /// host, beside the token.
  void fetchLogits() {
    fetchedRows.push_back(static_cast<int32_t>(lengthOf(kStepSeed)) - 1);
  }
  void clear();

private:
  int32_t lastRow() const { return static_cast<int32_t>(rows()) - 1; }
  int64_t lengthOf(StepInput input) const {
    return static_cast<int64_t>(columns[input].size()) /
           static_cast<int64_t>(sizeOf(columnOf(input).type));
  }
  /// Adds elements to a column, whose type is T's.
  template <typename T> void add(StepInput input, std::span<const T> values) {
    assert(sizeof(T) == sizeOf(columnOf(input).type) &&
           "elements of another type");
    const std::span<const std::byte> bytes = std::as_bytes(values);
    columns[input].insert(columns[input].end(), bytes.begin(), bytes.end());
  }
  template <typename T> void add(StepInput input, const T &value) {
    add(input, std::span<const T>(&value, 1));
  }

  int32_t maskCount = 0;
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_STEPPLAN_H
