//===- BlockEncoder.h - Writing block-quantized storage ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the roundings to block formats share: storing codes and scales where
// BlockFormat says that they lie, and arithmetic that NaN and infinities go
// through without undefined behaviour.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_BLOCKENCODER_H
#define KF_RUNTIME_WEIGHTS_BLOCKENCODER_H

#include "runtime/core/BlockFormat.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kf::quantize {

/// `value` as an integer from `low` to `high`, cut off where it has a fraction;
/// `low` for NaN.
inline int truncateTo(float value, int low, int high) {
  if (!(value > static_cast<float>(low)))
    return low;
  return value < static_cast<float>(high) ? static_cast<int>(value) : high;
}

/// The integer nearest to `value` from `low` to `high`, halves away from zero;
/// `low` for NaN.
inline int roundTo(float value, int low, int high) {
  const int whole = truncateTo(value, low, high);
  const float rest = value - static_cast<float>(whole); // exact
  return std::clamp(whole + (rest >= 0.5f) - (rest <= -0.5f), low, high);
}

/// Four floats that are computed with at once: an extension of GCC and Clang,
/// faster than what compilers make of the searches' loops.
using Lanes = float __attribute__((vector_size(16)));
inline constexpr int kLanes = 4;

inline Lanes loadLanes(const float *values) {
  Lanes lanes;
  std::memcpy(&lanes, values, sizeof(lanes));
  return lanes;
}

inline double total(Lanes lanes) {
  return (double(lanes[0]) + lanes[1]) + (double(lanes[2]) + lanes[3]);
}

// For T = float or Lanes:

/// The integer nearest to `value` as a float, halves to even; for magnitudes
/// below 2^22.
template <typename T> T nearest(T value) {
  constexpr float shift = 12582912.0f; // 1.5 * 2^23: no room for a fraction
  return value + shift - shift;
}

/// `value` from `low` to `high`; `low` for NaN.
template <typename T> T clampTo(T value, float low, float high) {
  const T lowest = T{} + low, highest = T{} + high;
  value = value > lowest ? value : lowest;
  return value < highest ? value : highest;
}

/// 1 / value; 0 for 0.
inline float inverseOf(float value) { return value != 0 ? 1.0f / value : 0.0f; }

/// The element of largest magnitude, with its sign; the first of equals.
inline float largestMagnitude(const float *x, int count) {
  float largest = 0;
  for (int i = 0; i < count; ++i)
    if (std::fabs(x[i]) > std::fabs(largest))
      largest = x[i];
  return largest;
}

inline float roundToHalf(float value) {
  return halfToFloat(floatToHalf(value));
}

/// Stores the parts of one block, which has to be all zeros before.
template <DataType Type> class BlockEncoder {
public:
  static constexpr BlockFormat format = *findBlockFormat(Type);

  explicit BlockEncoder(uint8_t *block) : block(block) {}

  void putScale(float d) { storeScale(format, d, block); }
  void putMin(float m) {
    const uint16_t bits = floatToHalf(m);
    block[format.minOffset] = static_cast<uint8_t>(bits & 0xff);
    block[format.minOffset + 1] = static_cast<uint8_t>(bits >> 8);
  }

  /// The code of element `i`, at least 0 but for signed codes.
  void putCode(int i, int code) {
    const int low = code & ((1 << format.low.bits) - 1);
    block[format.low.byteOf(i)] |=
        static_cast<uint8_t>(low << format.low.bitOf(i));
    if constexpr (format.high.bits != 0)
      block[format.high.byteOf(i)] |=
          static_cast<uint8_t>(code >> format.low.bits << format.high.bitOf(i));
  }

  /// The scale and min of sub-block `i`, within what its bits can say.
  void putSubScale(int i, int scale, int min) {
    uint8_t *bytes = block + format.subScaleOffset;
    auto put = [&](int byte, int value) {
      bytes[byte] |= static_cast<uint8_t>(value);
    };
    if constexpr (format.subScales == SubScales::Nibbles) {
      put(i, scale | min << 4);
    } else if constexpr (format.subScales == SubScales::Int8) {
      put(i, scale);
    } else if constexpr (format.subScales == SubScales::Split6) {
      put(i % 8, ((scale + 32) & 15) << i / 8 * 4);
      put(8 + i % 4, (scale + 32) >> 4 << i / 4 * 2);
    } else if constexpr (format.subScales == SubScales::TopsFirst6) {
      put(2 + i / 2, ((scale + 32) & 15) << i % 2 * 4);
      put(i / 4, (scale + 32) >> 4 << i % 4 * 2);
    } else if (i < 4) {
      put(i, scale);
      put(i + 4, min);
    } else {
      put(i + 4, (scale & 15) | (min & 15) << 4);
      put(i - 4, scale >> 4 << 6);
      put(i, min >> 4 << 6);
    }
  }

private:
  uint8_t *block;
};

// Each rounds one block of floats at `x` to `block`, which is all zeros.
// PlainBlocks.cpp:
void encodeQ8_0(const float *x, uint8_t *block);
void encodeQ4_0(const float *x, uint8_t *block);
void encodeQ4_1(const float *x, uint8_t *block);
void encodeQ5_0(const float *x, uint8_t *block);
void encodeQ5_1(const float *x, uint8_t *block);
// AffineBlocks.cpp:
void encodeQ2_K(const float *x, uint8_t *block);
void encodeQ4_K(const float *x, uint8_t *block);
void encodeQ5_K(const float *x, uint8_t *block);
// SymmetricBlocks.cpp:
void encodeQ3_K(const float *x, uint8_t *block);
void encodeQ6_K(const float *x, uint8_t *block);
void encodeIq4Nl(const float *x, uint8_t *block);
void encodeMxfp4(const float *x, uint8_t *block);
void encodeIq4Xs(const float *x, uint8_t *block);

} // namespace kf::quantize

#endif // KF_RUNTIME_WEIGHTS_BLOCKENCODER_H
