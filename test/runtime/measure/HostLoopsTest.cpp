//===- HostLoopsTest.cpp --------------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/HostLoops.h"

#include "runtime/core/AlignedBuffer.h"
#include "runtime/core/TileRegisters.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace kf;

TEST(ReadLoops, ReadEveryWord) {
  AlignedBuffer data = AlignedBuffer::allocate(4096).take();
  uint64_t state = 1;
  for (size_t at = 0; at < data.size(); at += 8) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(data.data() + at, &state, 8);
  }
  ASSERT_FALSE(readLoops().empty());
  for (const ReadLoop &loop : readLoops())
    for (size_t bytes : {0, 64, 128, 192, 1024, 4096 - 64, 4096}) {
      uint64_t expected = 0;
      for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word;
        std::memcpy(&word, data.data() + at, 8);
        expected ^= word;
      }
      EXPECT_EQ(loop.run(std::as_const(data).span().first(bytes)), expected)
          << loop.instructions << ", " << bytes << " bytes";
    }
}

/// Loops count what they computed: every round as much as every other, in
/// whole vectors.
static void expectCounts(const std::vector<MultiplyLoop> &loops,
                         int64_t lanes) {
  for (const MultiplyLoop &loop : loops) {
    const double round = loop.run(1);
    EXPECT_GE(round, static_cast<double>(12 * lanes)) << loop.instructions;
    EXPECT_EQ(loop.run(0), 0) << loop.instructions;
    EXPECT_EQ(loop.run(1000), 1000 * round) << loop.instructions;
    const int64_t most = MultiplyLoop::mostRounds;
    EXPECT_EQ(loop.run(most), static_cast<double>(most) * round)
        << loop.instructions;
  }
}

TEST(MultiplyLoops, CountTheirMultiplyAdds) {
  ASSERT_FALSE(f32Loops().empty());
  expectCounts(f32Loops(), 1);
  expectCounts(i8Loops(), 4);
  expectCounts(i8TileLoops(), 16 * 16 * 64 / 2);
  expectCounts(bf16Loops(), 32);
}
