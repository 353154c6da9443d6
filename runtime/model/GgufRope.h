//===- GgufRope.h - How a GGUF file's queries and keys turn -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_GGUFROPE_H
#define KF_RUNTIME_MODEL_GGUFROPE_H

#include "runtime/io/Gguf.h"
#include "runtime/model/GgufNumbers.h"
#include "runtime/model/ModelConfig.h"

#include <string_view>

namespace kf {

/// LongRoPE's tables, which the RoPE has the numbers of: no weights of
/// programs.
inline constexpr std::string_view kGgufLongFactors = "rope_factors_long.weight",
                                  kGgufShortFactors =
                                      "rope_factors_short.weight";

/// The RoPE of layers without a window, and of those with one.
/// Behind the architecture's name: all that yarn multiplies cosines and sines
/// by, where files say it.
inline constexpr std::string_view kGgufYarnMagnitude =
    "rope.scaling.yarn_attn_factor";

struct GgufRopes {
  RopeConfig full, sliding;
};

/// The key, behind the architecture's name, of how many elements of heads turn
/// in layers with a window, where those have heads of another size.
inline constexpr std::string_view kGgufSlidingTurned =
    "rope.dimension_count_swa";

/// Reads both for `config`, whose architecture, layers' windows, heads, scale
/// of attention and positions are known; of latent attention, that scale gets
/// yarn's share. Errors name the key or the tensor.
Result<GgufRopes> readGgufRopes(const Gguf &gguf, const GgufNumbers &numbers,
                                ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_MODEL_GGUFROPE_H
