//===- Float8.cpp - Rounding to 8-bit floats ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Float8.h"

#include <bit>
#include <cmath>

uint8_t kf::floatToE4M3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
  uint32_t code;
  if (std::isnan(value)) {
    code = 0x7f;
  } else if (std::fabs(value) >= 448) {
    code = 0x7e;
  } else if (std::fabs(value) < 0x1p-6f) {
    // Codes count units of 2^-9, which are the last bits of the sum.
    code = std::bit_cast<uint32_t>(std::fabs(value) + 0x1p14f) & 15;
  } else {
    // Half of the last bit that stays, less where that bit is even.
    const uint32_t rounded = magnitude + 0x7ffff + (magnitude >> 20 & 1);
    code = (rounded >> 20) - ((127 - 7) << 3);
  }
  return static_cast<uint8_t>(sign | code);
}
