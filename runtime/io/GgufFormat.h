//===- GgufFormat.h - Constants of the GGUF format --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the reader and the writer of GGUF files both know. Every number is
// little-endian. A file is
//
//   "GGUF", version u32, number of tensors u64, number of metadata entries u64,
//   metadata entries: key string, value type u32, value,
//   tensor entries: name string, rank u32, sizes u64 (the innermost first),
//                   type u32, offset u64 into the data,
//   padding to the alignment, data.
//
// A string is its length u64 and its bytes; an array is its element type u32,
// its length u64 and its elements. Source: the GGUF specification of ggml.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_GGUFFORMAT_H
#define KF_RUNTIME_IO_GGUFFORMAT_H

#include "runtime/core/Tensor.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kf {

inline constexpr std::string_view kGgufMagic = "GGUF";
/// Version 3 differs from 2 in allowing big-endian files. Version 1 had 32-bit
/// lengths.
inline constexpr uint32_t kGgufOldestVersion = 2, kGgufVersion = 3;
/// Tensors start at multiples of the alignment in the data.
inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";
inline constexpr uint64_t kGgufDefaultAlignment = 32;
inline constexpr uint64_t kGgufLeastAlignment = 8, kGgufMostAlignment = 65536;
inline constexpr uint32_t kGgufMaxRank = 4;
/// In each of the files that a model lies in, where it is split: the file's
/// number, from 0 on, how many there are, and the tensors of all of them.
inline constexpr std::string_view kGgufSplitNumber = "split.no",
                                  kGgufSplitCount = "split.count",
                                  kGgufSplitTensors = "split.tensors.count";
/// The fewest bytes that an entry takes: an empty name and the smallest value;
/// an empty name and one size.
inline constexpr uint64_t kGgufLeastEntryBytes = 8 + 4 + 1;
inline constexpr uint64_t kGgufLeastTensorBytes = 8 + 4 + 8 + 4 + 8;

enum class GgufValueType : uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64
};
inline constexpr uint32_t kGgufValueTypes = 13;

/// Bytes of a value; 0 for strings and arrays, which say theirs.
constexpr uint64_t sizeOf(GgufValueType type) {
  constexpr uint8_t sizes[kGgufValueTypes] = {1, 1, 2, 2, 4, 4, 4,
                                              1, 0, 0, 8, 8, 8};
  return sizes[static_cast<uint32_t>(type)];
}

/// "u8", "f32", "string" ...
constexpr std::string_view nameOf(GgufValueType type) {
  constexpr std::string_view names[kGgufValueTypes] = {
      "u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
      "bool", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<uint32_t>(type)];
}

/// One of ggml's element types.
struct GgmlType {
  uint32_t number = 0; ///< in files
  std::string_view name;
  int64_t elements = 1; ///< a block
  int64_t bytes = 0;    ///< a block
  /// What the runtime calls it; nothing where it cannot read it.
  std::optional<DataType> type;
};

/// Types that files have, by number; the gaps are types that ggml removed.
inline constexpr std::array<GgmlType, 33> kGgmlTypes = {{
    {0, "F32", 1, 4, DataType::F32},
    {1, "F16", 1, 2, DataType::F16},
    {2, "Q4_0", 32, 18, DataType::Q4_0},
    {3, "Q4_1", 32, 20, DataType::Q4_1},
    {6, "Q5_0", 32, 22, DataType::Q5_0},
    {7, "Q5_1", 32, 24, DataType::Q5_1},
    {8, "Q8_0", 32, 34, DataType::Q8_0},
    {9, "Q8_1", 32, 36, std::nullopt},
    {10, "Q2_K", 256, 84, DataType::Q2_K},
    {11, "Q3_K", 256, 110, DataType::Q3_K},
    {12, "Q4_K", 256, 144, DataType::Q4_K},
    {13, "Q5_K", 256, 176, DataType::Q5_K},
    {14, "Q6_K", 256, 210, DataType::Q6_K},
    {15, "Q8_K", 256, 292, std::nullopt},
    {16, "IQ2_XXS", 256, 66, std::nullopt},
    {17, "IQ2_XS", 256, 74, std::nullopt},
    {18, "IQ3_XXS", 256, 98, std::nullopt},
    {19, "IQ1_S", 256, 50, std::nullopt},
    {20, "IQ4_NL", 32, 18, DataType::IQ4_NL},
    {21, "IQ3_S", 256, 110, std::nullopt},
    {22, "IQ2_S", 256, 82, std::nullopt},
    {23, "IQ4_XS", 256, 136, DataType::IQ4_XS},
    {24, "I8", 1, 1, DataType::I8},
    {25, "I16", 1, 2, DataType::I16},
    {26, "I32", 1, 4, DataType::I32},
    {27, "I64", 1, 8, DataType::I64},
    {28, "F64", 1, 8, DataType::F64},
    {29, "IQ1_M", 256, 56, std::nullopt},
    {30, "BF16", 1, 2, DataType::BF16},
    {34, "TQ1_0", 256, 54, std::nullopt},
    {35, "TQ2_0", 256, 66, std::nullopt},
    {39, "MXFP4", 32, 17, DataType::MXFP4},
    {40, "NVFP4", 64, 36, std::nullopt},
}};

/// The type of that number; null if it is none of ggml's.
constexpr const GgmlType *findGgmlType(uint32_t number) {
  for (const GgmlType &type : kGgmlTypes)
    if (type.number == number)
      return &type;
  return nullptr;
}

/// ggml's counterpart of `type`; null if it has none.
constexpr const GgmlType *findGgmlType(DataType type) {
  for (const GgmlType &candidate : kGgmlTypes)
    if (candidate.type == type)
      return &candidate;
  return nullptr;
}

} // namespace kf

#endif // KF_RUNTIME_IO_GGUFFORMAT_H
