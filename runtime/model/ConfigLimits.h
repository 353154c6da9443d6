//===- ConfigLimits.h - Bounds of a configuration's numbers -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_CONFIGLIMITS_H
#define KF_RUNTIME_MODEL_CONFIGLIMITS_H

#include <cstdint>

namespace kf {

/// Bounds far beyond any model: products of two sizes stay below 2^48, and the
/// step's IR, which grows with the layers, stays small.
inline constexpr int64_t kMaxSize = 1 << 24;
inline constexpr int64_t kMaxHeadDim = 1 << 16;
inline constexpr int64_t kMaxLayers = 1024;
/// Experts of a layer, and of all layers together: each has names in the IR.
inline constexpr int64_t kMaxExperts = 4096, kMaxModelExperts = 1 << 16;
/// Hidden rows of a token, and the pairs of them in all layers, of which each
/// has ops in the IR: a layer mixes all with all.
inline constexpr int64_t kMaxStreams = 8, kMaxStreamPairs = 4096;
inline constexpr int64_t kMaxPositions = 1 << 30;
inline constexpr int64_t kMaxId = INT32_MAX;

/// Bounds of RoPE's theta and of the factor that scales it. Frequencies are at
/// most a radian a position: angles are f32, and of larger frequencies those of
/// neighbouring positions would soon be all but random. The least frequency is
/// above 1e-37, a normal f32.
inline constexpr double kMinRopeBase = 1, kMaxRopeBase = 1e18;
/// Bounds of other numbers that scale RoPE, far beyond any model's, and of one
/// in LongRoPE's tables, with which the least frequency stays a normal f32.
inline constexpr double kMinYarn = 1e-3, kMaxYarn = 1e6;
inline constexpr double kMinLongRope = 0.1, kMaxLongRope = 1e12;

/// Rows that a convolution of linear attention sums up at most: kernels have
/// code for each.
inline constexpr int64_t kMaxTaps = 16;

/// By how much queries may grow where their position is e times as far, far
/// beyond any model's.
inline constexpr double kMaxQueryGrowth = 1e3;

/// Bounds of what scores and logits are capped at, far beyond any model's.
inline constexpr double kMinCap = 1e-3, kMaxCap = 1e6;

} // namespace kf

#endif // KF_RUNTIME_MODEL_CONFIGLIMITS_H
