//===- TensorParts.cpp - What parts of weights are packed from ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/TensorParts.h"

#include "runtime/core/FragmentTile.h"
#include "runtime/weights/WeightPacking.h"

#include <algorithm>

using namespace kf;

namespace {

/// Elements of the weight, in its logical order.
struct Run {
  int64_t begin = 0, end = 0;
};

/// The runs that are packed as a whole by the bytes from `first` to `end`, and
/// were not before. Parts begin and end between units, of which some have rows
/// of one group alone: the same rows of the others are not far behind.
std::vector<Run> runsOf(const WeightSpec &spec, int64_t first, int64_t end) {
  const int64_t unit = packedUnit(spec);
  const int64_t columns = spec.shape.back();
  if (spec.layout.kind == WeightLayout::Kind::RowMajor) {
    const int64_t elements = elementsPerBlock(spec.type);
    return {{first / unit * elements, end / unit * elements}};
  }
  const int64_t rows = spec.shape[spec.shape.size() - 2];
  const int64_t groups = spec.shape.size() > 2 ? spec.shape[0] : 1;
  const int64_t experts = spec.shape.size() > 3 ? spec.shape[1] : 1;
  const bool isPanel = spec.layout.kind == WeightLayout::Kind::Panels;
  const int64_t unitRows =
      isPanel ? spec.layout.panel : FragmentTile::rows / groups;
  const int64_t unitsEach = isPanel ? groups : 1; // with the same rows
  const int64_t ofExpert = ((rows - 1) / unitRows + 1) * unitsEach;
  std::vector<Run> runs;
  for (int64_t expert = first / unit / ofExpert;
       expert < experts && expert * ofExpert * unit < end; ++expert) {
    auto rowsBefore = [&](int64_t byte) {
      const int64_t units = byte / unit - expert * ofExpert;
      return std::min(std::max<int64_t>(units, 0) / unitsEach * unitRows, rows);
    };
    const int64_t begin = rowsBefore(first), behind = rowsBefore(end);
    if (begin < behind)
      for (int64_t group = 0; group < groups; ++group)
        runs.push_back(
            {((group * experts + expert) * rows + begin) * columns,
             ((group * experts + expert) * rows + behind) * columns});
  }
  return runs;
}

} // namespace

std::vector<TensorPart> kf::tensorPartsOf(const WeightSpec &spec,
                                          const WeightSource &source,
                                          int64_t first, int64_t bytes) {
  std::vector<Run> runs;
  const Result<int64_t> all = spec.packedBytes();
  if (!spec.transposed)
    runs = runsOf(spec, first, first + bytes);
  else if (all.ok() && first + bytes == *all)
    runs = {{0, INT64_MAX}};
  std::vector<TensorPart> parts;
  int64_t before = 0; // elements of the tensors so far
  for (const std::string &name : spec.names) {
    const Result<TensorView> tensor = source.describe(name);
    if (!tensor.ok())
      return parts;
    const int64_t blockElements = elementsPerBlock(tensor->type);
    const int64_t blockBytes = bytesPerBlock(tensor->type);
    const int64_t blocks = static_cast<int64_t>(tensor->bytes) / blockBytes;
    const int64_t count = blocks * blockElements;
    for (const Run &run : runs) {
      const int64_t begin = std::clamp<int64_t>(run.begin - before, 0, count);
      const int64_t end = std::clamp<int64_t>(run.end - before, 0, count);
      if (begin < end)
        parts.push_back(
            {name, static_cast<uint64_t>(begin / blockElements * blockBytes),
             static_cast<uint64_t>((end - begin) / blockElements *
                                   blockBytes)});
    }
    before += count;
  }
  return parts;
}
