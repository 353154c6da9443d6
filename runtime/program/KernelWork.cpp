//===- KernelWork.cpp - What a kernel has to move and compute -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/KernelWork.h"

#include <algorithm>
#include <map>

using namespace kf;

double SizedCount::at(std::span<const int64_t> scalars) const {
  double count = static_cast<double>(constant);
  for (size_t slot = 0; slot < perSize.size(); ++slot)
    count +=
        static_cast<double>(perSize[slot]) * static_cast<double>(scalars[slot]);
  return count;
}

KeyCounts kf::countKeys(std::span<const int32_t> positions,
                        std::span<const int32_t> sequences, KeyWindow window) {
  struct Range {
    int64_t first, last;
  };
  std::map<int32_t, Range> ranges; // of positions, by sequence
  KeyCounts counts;
  const size_t rows = std::min(positions.size(), sequences.size());
  for (size_t row = 0; row < rows; ++row) {
    const int64_t last = positions[row];
    if (last < 0)
      continue;
    const int64_t first = window.firstOf(last);
    counts.seen += static_cast<double>(last - first + 1);
    auto [known, isNew] =
        ranges.try_emplace(sequences[row], Range{first, last});
    if (isNew)
      continue;
    known->second.first = std::min(known->second.first, first);
    known->second.last = std::max(known->second.last, last);
  }
  for (const auto &[sequence, range] : ranges)
    counts.read += static_cast<double>(range.last - range.first + 1);
  return counts;
}

WorkAmount kf::amountOf(const KernelWork &work,
                        std::span<const int64_t> scalars,
                        const KeyCounts &keys) {
  WorkAmount amount = {work.bytes.at(scalars), work.flops.at(scalars),
                       work.int8Ops.at(scalars), work.bf16Flops.at(scalars)};
  if (!work.keys)
    return amount;
  amount.bytes += keys.read * static_cast<double>(work.keys->bytesPerKey);
  (work.keys->inBF16 ? amount.bf16Flops : amount.flops) +=
      keys.seen * static_cast<double>(work.keys->flopsPerKey);
  return amount;
}
