//===- HostLoops.cpp - Loops that a CPU cannot do faster ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/HostLoops.h"

#include "runtime/core/TileRegisters.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

using namespace kf;

namespace {

/// Sums that wait for none of the others: as many as hide an instruction's
/// latency, and, with two operands, fit 16 registers.
constexpr int kChains = 12;

// The empty asm in the loops: the compiler knows nothing of a register behind
// it, neither that it holds ones, nor that rounds could be put together.
#define KF_UNROLL _Pragma("GCC unroll 16")

#if defined(__x86_64__)
#define KF_WITH(features) __attribute__((target(features)))

/// How far ahead of the loads lines are asked for.
constexpr size_t kPrefetch = 8192;

void prefetch(const std::byte *data) {
  __builtin_prefetch(data + kPrefetch, /*write=*/0, /*locality=*/3);
}

//===----------------------------------------------------------------------===//
// AVX-512
//===----------------------------------------------------------------------===//

KF_WITH("avx512f") uint64_t readAvx512(std::span<const std::byte> data) {
  __m512i first = _mm512_setzero_si512(), second = first;
  size_t at = 0;
  for (; at + 128 <= data.size(); at += 128) {
    const std::byte *line = data.data() + at;
    prefetch(line);
    prefetch(line + 64);
    first = _mm512_xor_si512(first, _mm512_load_si512(line));
    second = _mm512_xor_si512(second, _mm512_load_si512(line + 64));
  }
  if (at < data.size())
    first = _mm512_xor_si512(first, _mm512_load_si512(data.data() + at));
  alignas(64) uint64_t words[8];
  _mm512_store_si512(words, _mm512_xor_si512(first, second));
  uint64_t result = 0;
  for (uint64_t word : words)
    result ^= word;
  return result;
}

KF_WITH("avx512f") double sumOfFloats(const __m512 &lanes) {
  alignas(64) float floats[16];
  _mm512_store_ps(floats, lanes);
  double sum = 0;
  for (float lane : floats)
    sum += lane;
  return sum;
}

KF_WITH("avx512f") double multiplyF32Avx512(int64_t rounds) {
  __m512 sums[kChains], one = _mm512_set1_ps(1);
  for (__m512 &sum : sums)
    sum = _mm512_setzero_ps();
  asm volatile("" : "+v"(one));
  for (int64_t i = 0; i < rounds; ++i) {
    KF_UNROLL for (__m512 &sum : sums) {
      sum = _mm512_fmadd_ps(one, one, sum);
      asm volatile("" : "+v"(sum));
    }
  }
  double count = 0;
  for (const __m512 &sum : sums)
    count += sumOfFloats(sum);
  return count;
}

double sumOf(const int32_t *lanes, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += lanes[i];
  return sum;
}

KF_WITH("avx512f,avx512vnni") double multiplyI8Avx512(int64_t rounds) {
  __m512i sums[kChains], ones = _mm512_set1_epi32(0x01010101);
  for (__m512i &sum : sums)
    sum = _mm512_setzero_si512();
  asm volatile("" : "+v"(ones));
  for (int64_t i = 0; i < rounds; ++i) {
    KF_UNROLL for (__m512i &sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, ones, ones);
      asm volatile("" : "+v"(sum));
    }
  }
  double count = 0;
  for (const __m512i &sum : sums) {
    alignas(64) int32_t lanes[16];
    _mm512_store_si512(lanes, sum);
    count += sumOf(lanes, 16);
  }
  return count;
}

KF_WITH("avx512f,avx512bf16") double multiplyBf16Avx512(int64_t rounds) {
  __m512 sums[kChains];
  for (__m512 &sum : sums)
    sum = _mm512_setzero_ps();
  __m512i ones = _mm512_set1_epi32(0x3f803f80);
  asm volatile("" : "+v"(ones));
  for (int64_t i = 0; i < rounds; ++i) {
    KF_UNROLL for (__m512 &sum : sums) {
      sum = _mm512_dpbf16_ps(sum, (__m512bh)ones, (__m512bh)ones);
      asm volatile("" : "+v"(sum));
    }
  }
  double count = 0;
  for (const __m512 &sum : sums)
    count += sumOfFloats(sum);
  return count;
}

//===----------------------------------------------------------------------===//
// AVX
//===----------------------------------------------------------------------===//

KF_WITH("avx2") uint64_t readAvx2(std::span<const std::byte> data) {
  __m256i first = _mm256_setzero_si256(), second = first;
  for (size_t at = 0; at < data.size(); at += 64) {
    const std::byte *line = data.data() + at;
    prefetch(line);
    auto *halves = reinterpret_cast<const __m256i *>(line);
    first = _mm256_xor_si256(first, _mm256_load_si256(halves));
    second = _mm256_xor_si256(second, _mm256_load_si256(halves + 1));
  }
  alignas(32) uint64_t words[4];
  _mm256_store_si256(reinterpret_cast<__m256i *>(words),
                     _mm256_xor_si256(first, second));
  return words[0] ^ words[1] ^ words[2] ^ words[3];
}

KF_WITH("avx2,fma") double multiplyF32Avx2(int64_t rounds) {
  __m256 sums[kChains], one = _mm256_set1_ps(1);
  for (__m256 &sum : sums)
    sum = _mm256_setzero_ps();
  asm volatile("" : "+x"(one));
  for (int64_t i = 0; i < rounds; ++i) {
    KF_UNROLL for (__m256 &sum : sums) {
      sum = _mm256_fmadd_ps(one, one, sum);
      asm volatile("" : "+x"(sum));
    }
  }
  double count = 0;
  for (const __m256 &sum : sums) {
    alignas(32) float lanes[8];
    _mm256_store_ps(lanes, sum);
    for (float lane : lanes)
      count += lane;
  }
  return count;
}

KF_WITH("avx2") double countOf(const __m256i (&sums)[kChains]) {
  double count = 0;
  for (const __m256i &sum : sums) {
    alignas(32) int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i *>(lanes), sum);
    count += sumOf(lanes, 8);
  }
  return count;
}

KF_WITH("avx2,avxvnni") double multiplyI8AvxVnni(int64_t rounds) {
  __m256i sums[kChains], ones = _mm256_set1_epi32(0x01010101);
  for (__m256i &sum : sums)
    sum = _mm256_setzero_si256();
  asm volatile("" : "+x"(ones));
  for (int64_t i = 0; i < rounds; ++i) {
    KF_UNROLL for (__m256i &sum : sums) {
      sum = _mm256_dpbusd_avx_epi32(sum, ones, ones);
      asm volatile("" : "+x"(sum));
    }
  }
  return countOf(sums);
}

/// Pairs of products in 16 bits, and pairs of those in 32.
KF_WITH("avx2") double multiplyI8Avx2(int64_t rounds) {
  __m256i sums[kChains], ones = _mm256_set1_epi32(0x01010101);
  __m256i wideOnes = _mm256_set1_epi16(1);
  for (__m256i &sum : sums)
    sum = _mm256_setzero_si256();
  asm volatile("" : "+x"(ones), "+x"(wideOnes));
  for (int64_t i = 0; i < rounds; ++i) {
    KF_UNROLL for (__m256i &sum : sums) {
      asm volatile("" : "+x"(ones)); // or one product would do for all sums
      const __m256i pairs = _mm256_maddubs_epi16(ones, ones);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, wideOnes));
      asm volatile("" : "+x"(sum));
    }
  }
  return countOf(sums);
}

//===----------------------------------------------------------------------===//
// AMX
//===----------------------------------------------------------------------===//

/// What LDTILECFG reads: palette 1 has eight tiles.
struct alignas(64) TileShapes {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t lineBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t lines[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShapes) == 64);

constexpr int64_t kTileSums = 6;    // of tile registers, beside two of operands
constexpr int64_t kTileLanes = 256; // of 32 bits in a tile
/// Rounds after which sums of 32 a round are still exact in f32.
constexpr int64_t kExactRounds = int64_t(1) << 18;

/// kTileSums products of 16 x 32 and 32 x 16 in each of `rounds` rounds, at
/// most kExactRounds.
KF_WITH("amx-tile,amx-bf16,avx512f")
double multiplyTiles(int64_t rounds, const uint16_t *ones, float *sums) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_loadd(6, ones, 64);
  _tile_loadd(7, ones, 64);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + 256, 64);
  _tile_stored(2, sums + 512, 64);
  _tile_stored(3, sums + 768, 64);
  _tile_stored(4, sums + 1024, 64);
  _tile_stored(5, sums + 1280, 64);
  double count = 0;
  for (int64_t i = 0; i < kTileSums * kTileLanes; ++i)
    count += sums[i];
  return count;
}

KF_WITH("amx-tile,amx-bf16,avx512f") double multiplyBf16Amx(int64_t rounds) {
  const TileShapes shapes;
  alignas(64) uint16_t ones[512];
  alignas(64) float sums[kTileSums * kTileLanes];
  for (uint16_t &one : ones)
    one = 0x3f80;
  _tile_loadconfig(&shapes);
  double count = 0;
  for (int64_t left = rounds; left > 0; left -= kExactRounds)
    count +=
        multiplyTiles(left < kExactRounds ? left : kExactRounds, ones, sums);
  _tile_release();
  return count;
}

/// Products of 16 x 64 and 64 x 16 bytes: each of a tile's sums grows by 64 in
/// a round, and 32 bits hold those of all rounds.
KF_WITH("amx-tile,amx-int8") double multiplyI8Amx(int64_t rounds) {
  static_assert(MultiplyLoop::mostRounds * 64 < INT32_MAX);
  const TileShapes shapes;
  alignas(64) uint8_t ones[1024];
  alignas(64) int32_t sums[kTileSums * kTileLanes];
  for (uint8_t &one : ones)
    one = 1;
  _tile_loadconfig(&shapes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_loadd(6, ones, 64);
  _tile_loadd(7, ones, 64);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbusd(0, 6, 7);
    _tile_dpbusd(1, 6, 7);
    _tile_dpbusd(2, 6, 7);
    _tile_dpbusd(3, 6, 7);
    _tile_dpbusd(4, 6, 7);
    _tile_dpbusd(5, 6, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + 256, 64);
  _tile_stored(2, sums + 512, 64);
  _tile_stored(3, sums + 768, 64);
  _tile_stored(4, sums + 1024, 64);
  _tile_stored(5, sums + 1280, 64);
  _tile_release();
  return sumOf(sums, kTileSums * kTileLanes);
}

// Of EDX of leaf 7.
constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24,
                   kAmxInt8 = 1u << 25;

/// AMX-TILE and `products`, and the system's leave to use them.
bool hasTiles(unsigned products) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx512f") && // which the loops read with
         __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & products) &&
         (d & kAmxTile) && mayUseTiles();
}

//===----------------------------------------------------------------------===//
// What every x86-64 has
//===----------------------------------------------------------------------===//

uint64_t readSse2(std::span<const std::byte> data) {
  __m128i first = _mm_setzero_si128(), second = first;
  for (size_t at = 0; at < data.size(); at += 64) {
    const std::byte *line = data.data() + at;
    prefetch(line);
    auto *parts = reinterpret_cast<const __m128i *>(line);
    for (int i = 0; i < 4; i += 2) {
      first = _mm_xor_si128(first, _mm_load_si128(parts + i));
      second = _mm_xor_si128(second, _mm_load_si128(parts + i + 1));
    }
  }
  alignas(16) uint64_t words[2];
  _mm_store_si128(reinterpret_cast<__m128i *>(words),
                  _mm_xor_si128(first, second));
  return words[0] ^ words[1];
}

double multiplyF32Sse2(int64_t rounds) {
  __m128 sums[kChains], one = _mm_set1_ps(1);
  for (__m128 &sum : sums)
    sum = _mm_setzero_ps();
  asm volatile("" : "+x"(one));
  for (int64_t i = 0; i < rounds; ++i) {
    KF_UNROLL for (__m128 &sum : sums) {
      sum = _mm_add_ps(_mm_mul_ps(sum, one), one);
      asm volatile("" : "+x"(sum));
    }
  }
  double count = 0;
  for (const __m128 &sum : sums) {
    alignas(16) float lanes[4];
    _mm_store_ps(lanes, sum);
    for (float lane : lanes)
      count += lane;
  }
  return count;
}

#elif defined(__aarch64__)

//===----------------------------------------------------------------------===//
// NEON
//===----------------------------------------------------------------------===//

uint64_t readNeon(std::span<const std::byte> data) {
  uint64x2_t first = vdupq_n_u64(0), second = first;
  for (size_t at = 0; at < data.size(); at += 64) {
    auto *words = reinterpret_cast<const uint64_t *>(data.data() + at);
    for (int i = 0; i < 8; i += 4) {
      first = veorq_u64(first, vld1q_u64(words + i));
      second = veorq_u64(second, vld1q_u64(words + i + 2));
    }
  }
  const uint64x2_t both = veorq_u64(first, second);
  return vgetq_lane_u64(both, 0) ^ vgetq_lane_u64(both, 1);
}

double multiplyF32Neon(int64_t rounds) {
  float32x4_t sums[kChains], one = vdupq_n_f32(1);
  for (float32x4_t &sum : sums)
    sum = vdupq_n_f32(0);
  asm volatile("" : "+w"(one));
  for (int64_t i = 0; i < rounds; ++i) {
    KF_UNROLL for (float32x4_t &sum : sums) {
      sum = vfmaq_f32(sum, one, one);
      asm volatile("" : "+w"(sum));
    }
  }
  double count = 0;
  for (const float32x4_t &sum : sums)
    for (float lane : {vgetq_lane_f32(sum, 0), vgetq_lane_f32(sum, 1),
                       vgetq_lane_f32(sum, 2), vgetq_lane_f32(sum, 3)})
      count += lane;
  return count;
}

__attribute__((target("dotprod"))) double multiplyI8Dot(int64_t rounds) {
  int32x4_t sums[kChains];
  int8x16_t ones = vdupq_n_s8(1);
  for (int32x4_t &sum : sums)
    sum = vdupq_n_s32(0);
  asm volatile("" : "+w"(ones));
  for (int64_t i = 0; i < rounds; ++i) {
    KF_UNROLL for (int32x4_t &sum : sums) {
      sum = vdotq_s32(sum, ones, ones);
      asm volatile("" : "+w"(sum));
    }
  }
  double count = 0;
  for (const int32x4_t &sum : sums)
    count += static_cast<double>(vaddvq_s32(sum));
  return count;
}

bool hasDotProduct() {
#if defined(__linux__)
  constexpr unsigned long asimdDp = 1ul << 20; // as the kernel's ABI numbers it
  return getauxval(AT_HWCAP) & asimdDp;
#else
  return false;
#endif
}

#else

//===----------------------------------------------------------------------===//
// Any other CPU
//===----------------------------------------------------------------------===//

uint64_t readWords(std::span<const std::byte> data) {
  auto *words = reinterpret_cast<const uint64_t *>(data.data());
  uint64_t sums[8] = {};
  for (size_t at = 0; at < data.size() / 8; at += 8)
    for (int i = 0; i < 8; ++i)
      sums[i] ^= words[at + i];
  for (int i = 1; i < 8; ++i)
    sums[0] ^= sums[i];
  return sums[0];
}

double multiplyF32Scalar(int64_t rounds) {
  float sums[kChains] = {}, one = 1;
  asm volatile("" : "+m"(one));
  for (int64_t i = 0; i < rounds; ++i) {
    KF_UNROLL for (float &sum : sums) sum += one * one;
    asm volatile("" : : : "memory");
  }
  double count = 0;
  for (float sum : sums)
    count += sum;
  return count;
}

#endif

} // namespace

std::vector<ReadLoop> kf::readLoops() {
  std::vector<ReadLoop> loops;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    loops.push_back({"avx512f", readAvx512});
  if (__builtin_cpu_supports("avx2"))
    loops.push_back({"avx2", readAvx2});
  loops.push_back({"sse2", readSse2});
#elif defined(__aarch64__)
  loops.push_back({"neon", readNeon});
#else
  loops.push_back({"scalar", readWords});
#endif
  return loops;
}

std::vector<MultiplyLoop> kf::f32Loops() {
  std::vector<MultiplyLoop> loops;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    loops.push_back({"avx512f", multiplyF32Avx512});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    loops.push_back({"avx2 fma", multiplyF32Avx2});
  loops.push_back({"sse2", multiplyF32Sse2});
#elif defined(__aarch64__)
  loops.push_back({"neon", multiplyF32Neon});
#else
  loops.push_back({"scalar", multiplyF32Scalar});
#endif
  return loops;
}

std::vector<MultiplyLoop> kf::i8Loops() {
  std::vector<MultiplyLoop> loops;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vnni"))
    loops.push_back({"avx512vnni", multiplyI8Avx512});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("avxvnni"))
    loops.push_back({"avxvnni", multiplyI8AvxVnni});
  if (__builtin_cpu_supports("avx2"))
    loops.push_back({"avx2", multiplyI8Avx2});
#elif defined(__aarch64__)
  if (hasDotProduct())
    loops.push_back({"dotprod", multiplyI8Dot});
#endif
  return loops;
}

std::vector<MultiplyLoop> kf::i8TileLoops() {
  std::vector<MultiplyLoop> loops;
#if defined(__x86_64__)
  if (hasTiles(kAmxInt8))
    loops.push_back({"amx-int8", multiplyI8Amx});
#endif
  return loops;
}

std::vector<MultiplyLoop> kf::bf16Loops() {
  std::vector<MultiplyLoop> loops;
#if defined(__x86_64__)
  if (hasTiles(kAmxBf16))
    loops.push_back({"amx-bf16", multiplyBf16Amx});
  if (__builtin_cpu_supports("avx512bf16"))
    loops.push_back({"avx512bf16", multiplyBf16Avx512});
#endif
  return loops;
}
