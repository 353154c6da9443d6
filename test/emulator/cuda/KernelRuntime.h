//===- KernelRuntime.h - What translated kernels see -------------*- C -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by the C that ptx_to_c.py makes of a kernel, and by the emulator.
// Registers are unsigned integers; what an instruction computes of their bits
// is here, and what threads do together is the emulator's (emu...).
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_EMULATOR_CUDA_KERNELRUNTIME_H
#define KF_TEST_EMULATOR_CUDA_KERNELRUNTIME_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

/// One thread of a workgroup; it lives as long as its cluster runs.
typedef struct Thread {
  u32 tid[3], ntid[3], ctaid[3], nctaid[3];
  u32 clusterCtaid[3], clusterNctaid[3], clusterid[3], nclusterid[3];
  u32 clusterRank, clusterSize;
  u32 lane, warp;
  u64 shared, sharedBytes; ///< of its workgroup
  u64 cluster, stride;     ///< that of rank r begins at cluster + r * stride
  void **parameters;
  u32 line; ///< of the PTX, where it is
} Thread;

#define EMU_SHOWN __attribute__((visibility("default")))
#ifdef __cplusplus
extern "C" {
#endif
/// Prints one line that says where the thread is, and ends the process.
EMU_SHOWN void emuFail(Thread *t, const char *what, u64 a, u64 b);
/// Lets others run: where a thread may be waiting for what another writes.
EMU_SHOWN void emuYield(Thread *t);
EMU_SHOWN void emuCheckGlobal(Thread *t, u64 address, u64 bytes, int writes);
EMU_SHOWN void emuBarrier(Thread *t, u32 id, u32 threads);
EMU_SHOWN void emuWarpSync(Thread *t, u32 mask);
/// Modes 0 to 3: idx, up, down, bfly.
EMU_SHOWN u32 emuShuffle(Thread *t, int mode, u32 a, u32 b, u32 c, u32 mask,
                         u8 *inRange);
/// Modes 0 to 3: ballot, any, all, uni.
EMU_SHOWN u32 emuVote(Thread *t, int mode, u32 p, u32 mask);
/// Modes 0 to 5: add, min, max, and, or, xor.
EMU_SHOWN u32 emuReduce(Thread *t, int mode, int isSigned, u32 a, u32 mask);
/// m16n8 of `k`; types 0 to 2: f16, bf16, tf32. `in` is A, B and C.
EMU_SHOWN void emuMma(Thread *t, int k, int type, const u32 *in, u32 *d);
EMU_SHOWN void emuLdmatrix(Thread *t, int count, int transposed, u64 address,
                           u32 *d);
/// m64k16 of `n`, where `a` is null of A's descriptor; types as in emuMma().
EMU_SHOWN void emuWgmma(Thread *t, int n, int type, const u32 *a, u64 aAt,
                        u64 bAt, u32 adds, int aTurned, int bTurned, u32 *d);
/// cp.async: what lies behind `of` bytes becomes zero.
EMU_SHOWN void emuCopy(Thread *t, u64 to, u64 from, u32 bytes, u32 of);
EMU_SHOWN void emuCommitCopies(Thread *t);
EMU_SHOWN void emuAwaitCopies(Thread *t, u32 groupsLeft);
EMU_SHOWN void emuClusterArrive(Thread *t);
EMU_SHOWN void emuClusterWait(Thread *t);
#ifdef __cplusplus
}
#endif

//===- Bits and numbers ---------------------------------------------------===//

static inline float toF32(u32 bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
static inline u32 ofF32(float x) {
  u32 bits;
  memcpy(&bits, &x, 4);
  return bits;
}
static inline double toF64(u64 bits) {
  double x;
  memcpy(&x, &bits, 8);
  return x;
}
static inline u64 ofF64(double x) {
  u64 bits;
  memcpy(&bits, &x, 8);
  return bits;
}
static inline float toF16(u16 bits) {
  _Float16 x;
  memcpy(&x, &bits, 2);
  return (float)x;
}
static inline u16 ofF16(float x) {
  _Float16 half = (_Float16)x;
  u16 bits;
  memcpy(&bits, &half, 2);
  return bits;
}
static inline float toBf16(u16 bits) { return toF32((u32)bits << 16); }
static inline u16 ofBf16(float x) {
  if (x != x)
    return 0x7fff;
  const u32 bits = ofF32(x);
  return (u16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
/// `x` as a float whose last bit says that bits were lost: rounded to fewer
/// bits, it becomes what `x` would.
static inline float toOdd(double x) {
  const float near = (float)x;
  if ((double)near == x || x != x || isinf(near))
    return near;
  const u32 bits = ofF32(near) - (fabs((double)near) > fabs(x));
  return toF32(bits | 1);
}
static inline u16 ofF16Once(double x) { return ofF16(toOdd(x)); }
static inline u16 ofBf16Once(double x) { return ofBf16(toOdd(x)); }
static inline u32 roundToTf32(u32 bits) {
  const int isFinite = (bits & 0x7f800000) != 0x7f800000;
  return isFinite ? (bits + 0x1000u) & ~0x1fffu : bits;
}
/// Two bytes of float8 as a pair of f16.
static inline u16 f16OfE4m3(u8 bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float x = exponent ? ldexpf(1 + mantissa / 8.f, exponent - 7)
                     : ldexpf(mantissa / 8.f, -6);
  if ((bits & 0x7f) == 0x7f)
    x = NAN;
  return ofF16(bits >> 7 ? -x : x);
}
static inline u32 pairOfE4m3x2(u16 bits) {
  return f16OfE4m3(bits & 255) | (u32)f16OfE4m3(bits >> 8) << 16;
}
static inline u32 pairOfE5m2x2(u16 bits) {
  return (u32)(bits & 255) << 8 | (u32)(bits >> 8) << 24;
}

//===- Instructions -------------------------------------------------------===//

static inline float flush(float x) {
  return fabsf(x) < 1.17549435e-38f ? copysignf(0, x) : x;
}
static inline float orCanonical(float x) {
  return x != x ? toF32(0x7fffffff) : x;
}
static inline float floatMin(float a, float b) {
  if (a != a)
    return orCanonical(b);
  if (b != b)
    return a;
  if (a == b) // of two zeros the one with a sign
    return signbit(a) ? a : b;
  return a < b ? a : b;
}
static inline float floatMax(float a, float b) {
  if (a != a)
    return orCanonical(b);
  if (b != b)
    return a;
  if (a == b)
    return signbit(a) ? b : a;
  return a > b ? a : b;
}
static inline float floatMinNan(float a, float b) {
  return a != a || b != b ? toF32(0x7fffffff) : floatMin(a, b);
}
static inline float floatMaxNan(float a, float b) {
  return a != a || b != b ? toF32(0x7fffffff) : floatMax(a, b);
}
/// Bit i of `table` is the result where a, b and c are the bits of i.
static inline u32 lop3(u32 a, u32 b, u32 c, u32 table) {
  u32 result = 0;
  for (int i = 0; i < 8; ++i)
    if (table >> i & 1)
      result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return result;
}
static inline u32 permuteBytes(u32 a, u32 b, u32 which) {
  const u64 both = (u64)b << 32 | a;
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 nibble = which >> (4 * i) & 15;
    u32 byte = both >> (8 * (nibble & 7)) & 255;
    if (nibble & 8) // its sign alone
      byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}
static inline u64 shiftLeft(u64 a, u32 by, u32 width) {
  return by >= width ? 0 : a << by;
}
static inline u64 shiftRightUnsigned(u64 a, u32 by, u32 width) {
  return by >= width ? 0 : a >> by;
}
static inline u64 shiftRightSigned(s64 a, u32 by, u32 width) {
  return (u64)(a >> (by >= width ? width - 1 : by));
}
static inline u64 lowBits(u32 count) {
  return count >= 64 ? ~0ull : (1ull << count) - 1;
}
static inline u64 extractUnsigned(u64 a, u32 at, u32 count, u32 width) {
  at &= 255;
  return at >= width ? 0 : a >> at & lowBits(count & 255);
}
static inline u64 extractSigned(s64 a, u32 at, u32 count, u32 width) {
  at &= 255, count &= 255;
  if (!count)
    return 0;
  // What lies beyond the number or the field is the field's highest bit.
  const u32 top = at + count - 1 < width - 1 ? at + count - 1 : width - 1;
  const u64 fill = (u64)a >> top & 1 ? ~0ull : 0;
  const u32 held = at > top ? 0 : top - at + 1;
  return (held ? (u64)a >> at & lowBits(held) : 0) | (fill & ~lowBits(held));
}
static inline u64 insertBits(u64 a, u64 b, u32 at, u32 count, u32 width) {
  at &= 255, count &= 255;
  if (!count || at >= width)
    return b;
  const u64 mask = lowBits(count) << at;
  return (b & ~mask) | (a << at & mask);
}

/// Conversions of whole numbers: the nearest there is, of a NaN `OF_NAN`.
#define EMU_TO_INTEGER(NAME, TYPE, LEAST, MOST, OF_NAN)                        \
  static inline TYPE toInteger##NAME(double x) {                               \
    if (x != x)                                                                \
      return OF_NAN;                                                           \
    return x <= (double)LEAST ? LEAST : x >= (double)MOST ? MOST : (TYPE)x;    \
  }
EMU_TO_INTEGER(S8, s8, INT8_MIN, INT8_MAX, 0)
EMU_TO_INTEGER(S16, s16, INT16_MIN, INT16_MAX, 0)
EMU_TO_INTEGER(S32, s32, INT32_MIN, INT32_MAX, 0)
EMU_TO_INTEGER(S64, s64, INT64_MIN, INT64_MAX, INT64_MIN)
EMU_TO_INTEGER(U8, u8, 0, UINT8_MAX, 0)
EMU_TO_INTEGER(U16, u16, 0, UINT16_MAX, 0)
EMU_TO_INTEGER(U32, u32, 0, UINT32_MAX, 0)
EMU_TO_INTEGER(U64, u64, 0, UINT64_MAX, 0)
#undef EMU_TO_INTEGER

//===- Memory -------------------------------------------------------------===//

enum { InGlobal = 0, InShared = 1, InCluster = 2, InOwn = 3 };

/// Where `bytes` bytes of a space are; generic addresses count as global.
/// Local, constant and parameter memory (InOwn) is the translation's own.
static inline void *emuAt(Thread *t, u64 address, u64 bytes, int space,
                          int writes) {
  if (address % bytes)
    emuFail(t, "a misaligned address, for bytes", address, bytes);
  if (space == InShared && (bytes > t->sharedBytes || // an offset may be < 0
                            address - t->shared > t->sharedBytes - bytes))
    emuFail(t, "outside of the workgroup's shared memory: offset, bytes",
            address - t->shared, bytes);
  if (space == InCluster) {
    const u64 offset = address - t->cluster;
    if (offset / t->stride >= t->clusterSize || bytes > t->sharedBytes ||
        offset % t->stride > t->sharedBytes - bytes)
      emuFail(t, "outside of the cluster's shared memory: offset, bytes",
              offset, bytes);
  }
  if (space == InGlobal)
    emuCheckGlobal(t, address, bytes, writes);
  return (void *)address;
}

#endif // KF_TEST_EMULATOR_CUDA_KERNELRUNTIME_H
