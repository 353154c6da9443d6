//===- BlockRounding.h - How q8_0 is rounded to -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What quantizeBlocks and the code that is generated for caches of blocks agree
// on. A block's scale is its largest magnitude over kLargestCode, and a code is
// the nearest to an element over the scale.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_BLOCKROUNDING_H
#define KF_RUNTIME_CORE_BLOCKROUNDING_H

namespace kf {

/// The smallest code is the negative one.
inline constexpr int kLargestCode = 127;

/// All codes are 0 where a block has no element of this magnitude. The scale,
/// which is 0 in half precision, hides them anyway, and with larger ones only,
/// nothing depends on subnormal numbers, which a device may take for zeros.
inline constexpr float kLeastOfBlock = 0x1p-118f;

/// From this magnitude on, the scale of a block is infinite in half precision.
inline constexpr float kTooLargeForBlock = 65520.0f * kLargestCode;

} // namespace kf

#endif // KF_RUNTIME_CORE_BLOCKROUNDING_H
