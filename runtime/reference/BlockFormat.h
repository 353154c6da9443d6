//===- BlockFormat.h - Block-quantized storage ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GGUF's block formats, the runtime's one description of them. A row of a
// quantized tensor is a run of blocks; a block holds its scales beside its
// quants. Every multi-byte field is little-endian; d and dmin are f16.
//
//   q8_0   32 elements,  34 bytes: d, 32 signed bytes. x = d * q.
//   q4_0   32 elements,  18 bytes: d, 16 bytes; byte i holds element i in its
//          low half and element i + 16 in its high half. x = d * (q - 8).
//   q4_k  256 elements, 144 bytes: d, dmin, 12 bytes of 6-bit scales and mins
//          of eight sub-blocks of 32 elements, 128 bytes; each 32 bytes hold
//          sub-block 2i in their low and 2i + 1 in their high halves.
//          x = d * scale * q - dmin * min.
//   q6_k  256 elements, 210 bytes: 128 bytes of low 4 bits, 64 bytes of high
//          2 bits, 16 signed scales of sub-blocks of 16 elements, d.
//          x = d * scale * (q - 32).
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_REFERENCE_BLOCKFORMAT_H
#define KF_RUNTIME_REFERENCE_BLOCKFORMAT_H

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kf {

enum class BlockFormat { Q8_0, Q4_0, Q4_K, Q6_K };

struct BlockFormatInfo {
  BlockFormat format;
  std::string_view name; ///< MLIR's spelling, "q8_0"
  int64_t elements;      ///< per block
  int64_t bytes;         ///< per block
};

inline constexpr std::array<BlockFormatInfo, 4> kBlockFormats = {
    {{BlockFormat::Q8_0, "q8_0", 32, 34},
     {BlockFormat::Q4_0, "q4_0", 32, 18},
     {BlockFormat::Q4_K, "q4_k", 256, 144},
     {BlockFormat::Q6_K, "q6_k", 256, 210}}};

constexpr const BlockFormatInfo &infoOf(BlockFormat format) {
  return kBlockFormats[static_cast<size_t>(format)];
}

/// The format of that name, if there is one.
std::optional<BlockFormat> parseBlockFormat(std::string_view name);

/// Widens `blocks` blocks at `src` to `blocks * elements` floats at `dst`;
/// bit for bit what the format's definition gives in f32. Any alignment.
void dequantizeBlocks(BlockFormat format, const void *src, int64_t blocks,
                      float *dst);

/// Rounds `blocks * elements` floats at `src` to blocks at `dst`. q8_0 and q4_0
/// round as ggml's reference does; q4_k and q6_k search the scales with the
/// least squared error. A block with a NaN or an infinity has no useful values.
void quantizeBlocks(BlockFormat format, const float *src, int64_t blocks,
                    void *dst);

} // namespace kf

#endif // KF_RUNTIME_REFERENCE_BLOCKFORMAT_H
