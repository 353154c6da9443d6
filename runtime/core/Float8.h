//===- Float8.h - Rounding to 8-bit floats ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// F8E4M3 has 4 exponent bits with a bias of 7, 3 bits of mantissa, subnormals
// and no infinities; all ones are a NaN (OCP, "8-bit Floating Point
// Specification", 2023). convertToFloat() (Tensor.h) widens it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_FLOAT8_H
#define KF_RUNTIME_CORE_FLOAT8_H

#include <cstdint>

namespace kf {

/// The code of what is nearest to `value`, the even one of two; of the largest
/// number, 448, where it is larger. A NaN stays one.
uint8_t floatToE4M3(float value);

} // namespace kf

#endif // KF_RUNTIME_CORE_FLOAT8_H
