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
#include "runtime/weights/ReadAhead.h"

#include <cstddef>
#include <cstdint>

namespace kf {

/// Brings `blocks` consecutive blocks of each row into the form of PackedBlock:
/// panel.rows.size() * blocks * PackedBlock::bytes bytes at `dst`. A null row
/// packs as blocks of zero bytes. `type` is a block type. Any alignment.
void packBlockPanel(DataType type, const PanelRows &panel, int64_t blocks,
                    std::byte *dst);

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_BLOCKPACKING_H
