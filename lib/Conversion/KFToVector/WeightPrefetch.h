//===- WeightPrefetch.h - How far ahead weights are read --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each line of a weight that is read once is prefetched. On most CPUs that is
// done twice: early into the second-level cache, which has room for many lines
// on their way from memory, and later into the nearest. What asks memory for
// lines of the nearest cache alone runs out of its few buffers there, and
// instructions that wait for them keep others from asking. Other CPUs
// are faster with one request (docs/decisions/weight-prefetch.md).
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOVECTOR_WEIGHTPREFETCH_H
#define KF_LIB_CONVERSION_KFTOVECTOR_WEIGHTPREFETCH_H

#include <cstdint>

namespace mlir::kf {

struct WeightPrefetch {
  int64_t bytes; ///< ahead of those that are multiplied
  int32_t locality;
};

inline constexpr WeightPrefetch kTwoPrefetches[] = {{16384, 2}, {4096, 3}};
inline constexpr WeightPrefetch kOnePrefetch[] = {{8192, 3}};
/// Of weights that are in some cache, or that another prefetch takes there.
inline constexpr WeightPrefetch kNearPrefetch[] = {{4096, 3}};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOVECTOR_WEIGHTPREFETCH_H
