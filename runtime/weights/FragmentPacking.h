//===- FragmentPacking.h - Weights in the order of matrix units -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_FRAGMENTPACKING_H
#define KF_RUNTIME_WEIGHTS_FRAGMENTPACKING_H

#include "runtime/core/FragmentTile.h"

#include <cstddef>
#include <span>

namespace kf {

/// Brings `tiles` tiles of K of one row block of f16, bf16, f32 or f8E4M3FN
/// into the form of FragmentTile: 512 * tiles bytes at `dst`. `rows` are the
/// block's fragment rows, FragmentTile::lineWords words a tile each; a null row
/// is one of zeros. Any alignment.
void packFragments(DataType type,
                   std::span<const std::byte *const, FragmentTile::rows> rows,
                   int64_t tiles, std::byte *dst);

/// Brings one row block of rows of `blocks` blocks into the form of
/// FragmentTile, whole tiles at `dst`. `type` is one of blocks.
/// A null row is one of zeros. Any alignment.
void packFragmentBlocks(
    DataType type, std::span<const std::byte *const, FragmentTile::rows> rows,
    int64_t blocks, std::byte *dst);

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_FRAGMENTPACKING_H
