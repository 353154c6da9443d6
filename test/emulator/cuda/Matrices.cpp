//===- Matrices.cpp - mma, ldmatrix and wgmma ------------------*- C++ -*--===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums are in double, which no chip has: a result is nearer to the exact one
// than a chip's, and tests of values have to allow for more.
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"

using namespace emu;

namespace {

enum MatrixType { F16, BF16, TF32 };

float number(u32 word, int i, int type) {
  if (type == TF32) // which ignores the last bits
    return toF32(word & ~0x1fffu);
  const u16 half = u16(word >> (16 * i));
  return type == BF16 ? toBf16(half) : toF16(half);
}

/// Fragments of a warp: lane 4 g + q holds in word r of A `each` numbers of row
/// g (+ 8 where r is odd) from column each * (q + 4 (r / 2)) on.
template <int K>
void readA(float (&a)[16][K], int lane, const u32 *words, int k, int type) {
  const int g = lane / 4, q = lane % 4, each = type == TF32 ? 1 : 2;
  for (int r = 0; r < 2 * k / (4 * each); ++r)
    for (int i = 0; i < each; ++i)
      a[g + 8 * (r & 1)][each * (q + 4 * (r >> 1)) + i] =
          number(words[r], i, type);
}

/// The row and the column of result `i` of a lane.
int rowOf(int lane, int i) { return lane / 4 + (i & 2 ? 8 : 0); }
int columnOf(int lane, int i) { return i / 4 * 8 + 2 * (lane % 4) + (i & 1); }

void needWholeWarp(Warp &warp) {
  if (warp.lanes.size() != 32)
    emuFail(&warp.lanes[0]->thread,
            "a matrix instruction in a warp of lanes:", warp.lanes.size(), 32);
}

struct Mma {
  const u32 *in;
  u32 *d;
};

struct Loaded {
  u64 address;
  u32 *d;
};

struct Wgmma {
  const u32 *a;
  u64 aAt, bAt;
  u32 *d;
};

template <typename T> T &of(const Warp &warp, int lane) {
  return *static_cast<T *>(warp.lanes[lane]->meets);
}

} // namespace

void emuMma(Thread *t, int k, int type, const u32 *in, u32 *d) {
  Mma mine{in, d};
  meet(t, ~0u, &mine, [=](Warp &warp) {
    needWholeWarp(warp);
    float a[16][16], b[16][8];
    const int each = type == TF32 ? 1 : 2;
    const int aWords = 2 * k / (4 * each), bWords = k / (4 * each);
    for (int lane = 0; lane < 32; ++lane) {
      const u32 *words = of<Mma>(warp, lane).in;
      readA(a, lane, words, k, type);
      for (int r = 0; r < bWords; ++r)
        for (int i = 0; i < each; ++i)
          b[each * (lane % 4 + 4 * r) + i][lane / 4] =
              number(words[aWords + r], i, type);
    }
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        const Mma &its = of<Mma>(warp, lane);
        double sum = toF32(its.in[aWords + bWords + i]);
        for (int at = 0; at < k; ++at)
          sum += double(a[rowOf(lane, i)][at]) * b[at][columnOf(lane, i)];
        its.d[i] = ofF32(float(sum));
      }
  });
}

void emuLdmatrix(Thread *t, int count, int transposed, u64 address, u32 *d) {
  if (int(t->lane) < 8 * count) // whose addresses count
    emuAt(t, address, 16, InShared, 0);
  Loaded mine{address, d};
  meet(t, ~0u, &mine, [=](Warp &warp) {
    needWholeWarp(warp);
    for (int m = 0; m < count; ++m) {
      u16 rows[8][8];
      for (int r = 0; r < 8; ++r)
        memcpy(rows[r],
               reinterpret_cast<void *>(of<Loaded>(warp, 8 * m + r).address),
               16);
      for (int lane = 0; lane < 32; ++lane) {
        const int g = lane / 4, q = 2 * (lane % 4);
        const u16 low = transposed ? rows[q][g] : rows[g][q];
        const u16 high = transposed ? rows[q + 1][g] : rows[g][q + 1];
        of<Loaded>(warp, lane).d[m] = low | u32(high) << 16;
      }
    }
  });
}

/// Element (row, k) of a matrix of f16 or bf16 in shared memory that wgmma's
/// descriptor `at` tells of. Swizzled rows are 128, 64 or 32 bytes wide, whose
/// 16-byte pieces are exchanged by bits of the address; without a swizzle a
/// tile is 8 rows of 16 bytes. `turned`: row and column change places in it.
static float described(Thread *t, u64 at, int row, int k, bool turned,
                       int type) {
  // Kernels put addresses in as they are: a GPU's shared memory begins at 0.
  at -= (t->shared >> 4) & 0xfffffff;
  const u64 leading = (at >> 16 & 0x3fff) << 4;
  const u64 stride = (at >> 32 & 0x3fff) << 4;
  const int swizzle = at >> 62; // none, 128, 64, 32 bytes
  const int width = swizzle ? 256 >> swizzle : 16;
  u64 address = (at & 0x3fff) << 4;
  if (!turned)
    address += row % 8 * width + row / 8 * stride +
               (swizzle ? k * 2 : k / 8 * leading + k % 8 * 2);
  else if (!swizzle)
    address += row % 8 * 2 + row / 8 * stride + k % 8 * 16 + k / 8 * leading;
  else
    address += row % (width / 2) * 2 + row / (width / 2) * leading +
               k % 8 * width + k / 8 * stride;
  if (swizzle)
    address ^= (address >> 7 & (u64(width) / 16 - 1)) << 4;
  if (address + 2 > t->sharedBytes)
    emuFail(t, "wgmma outside of shared memory: offset, bytes", address,
            t->sharedBytes);
  u16 bits;
  memcpy(&bits, reinterpret_cast<void *>(t->shared + address), 2);
  return number(bits, 0, type);
}

void emuWgmma(Thread *t, int n, int type, const u32 *a, u64 aAt, u64 bAt,
              u32 adds, int aTurned, int bTurned, u32 *d) {
  Wgmma mine{a, aAt, bAt, d};
  meet(t, ~0u, &mine, [=](Warp &warp) {
    needWholeWarp(warp);
    static float left[16][16], right[16][256]; // of the warp's 16 rows of 64
    Thread *first = &warp.lanes[0]->thread;
    for (int lane = 0; lane < 32; ++lane) {
      const Wgmma &its = of<Wgmma>(warp, lane);
      if (its.aAt != aAt || its.bAt != bAt)
        emuFail(first, "descriptors of wgmma differ in a warp:", its.bAt, bAt);
      if (its.a)
        readA(left, lane, its.a, 16, type);
    }
    for (int k = 0; k < 16; ++k) {
      if (!a)
        for (int r = 0; r < 16; ++r)
          left[r][k] =
              described(first, aAt, first->warp % 4 * 16 + r, k, aTurned, type);
      for (int c = 0; c < n; ++c)
        right[k][c] = described(first, bAt, c, k, bTurned, type);
    }
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < n / 2; ++i) {
        u32 &result = of<Wgmma>(warp, lane).d[i];
        double sum = adds ? toF32(result) : 0;
        for (int k = 0; k < 16; ++k)
          sum += double(left[rowOf(lane, i)][k]) * right[k][columnOf(lane, i)];
        result = ofF32(float(sum));
      }
  });
}
