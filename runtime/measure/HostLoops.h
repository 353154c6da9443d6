//===- HostLoops.h - Loops that a CPU cannot do faster ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread's part of measuring what the host can do: reading memory, and
// multiply-adds in registers. There is a loop for each set of instructions, in
// every build, and the CPU says at run time which of them it has.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MEASURE_HOSTLOOPS_H
#define KF_RUNTIME_MEASURE_HOSTLOOPS_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kf {

struct ReadLoop {
  const char *instructions; ///< "avx512f"
  /// Reads all of `data`, a multiple of 64 bytes that begins at one, and
  /// returns its 64-bit words xor one another.
  uint64_t (*run)(std::span<const std::byte> data);
};

struct MultiplyLoop {
  static constexpr int64_t mostRounds = int64_t(1) << 22;

  const char *instructions; ///< "avx512vnni"
  /// Does `rounds` rounds, at most mostRounds, of independent multiply-adds in
  /// registers, and returns how many these were. It is what they computed: each
  /// adds one times one.
  double (*run)(int64_t rounds);
};

// What this CPU can run, the fastest first: nothing where it has no instruction
// for that, as may be of bytes and of bf16. Any thread.
std::vector<ReadLoop> readLoops();
/// Fused multiply-adds of f32, or a product and a sum where there are none.
std::vector<MultiplyLoop> f32Loops();
/// Products of 8 bits in vectors, summed in 32.
std::vector<MultiplyLoop> i8Loops();
/// The same in tiles; none where the system denies them (mayUseTiles()).
std::vector<MultiplyLoop> i8TileLoops();
/// Products of tiles of bf16, or of pairs in vectors, summed in f32; no tiles
/// where the system denies them (mayUseTiles()).
std::vector<MultiplyLoop> bf16Loops();

} // namespace kf

#endif // KF_RUNTIME_MEASURE_HOSTLOOPS_H
