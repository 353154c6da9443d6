//===- RopeFormulas.h - Rotations by angles ---------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas of kf.rope, on f32 scalars or vectors.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_COMMON_ROPEFORMULAS_H
#define KF_CONVERSION_COMMON_ROPEFORMULAS_H

#include "TileEmitter.h"

#include <optional>

namespace mlir::kf {

/// Whether math.fma is known to round once.
enum class FmaRounding { Once, Unknown };

struct SinCos {
  Value sine, cosine;
};

/// sin and cos of `angle`, of any size, to about 1e-7. Of what is not finite
/// they are NaNs.
SinCos sinCos(TileEmitter &emitter, Value angle, FmaRounding fma);

/// Both times `magnitude`, if there is one.
SinCos scaled(TileEmitter &emitter, const SinCos &angle,
              std::optional<APFloat> magnitude);

/// The pair (first, second) turned.
std::pair<Value, Value> rotate(TileEmitter &emitter, Value first, Value second,
                               const SinCos &angle);

} // namespace mlir::kf

#endif // KF_CONVERSION_COMMON_ROPEFORMULAS_H
