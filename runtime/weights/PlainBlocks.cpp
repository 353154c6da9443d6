//===- PlainBlocks.cpp - Rounding with one scale a block ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Formats whose rounding ggml defines: one pass, no search. The result is its
// reference's byte for byte, so the order of operations matters, and codes
// follow from the scale before it is rounded to half precision. Codes that a
// scale of 0 hides may differ (kLeastOfBlock).
//
//===----------------------------------------------------------------------===//

#include "runtime/core/BlockRounding.h"
#include "runtime/weights/BlockEncoder.h"

namespace kf::quantize {
namespace {

/// Codes around `zero`: the element of largest magnitude gets code 0, the end
/// of the range that has one value more.
template <DataType Type> void encodeSymmetric(const float *x, uint8_t *block) {
  BlockEncoder<Type> encoder(block);
  constexpr int zero = encoder.format.zero;
  constexpr int elements = encoder.format.elements;
  const float d = largestMagnitude(x, elements) / -static_cast<float>(zero);
  const float inverse = inverseOf(d);
  encoder.putScale(d);
  // Cutting off after adding a half: halves go up, not away from zero.
  for (int i = 0; i < elements; ++i)
    encoder.putCode(
        i, truncateTo(x[i] * inverse + (static_cast<float>(zero) + 0.5f), 0,
                      2 * zero - 1));
}

/// Codes from 0 for the least element to the most for the largest.
template <DataType Type> void encodeRange(const float *x, uint8_t *block) {
  BlockEncoder<Type> encoder(block);
  constexpr int elements = encoder.format.elements;
  constexpr int most = (1 << encoder.format.codeBits()) - 1;
  const float low = *std::min_element(x, x + elements);
  const float high = *std::max_element(x, x + elements);
  const float d = (high - low) / static_cast<float>(most);
  const float inverse = inverseOf(d);
  encoder.putScale(d);
  encoder.putMin(low);
  for (int i = 0; i < elements; ++i)
    encoder.putCode(i, truncateTo((x[i] - low) * inverse + 0.5f, 0, most));
}

} // namespace

void encodeQ8_0(const float *x, uint8_t *block) {
  BlockEncoder<DataType::Q8_0> encoder(block);
  constexpr int elements = encoder.format.elements;
  const float largest = std::fabs(largestMagnitude(x, elements));
  const float d = largest / kLargestCode;
  const float inverse = largest < kLeastOfBlock ? 0.0f : 1.0f / d;
  encoder.putScale(d);
  for (int i = 0; i < elements; ++i)
    encoder.putCode(i, roundTo(x[i] * inverse, -kLargestCode, kLargestCode));
}

void encodeQ4_0(const float *x, uint8_t *block) {
  encodeSymmetric<DataType::Q4_0>(x, block);
}
void encodeQ5_0(const float *x, uint8_t *block) {
  encodeSymmetric<DataType::Q5_0>(x, block);
}
void encodeQ4_1(const float *x, uint8_t *block) {
  encodeRange<DataType::Q4_1>(x, block);
}
void encodeQ5_1(const float *x, uint8_t *block) {
  encodeRange<DataType::Q5_1>(x, block);
}

} // namespace kf::quantize
