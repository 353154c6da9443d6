//===- BlockPacking.h - Panels of block-quantized weights -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_BLOCKPACKING_H
#define KF_RUNTIME_WEIGHTS_BLOCKPACKING_H

#include "runtime/core/BlockFormat.h"

#include <cstddef>
#include <span>

namespace kf {

/// Brings `blocks` consecutive blocks of each row into the form of PackedBlock:
/// rows.size() * blocks * PackedBlock::bytes bytes at `dst`. A null row packs
/// as blocks of zero bytes. `type` is a block type. Any alignment. `next` are
/// rows as long that are likely to be packed next, or none: they are asked for
/// while these are packed.
void packBlockPanel(DataType type, std::span<const std::byte *const> rows,
                    std::span<const std::byte *const> next, int64_t blocks,
                    std::byte *dst);

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_BLOCKPACKING_H
