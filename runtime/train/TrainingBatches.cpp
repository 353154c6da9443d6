//===- TrainingBatches.cpp - Examples as batches --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingBatches.h"

#include "runtime/train/CounterRandom.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <utility>

using namespace kf;

/// The stream of CounterRandom that orders the rows of an epoch.
static constexpr uint64_t kOrderStream = 0x6f72646572; // "order"

/// What an example takes of a row: its last token is read by nobody.
static size_t placesOf(const TrainingExample &example) {
  return example.ids.size() - 1;
}

TrainingBatches::TrainingBatches(std::span<const TrainingExample> examples,
                                 const Options &options)
    : examples(examples), options(options) {
  assert(!examples.empty() && options.rows > 0 && options.length > 0);
  pack();
}

void TrainingBatches::pack() {
  std::vector<size_t> sorted(examples.size());
  std::iota(sorted.begin(), sorted.end(), size_t{0});
  if (!options.pack) {
    rowExamples = std::move(sorted);
    rowStarts.resize(examples.size() + 1);
    std::iota(rowStarts.begin(), rowStarts.end(), size_t{0});
    return;
  }
  std::ranges::sort(sorted, {}, [&](size_t example) {
    return std::pair(-static_cast<int64_t>(placesOf(examples[example])),
                     example);
  });
  std::vector<std::vector<size_t>> rows;
  std::map<size_t, std::vector<size_t>> rowsByRoom;
  for (size_t example : sorted) {
    const size_t places = placesOf(examples[example]);
    auto room = rowsByRoom.lower_bound(places);
    size_t row = rows.size(), left = static_cast<size_t>(options.length);
    if (room == rowsByRoom.end()) {
      rows.emplace_back();
    } else {
      row = room->second.back();
      left = room->first;
      room->second.pop_back();
      if (room->second.empty())
        rowsByRoom.erase(room);
    }
    assert(places <= left && "an example longer than a row");
    rows[row].push_back(example);
    rowsByRoom[left - places].push_back(row);
  }
  for (const std::vector<size_t> &row : rows) {
    rowStarts.push_back(rowExamples.size());
    rowExamples.insert(rowExamples.end(), row.begin(), row.end());
  }
  rowStarts.push_back(rowExamples.size());
}

int64_t TrainingBatches::count() const {
  if (options.epochs == 0)
    return INT64_MAX;
  return (options.epochs * epochRows() + options.rows - 1) / options.rows;
}

TrainingBatch TrainingBatches::batch(int64_t number) {
  TrainingBatch batch;
  batch.rows = options.rows;
  batch.length = options.length;
  const auto size = static_cast<size_t>(options.rows * options.length);
  batch.ids.assign(size, 0);
  batch.positions.assign(size, 0);
  batch.examples.assign(size, -1);
  batch.labels.assign(size, kNoLabel);
  for (int64_t place = 0; place < options.rows; ++place) {
    const int64_t row = number * options.rows + place;
    const int64_t epoch = row / epochRows();
    if (options.epochs != 0 && epoch >= options.epochs)
      break;
    auto at = static_cast<size_t>(row % epochRows());
    if (options.shuffle) {
      if (orderedEpoch != epoch)
        order = CounterRandom(options.seed,
                              kOrderStream + static_cast<uint64_t>(epoch))
                    .permutation(static_cast<size_t>(epochRows()));
      orderedEpoch = epoch;
      at = order[at];
    }
    addRow(at, place, batch);
  }
  return batch;
}

void TrainingBatches::addRow(size_t row, int64_t place,
                             TrainingBatch &batch) const {
  auto at = static_cast<size_t>(place * options.length);
  for (size_t i = rowStarts[row]; i < rowStarts[row + 1]; ++i) {
    const TrainingExample &example = examples[rowExamples[i]];
    for (size_t position = 0; position < placesOf(example); ++position, ++at) {
      batch.ids[at] = example.ids[position];
      batch.positions[at] = static_cast<int32_t>(position);
      batch.examples[at] = static_cast<int32_t>(i - rowStarts[row]);
      if (example.counts[position + 1])
        batch.labels[at] = example.ids[position + 1];
    }
  }
}
