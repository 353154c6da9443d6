//===- KernelWork.h - What a kernel has to move and compute -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How much a kernel has to do at least, whatever code does it: what a profile
// divides by times, and what cost models compare with a machine's rates.
//
// Bytes are those of its operands and results, each once; of a table that rows
// are taken from, of slices and of a KV cache, those that are wanted. A
// product's multiply-add is two operations, any other arithmetic of an element
// one for each op that the formula has; views, conversions and copies are none.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_PROGRAM_KERNELWORK_H
#define KF_RUNTIME_PROGRAM_KERNELWORK_H

#include "runtime/core/KeyWindow.h"
#include "runtime/program/abi.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace kf {

/// A number that grows with the sizes of a step.
struct SizedCount {
  uint64_t constant = 0;
  std::array<uint64_t, KF_SCALAR_COUNT> perSize = {}; ///< by slot

  /// constant + the sum of perSize[s] * scalars[s]; `scalars` has
  /// KF_SCALAR_COUNT entries, none of them negative.
  double at(std::span<const int64_t> scalars) const;
  bool operator==(const SizedCount &) const = default;
};

/// What attention to a KV cache does for each key that its rows see.
struct KeyWork {
  /// Operands of the kernel that hold the position and the sequence of each
  /// row.
  uint32_t positions = 0, sequences = 0;
  KeyWindow window;         ///< keys that a row sees
  uint64_t bytesPerKey = 0; ///< of the key and its value, in all heads
  uint64_t flopsPerKey = 0; ///< for each row that sees it
  bool inBF16 = false;      ///< these are multiply-adds of bf16

  bool operator==(const KeyWork &) const = default;
};

struct KernelWork {
  SizedCount bytes;
  SizedCount flops;     ///< of floats, but for those below
  SizedCount int8Ops;   ///< multiply-adds of 8-bit integers, two each
  SizedCount bf16Flops; ///< multiply-adds of bf16, in tiles or pairs, two each
  std::optional<KeyWork> keys;

  bool multipliesBF16() const {
    return bf16Flops != SizedCount() || (keys && keys->inBF16);
  }
  bool operator==(const KernelWork &) const = default;
};

/// How many keys the rows of a step see.
struct KeyCounts {
  double seen = 0; ///< by all rows together
  double read = 0; ///< those of a sequence once, whoever sees them
};

/// Of rows with these positions, of these sequences, that see the keys of
/// `window`. Rows of negative positions see none; rows are as many as the
/// shorter list has.
KeyCounts countKeys(std::span<const int32_t> positions,
                    std::span<const int32_t> sequences, KeyWindow window);

/// What one dispatch has to do.
struct WorkAmount {
  double bytes = 0, flops = 0, int8Ops = 0, bf16Flops = 0;

  double operations() const { return flops + int8Ops + bf16Flops; }
  WorkAmount &operator+=(const WorkAmount &other) {
    bytes += other.bytes;
    flops += other.flops;
    int8Ops += other.int8Ops;
    bf16Flops += other.bf16Flops;
    return *this;
  }
};

/// Of `work`, in a step with `scalars` whose rows see `keys`.
WorkAmount amountOf(const KernelWork &work, std::span<const int64_t> scalars,
                    const KeyCounts &keys);

} // namespace kf

#endif // KF_RUNTIME_PROGRAM_KERNELWORK_H
