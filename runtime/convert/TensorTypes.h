//===- TensorTypes.h - Which tensor gets which type -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file "of type q4_k" is a mix, as llama.cpp makes it: tensors whose errors
// matter more get more bits. The rule, from the first line that applies:
//
//   vectors, biases, positions, routers,
//   convolutions, shares of streams             f32
//   all, for f32, f16, bf16                     the type
//   all but experts, for mxfp4 where some are   q8_0
//   the output matrix (token_embd if tied)      q8_0 for q8_0, else q6_k
//   and in the matrices of the layers
//               attn_v         attn_output  ffn_down       attn_qkv   others
//     q2_k      q4_k or q3_k*  q3_k         q3_k           q2_k       q2_k
//     q3_k      q5_k, q4_k**   q4_k         q5_k, q4_k***  q4_k       q3_k
//     q4_k      more (q6_k)    q4_k         more (q6_k)    q5_k       q4_k
//     q5_k      more (q6_k)    q5_k         more (q6_k)    q6_k       q5_k
//     iq4_nl    q5_k*          iq4_nl       q5_k****       iq4_nl     iq4_nl
//     iq4_xs    q5_k*          iq4_xs       q5_k****       iq4_xs     iq4_xs
//   everything else                             the type
//
// Down matrices of experts are as ffn_down. In models of 8 experts (Mixtral),
// attn_v and attn_k are q8_0, and attn_output is q5_k for q2_k, q3_k, q4_k,
// iq4_nl and iq4_xs.
//
//     *     where at least 4 query heads share a key head
//     **    in the first 2 layers, then
//     ***   in the first 16th of the layers, then
//     ****  in the first 8th of the layers
//     more  in the first and the last 8th of the layers, and in every third
//           between
//
// These are llama.cpp's Q2_K, Q3_K_M, Q4_K_M, Q5_K_M, IQ4_NL and IQ4_XS without
// an importance matrix. Where rows do not end with a block, q2_k, q3_k and
// iq4_xs become iq4_nl, q4_k q5_0, q5_k q5_1, q6_k q8_0; types with blocks of
// 32, f16.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONVERT_TENSORTYPES_H
#define KF_RUNTIME_CONVERT_TENSORTYPES_H

#include "runtime/core/Tensor.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace kf {

/// What the rule looks at beside the tensor.
struct TypeRule {
  DataType type = DataType::F32; ///< of the file
  int64_t layers = 0;
  int64_t queriesPerKey = 1; ///< heads
  bool tied = false;         ///< the output matrix is token_embd
  int64_t experts = 0;       ///< of a layer
};

/// Whether files can be of this type: f32, f16, bf16 and the block types.
bool isFileType(DataType type);

/// Whether `name` is one that llama.cpp has for a mix: Q3_K_M, Q4_K_M or
/// Q5_K_M, in capitals or not.
bool isMixName(std::string_view name);
/// The one of them that is called `name`, in capitals or not: also as llama.cpp
/// calls its mixes. An error lists them.
Result<DataType> parseFileType(std::string_view name);
/// Types that a model's weights can be made up in: those of files, and F8E4M3.
std::span<const DataType> weightTypes();
/// The one of them that is called `name`, in capitals or not: 8-bit floats are
/// f8_e4m3, as safetensors calls them. An error lists them.
Result<DataType> parseWeightType(std::string_view name);

/// The type by the rule alone, and the one after the rows were looked at.
struct ChosenType {
  DataType wanted = DataType::F32, type = DataType::F32;
};

/// The type of the tensor that GGUF calls `name`, of the row-major `shape`.
ChosenType chooseType(const TypeRule &rule, std::string_view name,
                      std::span<const int64_t> shape);

/// The number that general.file_type has for such a file.
uint32_t fileTypeNumber(DataType type);

} // namespace kf

#endif // KF_RUNTIME_CONVERT_TENSORTYPES_H
