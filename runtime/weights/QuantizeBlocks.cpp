//===- QuantizeBlocks.cpp - Rounding to block-quantized storage -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/BlockEncoder.h"

#include <cassert>

using namespace kf;
using namespace kf::quantize;

namespace {

using EncodeFn = void (*)(const float *, uint8_t *);

EncodeFn encoderOf(DataType type) {
  switch (type) {
  case DataType::Q8_0:
    return encodeQ8_0;
  case DataType::Q4_0:
    return encodeQ4_0;
  case DataType::Q4_1:
    return encodeQ4_1;
  case DataType::Q5_0:
    return encodeQ5_0;
  case DataType::Q5_1:
    return encodeQ5_1;
  case DataType::Q2_K:
    return encodeQ2_K;
  case DataType::Q3_K:
    return encodeQ3_K;
  case DataType::Q4_K:
    return encodeQ4_K;
  case DataType::Q5_K:
    return encodeQ5_K;
  case DataType::Q6_K:
    return encodeQ6_K;
  case DataType::IQ4_NL:
    return encodeIq4Nl;
  case DataType::MXFP4:
    return encodeMxfp4;
  case DataType::IQ4_XS:
    return encodeIq4Xs;
  default:
    return nullptr;
  }
}

} // namespace

void kf::quantizeBlocks(DataType type, const float *src, int64_t blocks,
                        void *dst) {
  const BlockFormat *format = findBlockFormat(type);
  EncodeFn encode = encoderOf(type);
  assert(format && encode && "only block types have blocks");
  uint8_t *to = static_cast<uint8_t *>(dst);
  std::memset(to, 0, static_cast<size_t>(blocks * format->bytes));
  for (int64_t i = 0; i < blocks; ++i)
    encode(src + i * format->elements, to + i * format->bytes);
}
