//===- QuantizeBlocks.cpp - Rounding to block-quantized storage -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/BlockFormat.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

namespace kf {
namespace {

constexpr int kSmall = 32;  // elements of a q8_0 or q4_0 block
constexpr int kSuper = 256; // elements of a q4_k or q6_k block

// What is stored at each byte of a block. All members are bytes, so that the
// structs have no padding and any alignment will do.

struct BlockQ8_0 {
  uint8_t d[2];
  int8_t quants[32];
};
struct BlockQ4_0 {
  uint8_t d[2];
  uint8_t quants[16];
};
struct BlockQ4_K {
  uint8_t d[2], dmin[2];
  uint8_t scales[12];
  uint8_t quants[128];
};
struct BlockQ6_K {
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];
  uint8_t d[2];
};
static_assert(sizeof(BlockQ8_0) == findBlockFormat(DataType::Q8_0)->bytes);
static_assert(sizeof(BlockQ4_0) == findBlockFormat(DataType::Q4_0)->bytes);
static_assert(sizeof(BlockQ4_K) == findBlockFormat(DataType::Q4_K)->bytes);
static_assert(sizeof(BlockQ6_K) == findBlockFormat(DataType::Q6_K)->bytes);

float loadHalf(const uint8_t (&bytes)[2]) {
  return halfToFloat(static_cast<uint16_t>(bytes[0] | bytes[1] << 8));
}
void storeHalf(float value, uint8_t (&bytes)[2]) {
  uint16_t bits = floatToHalf(value);
  bytes[0] = static_cast<uint8_t>(bits & 0xff);
  bytes[1] = static_cast<uint8_t>(bits >> 8);
}

/// The integer nearest to `value` in [low, high], halves away from zero; `low`
/// for NaN.
int roundTo(float value, int low, int high) {
  float rounded = std::round(value);
  if (!(rounded > static_cast<float>(low)))
    return low;
  return rounded < static_cast<float>(high) ? static_cast<int>(rounded) : high;
}

float inverseOf(float value) { return value != 0 ? 1.0f / value : 0.0f; }

/// The element of largest magnitude, with its sign; the first of equals.
float largestMagnitude(const float *x, int count) {
  float largest = 0;
  for (int i = 0; i < count; ++i)
    if (std::fabs(x[i]) > std::fabs(largest))
      largest = x[i];
  return largest;
}

//===----------------------------------------------------------------------===//
// q8_0 and q4_0
//===----------------------------------------------------------------------===//

void quantize(const float *x, BlockQ8_0 &block) {
  float d = std::fabs(largestMagnitude(x, kSmall)) / 127.0f;
  float inverse = inverseOf(d);
  storeHalf(d, block.d);
  for (int i = 0; i < kSmall; ++i)
    block.quants[i] = static_cast<int8_t>(roundTo(x[i] * inverse, -127, 127));
}

void quantize(const float *x, BlockQ4_0 &block) {
  // The element of largest magnitude becomes -8, the end of the range that has
  // one value more.
  float d = largestMagnitude(x, kSmall) / -8.0f;
  float inverse = inverseOf(d);
  storeHalf(d, block.d);
  // ggml adds 8.5 and truncates: halves go up, not away from zero.
  auto quant = [&](float value) {
    return roundTo(std::floor(value * inverse + 8.5f), 0, 15);
  };
  for (int i = 0; i < kSmall / 2; ++i)
    block.quants[i] =
        static_cast<uint8_t>(quant(x[i]) | quant(x[i + kSmall / 2]) << 4);
}

//===----------------------------------------------------------------------===//
// q4_k
//===----------------------------------------------------------------------===//

/// Stores sub-block `i` (SubScales::Packed6) in bytes that start as zeros; in
/// rising `i`.
void packScale(uint8_t (&packed)[12], int i, int scale, int min) {
  if (i < 4) {
    packed[i] = static_cast<uint8_t>(scale);
    packed[i + 4] = static_cast<uint8_t>(min);
  } else {
    packed[i + 4] = static_cast<uint8_t>((scale & 15) | (min & 15) << 4);
    packed[i - 4] |= static_cast<uint8_t>((scale >> 4) << 6);
    packed[i] |= static_cast<uint8_t>((min >> 4) << 6);
  }
}

/// x[i] is near step * q[i] - offset, q in [0, 15], offset >= 0.
struct AffineFit {
  float step = 0, offset = 0;
};

/// Tries ranges around [min(x), max(x)]; for the quants that each gives, solves
/// the least-squares step and offset, and keeps what errs least.
AffineFit fitAffine(const float *x, int count) {
  float low = std::min(0.0f, *std::min_element(x, x + count));
  float high = *std::max_element(x, x + count);
  AffineFit best;
  best.offset = -low;
  if (!(high > low))
    return best;
  best.step = (high - low) / 15.0f;
  double bestError = -1;
  for (int attempt = -10; attempt <= 10; ++attempt) {
    float inverse = (15.0f + 0.1f * static_cast<float>(attempt)) / (high - low);
    double sumQ = 0, sumQQ = 0, sumX = 0, sumXQ = 0;
    for (int i = 0; i < count; ++i) {
      double quant = roundTo(inverse * (x[i] - low), 0, 15);
      sumQ += quant, sumQQ += quant * quant;
      sumX += x[i], sumXQ += quant * x[i];
    }
    double determinant = count * sumQQ - sumQ * sumQ;
    if (determinant <= 0)
      continue;
    double step = (count * sumXQ - sumQ * sumX) / determinant;
    double offset = (sumQ * sumXQ - sumQQ * sumX) / determinant;
    if (offset < 0) { // not storable: the best step without an offset
      step = sumXQ / sumQQ;
      offset = 0;
    }
    double error = 0;
    for (int i = 0; i < count; ++i) {
      double quant = roundTo(inverse * (x[i] - low), 0, 15);
      double difference = step * quant - offset - x[i];
      error += difference * difference;
    }
    if (step > 0 && (bestError < 0 || error < bestError)) {
      bestError = error;
      best = {static_cast<float>(step), static_cast<float>(offset)};
    }
  }
  return best;
}

void quantize(const float *x, BlockQ4_K &block) {
  AffineFit fits[8];
  float largestStep = 0, largestOffset = 0;
  for (int sub = 0; sub < 8; ++sub) {
    fits[sub] = fitAffine(x + sub * 32, 32);
    largestStep = std::max(largestStep, fits[sub].step);
    largestOffset = std::max(largestOffset, fits[sub].offset);
  }
  std::memset(&block, 0, sizeof(block));
  storeHalf(largestStep / 63.0f, block.d);
  storeHalf(largestOffset / 63.0f, block.dmin);
  float inverseD = inverseOf(loadHalf(block.d));
  float inverseMin = inverseOf(loadHalf(block.dmin));
  for (int sub = 0; sub < 8; ++sub) {
    int scale = roundTo(fits[sub].step * inverseD, 0, 63);
    int min = roundTo(fits[sub].offset * inverseMin, 0, 63);
    packScale(block.scales, sub, scale, min);
    // The quants follow from the scales as they were stored.
    float inverse = inverseOf(loadHalf(block.d) * static_cast<float>(scale));
    float offset = loadHalf(block.dmin) * static_cast<float>(min);
    uint8_t *quants = block.quants + sub / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      int quant = roundTo((x[sub * 32 + i] + offset) * inverse, 0, 15);
      quants[i] |= static_cast<uint8_t>(sub % 2 == 0 ? quant : quant << 4);
    }
  }
}

//===----------------------------------------------------------------------===//
// q6_k
//===----------------------------------------------------------------------===//

// Element e of a half block of 128 is number i = e % 32 of quarter e / 32. Its
// low bits are in byte i (+ 32 for the odd quarters), the low half of it for
// the first two quarters; its high bits are bits 2 * quarter of byte i.

/// The step whose multiples in [-32, 31] are nearest to `x`, by the same search
/// as fitAffine.
float fitStep(const float *x, int count) {
  float largest = largestMagnitude(x, count);
  if (largest == 0)
    return 0;
  float best = -largest / 32.0f;
  double bestGain = -1;
  for (int attempt = -9; attempt <= 9; ++attempt) {
    float inverse = -(32.0f + 0.1f * static_cast<float>(attempt)) / largest;
    double sumXQ = 0, sumQQ = 0;
    for (int i = 0; i < count; ++i) {
      double quant = roundTo(inverse * x[i], -32, 31);
      sumXQ += quant * x[i];
      sumQQ += quant * quant;
    }
    // With the best step for these quants, the error is sum x^2 - gain.
    double gain = sumQQ > 0 ? sumXQ * sumXQ / sumQQ : 0;
    if (gain > bestGain && sumQQ > 0) {
      bestGain = gain;
      best = static_cast<float>(sumXQ / sumQQ);
    }
  }
  return best;
}

void quantize(const float *x, BlockQ6_K &block) {
  float steps[16];
  for (int sub = 0; sub < 16; ++sub)
    steps[sub] = fitStep(x + sub * 16, 16);
  std::memset(&block, 0, sizeof(block));
  // The largest step becomes scale -128, the end of the range that has one
  // value more.
  storeHalf(largestMagnitude(steps, 16) / -128.0f, block.d);
  float d = loadHalf(block.d), inverseD = inverseOf(d);
  for (int sub = 0; sub < 16; ++sub)
    block.scales[sub] =
        static_cast<int8_t>(roundTo(steps[sub] * inverseD, -128, 127));
  for (int e = 0; e < kSuper; ++e) {
    int half = e / 128, quarter = e % 128 / 32, i = e % 32;
    float inverse = inverseOf(d * static_cast<float>(block.scales[e / 16]));
    int quant = roundTo(x[e] * inverse, -32, 31) + 32;
    block.low[half * 64 + quarter % 2 * 32 + i] |=
        static_cast<uint8_t>((quant & 15) << (quarter < 2 ? 0 : 4));
    block.high[half * 32 + i] |=
        static_cast<uint8_t>((quant >> 4) << (2 * quarter));
  }
}

//===----------------------------------------------------------------------===//
// Runs of blocks
//===----------------------------------------------------------------------===//

template <typename Block>
void quantizeEach(const float *src, int64_t blocks, int64_t elements,
                  void *dst) {
  Block *to = static_cast<Block *>(dst);
  for (int64_t i = 0; i < blocks; ++i)
    quantize(src + i * elements, to[i]);
}

} // namespace

bool canQuantize(DataType type) {
  return type == DataType::Q8_0 || type == DataType::Q4_0 ||
         type == DataType::Q4_K || type == DataType::Q6_K;
}

void quantizeBlocks(DataType type, const float *src, int64_t blocks,
                    void *dst) {
  switch (type) {
  case DataType::Q8_0:
    return quantizeEach<BlockQ8_0>(src, blocks, kSmall, dst);
  case DataType::Q4_0:
    return quantizeEach<BlockQ4_0>(src, blocks, kSmall, dst);
  case DataType::Q4_K:
    return quantizeEach<BlockQ4_K>(src, blocks, kSuper, dst);
  case DataType::Q6_K:
    return quantizeEach<BlockQ6_K>(src, blocks, kSuper, dst);
  default:
    assert(false && "no rounding to this type");
  }
}

} // namespace kf
