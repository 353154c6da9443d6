//===- ExpertTiles.h - Weights of experts in the order of units -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `#kf.fragments` of weights that may be those of experts, [1, E, N, K] or, of
// gate and up, [2, E, N, K]: the row blocks of one expert (FragmentTile), which
// are those of its weight alone, follow those of another.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_EXPERTTILES_H
#define KF_RUNTIME_CORE_EXPERTTILES_H

#include "runtime/core/FragmentTile.h"

namespace kf {

/// Whether weights of this shape have row blocks.
constexpr bool hasRowBlocks(std::span<const int64_t> shape) {
  return hasFragments(shape) ||
         (shape.size() == 4 && (shape[0] == 1 || shape[0] == 2));
}

/// Bytes of a weight of `shape`, with dimensions from 1 on, for which
/// hasRowBlocks(); nothing where they are too many to count.
constexpr std::optional<int64_t> rowBlockBytes(const FragmentTile &tile,
                                               std::span<const int64_t> shape) {
  if (shape.size() != 4)
    return fragmentBytes(tile, shape);
  const int64_t pair[] = {shape[0], shape[2], shape[3]};
  std::optional<int64_t> bytes = fragmentBytes(
      tile, shape[0] == 2 ? std::span<const int64_t>(pair) : shape.subspan(2));
  if (!bytes || __builtin_mul_overflow(*bytes, shape[1], &*bytes))
    return std::nullopt;
  return bytes;
}

} // namespace kf

#endif // KF_RUNTIME_CORE_EXPERTTILES_H
