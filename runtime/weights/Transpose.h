//===- Transpose.h - Rows that become columns -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_TRANSPOSE_H
#define KF_RUNTIME_WEIGHTS_TRANSPOSE_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kf {

/// dst[c * dstStride + r] = rows[r][c] for r below `rowCount`, c below
/// `columnCount`; strides in elements.
template <typename T>
void transposeScalar(const std::byte *const *rows, int64_t rowCount,
                     int64_t columnCount, T *dst, int64_t dstStride) {
  for (int64_t c = 0; c < columnCount; ++c)
    for (int64_t r = 0; r < rowCount; ++r)
      std::memcpy(dst + c * dstStride + r, rows[r] + c * sizeof(T), sizeof(T));
}

/// The same for a 16x16 (8-bit), 8x8 (16-bit) or 4x4 (32-bit) block, in 16-byte
/// vectors.
inline void transposeTile(const std::byte *const *rows, int64_t column,
                          uint8_t *dst, int64_t dstStride) {
  typedef uint8_t V8 __attribute__((vector_size(16)));
  V8 in[16], out[16];
  for (int i = 0; i < 16; ++i)
    std::memcpy(&in[i], rows[i] + column, 16);
  // Interleaving rows with those 8 further on, four times over.
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 8; ++i) {
      out[2 * i] =
          __builtin_shufflevector(in[i], in[i + 8], 0, 16, 1, 17, 2, 18, 3, 19,
                                  4, 20, 5, 21, 6, 22, 7, 23);
      out[2 * i + 1] =
          __builtin_shufflevector(in[i], in[i + 8], 8, 24, 9, 25, 10, 26, 11,
                                  27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    std::copy(std::begin(out), std::end(out), std::begin(in));
  }
  for (int i = 0; i < 16; ++i)
    std::memcpy(dst + i * dstStride, &in[i], 16);
}

inline void transposeTile(const std::byte *const *rows, int64_t column,
                          uint16_t *dst, int64_t dstStride) {
  typedef uint16_t V16 __attribute__((vector_size(16)));
  typedef uint32_t V32 __attribute__((vector_size(16)));
  typedef uint64_t V64 __attribute__((vector_size(16)));
  V16 in[8];
  for (int i = 0; i < 8; ++i)
    std::memcpy(&in[i], rows[i] + column * sizeof(uint16_t), 16);
  // Pairs of rows, then pairs of pairs, then halves.
  V32 pairs[8];
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = (V32)__builtin_shufflevector(in[2 * i], in[2 * i + 1], 0, 8,
                                                1, 9, 2, 10, 3, 11);
    pairs[2 * i + 1] = (V32)__builtin_shufflevector(in[2 * i], in[2 * i + 1], 4,
                                                    12, 5, 13, 6, 14, 7, 15);
  }
  V64 quads[8]; // quads[4 * h + q]: rows 4h to 4h+3 of columns 2q and 2q+1
  for (int h = 0; h < 2; ++h)
    for (int s = 0; s < 2; ++s) {
      V32 upper = pairs[4 * h + s], lower = pairs[4 * h + 2 + s];
      quads[4 * h + 2 * s] =
          (V64)__builtin_shufflevector(upper, lower, 0, 4, 1, 5);
      quads[4 * h + 2 * s + 1] =
          (V64)__builtin_shufflevector(upper, lower, 2, 6, 3, 7);
    }
  for (int q = 0; q < 4; ++q) {
    V64 even = __builtin_shufflevector(quads[q], quads[4 + q], 0, 2);
    V64 odd = __builtin_shufflevector(quads[q], quads[4 + q], 1, 3);
    std::memcpy(dst + (2 * q) * dstStride, &even, 16);
    std::memcpy(dst + (2 * q + 1) * dstStride, &odd, 16);
  }
}

inline void transposeTile(const std::byte *const *rows, int64_t column,
                          uint32_t *dst, int64_t dstStride) {
  typedef uint32_t V32 __attribute__((vector_size(16)));
  typedef uint64_t V64 __attribute__((vector_size(16)));
  V32 in[4];
  for (int i = 0; i < 4; ++i)
    std::memcpy(&in[i], rows[i] + column * sizeof(uint32_t), 16);
  for (int s = 0; s < 2; ++s) {
    V64 upper = (V64)(s ? __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7)
                        : __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5));
    V64 lower = (V64)(s ? __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7)
                        : __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5));
    V64 even = __builtin_shufflevector(upper, lower, 0, 2);
    V64 odd = __builtin_shufflevector(upper, lower, 1, 3);
    std::memcpy(dst + (2 * s) * dstStride, &even, 16);
    std::memcpy(dst + (2 * s + 1) * dstStride, &odd, 16);
  }
}

/// transposeScalar() for any size, in blocks of a cache line of each row.
template <typename T>
void transpose(const std::byte *const *rows, int64_t rowCount,
               int64_t columnCount, T *dst, int64_t dstStride) {
  constexpr int64_t tile = 16 / sizeof(T);
  constexpr int64_t block = 64 / sizeof(T);
  int64_t fullRows = rowCount / tile * tile;
  int64_t fullColumns = columnCount / tile * tile;
  for (int64_t c0 = 0; c0 < fullColumns; c0 += block) {
    int64_t end = std::min(c0 + block, fullColumns);
    for (int64_t r = 0; r < fullRows; r += tile)
      for (int64_t c = c0; c < end; c += tile)
        transposeTile(rows + r, c, dst + c * dstStride + r, dstStride);
  }
  if (fullRows < rowCount)
    transposeScalar(rows + fullRows, rowCount - fullRows, fullColumns,
                    dst + fullRows, dstStride);
  if (fullColumns == columnCount)
    return;
  for (int64_t r = 0; r < rowCount; ++r)
    for (int64_t c = fullColumns; c < columnCount; ++c)
      std::memcpy(dst + c * dstStride + r, rows[r] + c * sizeof(T), sizeof(T));
}

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_TRANSPOSE_H
