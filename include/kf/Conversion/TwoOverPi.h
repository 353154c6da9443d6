//===- TwoOverPi.h - Bits of 2/pi -------------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_TWOOVERPI_H
#define KF_CONVERSION_TWOOVERPI_H

#include <cstdint>

namespace mlir::kf {

/// A word of zeros and, from the highest on, the bits of 2/pi behind the point:
/// as many as the largest f32 needs where angles are reduced by them (Payne and
/// Hanek, "Radian reduction for trigonometric functions", 1983).
inline constexpr uint32_t kTwoOverPi[] = {0,          0xa2f9836e, 0x4e441529,
                                          0xfc2757d1, 0xf534ddc0, 0xdb629599,
                                          0x3c439041, 0xfe5163ab};

} // namespace mlir::kf

#endif // KF_CONVERSION_TWOOVERPI_H
