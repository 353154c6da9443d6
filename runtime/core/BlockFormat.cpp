//===- BlockFormat.cpp - Values of block-quantized storage ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/BlockFormat.h"

#include <bit>
#include <cassert>
#include <utility>

namespace kf {
namespace {

float loadHalf(const uint8_t *bytes) {
  return halfToFloat(static_cast<uint16_t>(bytes[0] | bytes[1] << 8));
}

/// One block of kBlockFormats[Index]; the description is a constant, so that
/// its arithmetic folds.
template <size_t Index> void dequantizeBlock(const uint8_t *block, float *dst) {
  constexpr BlockFormat format = kBlockFormats[Index];
  float d = loadHalf(block + format.scaleOffset);
  float m = format.minOffset >= 0 ? loadHalf(block + format.minOffset) : 0.0f;
  for (int sub = 0; sub < format.subBlocks(); ++sub) {
    BlockFormat::SubScale integers = format.subScaleAt(block, sub);
    float scale = d * static_cast<float>(integers.scale);
    float min = m * static_cast<float>(integers.min);
    for (int i = sub * format.subBlock; i < (sub + 1) * format.subBlock; ++i) {
      int code = format.codeAt(block, i);
      int value = format.isSigned ? static_cast<int8_t>(code)
                  : format.table  ? format.table[code]
                                  : code - format.zero;
      float product = scale * static_cast<float>(value);
      dst[i] = format.minOffset < 0   ? product
               : format.minIsNegative ? product - min
                                      : product + min;
    }
  }
}

using BlockFn = void (*)(const uint8_t *, float *);
template <size_t... Indices>
constexpr std::array<BlockFn, sizeof...(Indices)>
makeTable(std::index_sequence<Indices...>) {
  return {dequantizeBlock<Indices>...};
}
constexpr auto kDequantize =
    makeTable(std::make_index_sequence<kBlockFormats.size()>());

} // namespace

void dequantizeBlocks(DataType type, const void *src, int64_t blocks,
                      float *dst) {
  const BlockFormat *format = findBlockFormat(type);
  assert(format && "only block types have blocks");
  BlockFn fn = kDequantize[format - kBlockFormats.data()];
  const uint8_t *from = static_cast<const uint8_t *>(src);
  for (int64_t i = 0; i < blocks; ++i)
    fn(from + i * format->bytes, dst + i * format->elements);
}

} // namespace kf
