//===- BlockFields.h - Fields of blocks in vectors --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What packings of blocks share: vectors, and readers of fields and scales.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_BLOCKFIELDS_H
#define KF_RUNTIME_WEIGHTS_BLOCKFIELDS_H

#include "runtime/core/BlockFormat.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kf {

// 16 bytes: the width that every CPU of the x86-64 and AArch64 baselines has.
typedef uint8_t Bytes __attribute__((vector_size(16)));
typedef uint32_t Words __attribute__((vector_size(16)));
typedef uint64_t Longs __attribute__((vector_size(16)));

/// The fields of `plane` of one block, a byte each.
template <size_t Index, bool High>
void readPlane(const uint8_t *block, uint8_t *fields) {
  constexpr BlockFormat format = kBlockFormats[Index];
  constexpr BitPlane plane = High ? format.high : format.low;
  constexpr uint8_t mask = (1 << plane.bits) - 1;
  if constexpr (plane.run % 16 == 0) {
    // Runs of fields that lie at the same bit of consecutive bytes. Unrolled,
    // since vectors shift their bytes fast by constants alone.
#pragma clang loop unroll(full)
    for (int first = 0; first < format.elements; first += 16) {
      Bytes bytes;
      std::memcpy(&bytes, block + plane.byteOf(first), 16);
      bytes = bytes >> plane.bitOf(first) & mask;
      std::memcpy(fields + first, &bytes, 16);
    }
  } else if constexpr (plane.bits == 8) {
    std::memcpy(fields, block + plane.offset, format.elements);
  } else {
    static_assert(plane.bits == 1 && plane.run == 1);
    // Eight fields to a byte.
    for (int first = 0; first < format.elements; first += 8) {
      uint64_t bits = block[plane.byteOf(first)] * UINT64_C(0x0101010101010101);
      // Bit i of byte i, brought down to bit 0.
      bits =
          (bits & UINT64_C(0x8040201008040201)) + UINT64_C(0x00406070787c7e7f);
      bits = bits >> 7 & UINT64_C(0x0101010101010101);
      std::memcpy(fields + first, &bits, 8);
    }
  }
}

/// 16 columns' bytes in the order in which four lanes multiply them, four each
/// (FragmentTile): columns 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of lane t.
inline Words orderForLanes(Bytes bytes) {
  return (Words)__builtin_shufflevector(bytes, bytes, 0, 1, 8, 9, 2, 3, 10, 11,
                                        4, 5, 12, 13, 6, 7, 14, 15);
}

/// Scales and minimums of a block's sub-blocks, as they are stored: a byte
/// each, of up to 16 sub-blocks.
struct SubScaleBytes {
  Bytes scales, mins;
};

template <size_t Index> SubScaleBytes readSubScales(const uint8_t *block) {
  constexpr BlockFormat format = kBlockFormats[Index];
  const uint8_t *bytes = block + format.subScaleOffset;
  SubScaleBytes sub = {};
  // Four bytes that are as one in BlockFormat::subScaleAt().
  auto word = [&](int at) {
    uint32_t value;
    std::memcpy(&value, bytes + at, 4);
    return value;
  };
  if constexpr (format.subScales == SubScales::Packed6) {
    constexpr uint32_t six = 0x3f3f3f3f, four = 0x0f0f0f0f, upper = 0x30303030;
    const uint32_t first = word(0), second = word(4), third = word(8);
    sub.scales =
        (Bytes)Words{first & six, (third & four) | (first >> 2 & upper)};
    sub.mins =
        (Bytes)Words{second & six, (third >> 4 & four) | (second >> 2 & upper)};
  } else if constexpr (format.subScales == SubScales::Split6) {
    const uint32_t even = word(0), odd = word(4), top = word(8);
    const Words low = {even, odd, even >> 4, odd >> 4};
    const Words high = {top << 4, top << 2, top, top >> 2};
    sub.scales = (Bytes)((low & 0x0f0f0f0f) | (high & 0x30303030)) - 32;
  } else if constexpr (format.subScales == SubScales::TopsFirst6) {
    uint16_t tops;
    std::memcpy(&tops, bytes, 2);
    // Two bits to a byte.
    uint64_t high = tops;
    high = (high | high << 24) & UINT64_C(0x000000ff000000ff);
    high = (high | high << 12) & UINT64_C(0x000f000f000f000f);
    high = (high | high << 6) & UINT64_C(0x0303030303030303);
    // Halves of bytes in turn.
    uint64_t low = word(2);
    low = (low | low << 16) & UINT64_C(0x0000ffff0000ffff);
    low = (low | low << 8) & UINT64_C(0x00ff00ff00ff00ff);
    low = (low | low << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    sub.scales = (Bytes)Longs{low | high << 4, 0} - 32;
  } else {
    std::memcpy(&sub.scales, bytes, format.subBlocks());
  }
  return sub;
}

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_BLOCKFIELDS_H
