//===- HazardTrackerTest.cpp - Which dispatches depend --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/HazardTracker.h"

#include "test/runtime/StatusAssertions.h"

#include <gtest/gtest.h>

#include <random>

using namespace kf;
using kf::test::succeeds;

namespace {

/// Memory that is only named.
struct NamedBuffer : Buffer {
  explicit NamedBuffer(uint64_t bytes = 1 << 20) : Buffer(bytes) {}
};

class HazardTrackerTest : public testing::Test {
protected:
  using Accesses = std::vector<MemoryAccess>;

  MemoryAccess read(uint64_t begin, uint64_t end) const {
    return {&buffer, begin, end, false};
  }
  MemoryAccess write(uint64_t begin, uint64_t end) const {
    return {&buffer, begin, end, true};
  }
  bool add(const Accesses &accesses) { return tracker.add(accesses); }

  NamedBuffer buffer, other;
  HazardTracker tracker;
};

TEST_F(HazardTrackerTest, ReadAfterWrite) {
  EXPECT_FALSE(add({write(0, 64)}));
  EXPECT_TRUE(add({read(0, 64)}));
}

TEST_F(HazardTrackerTest, WriteAfterRead) {
  EXPECT_FALSE(add({read(0, 64)}));
  EXPECT_TRUE(add({write(0, 64)}));
}

TEST_F(HazardTrackerTest, WriteAfterWrite) {
  EXPECT_FALSE(add({write(0, 64)}));
  EXPECT_TRUE(add({write(0, 64)}));
}

TEST_F(HazardTrackerTest, ReadersDoNotWaitForOneAnother) {
  EXPECT_FALSE(add({read(0, 64)}));
  EXPECT_FALSE(add({read(0, 64)}));
  EXPECT_FALSE(add({read(32, 96)}));
}

TEST_F(HazardTrackerTest, RangesThatOverlapByOneByte) {
  EXPECT_FALSE(add({write(64, 128)}));
  EXPECT_FALSE(add({read(0, 64)}));
  EXPECT_FALSE(add({read(128, 192)}));
  EXPECT_TRUE(add({read(127, 128)}));
  EXPECT_FALSE(add({write(200, 300)}));
  EXPECT_TRUE(add({read(100, 201)}));
}

TEST_F(HazardTrackerTest, ARangeWithinAnother) {
  EXPECT_FALSE(add({write(0, 1000)}));
  EXPECT_TRUE(add({read(400, 404)}));
  EXPECT_TRUE(add({write(0, 1000)}));
}

TEST_F(HazardTrackerTest, EmptyRangesTouchNothing) {
  EXPECT_FALSE(add({write(0, 64)}));
  EXPECT_FALSE(add({read(32, 32), write(64, 64)}));
  EXPECT_FALSE(add({write(64, 128)}));
}

TEST_F(HazardTrackerTest, BuffersAreMemoryOfTheirOwn) {
  EXPECT_FALSE(add({write(0, 64)}));
  EXPECT_FALSE(add({{&other, 0, 64, true}}));
  EXPECT_TRUE(add({{&other, 0, 64, false}}));
}

TEST_F(HazardTrackerTest, ABarrierIsForAllThatIsAheadOfIt) {
  EXPECT_FALSE(add({write(0, 64)}));
  EXPECT_FALSE(add({write(64, 128)}));
  EXPECT_TRUE(add({read(0, 64), write(128, 192)}));
  EXPECT_FALSE(add({read(64, 128)}));
  EXPECT_TRUE(add({read(128, 192)}));
}

/// One dispatch may read what it writes: its kernel sees to that.
TEST_F(HazardTrackerTest, ADispatchDoesNotWaitForItself) {
  EXPECT_FALSE(add({read(0, 64), write(0, 64)}));
  EXPECT_TRUE(add({read(0, 64)}));
}

/// Against a byte-by-byte account of what happened.
TEST_F(HazardTrackerTest, AgreesWithAnAccountOfEachByte) {
  constexpr int size = 48;
  std::mt19937 random(1);
  std::vector<char> isRead(size), isWritten(size);
  int barriers = 0;
  for (int step = 0; step < 20000; ++step) {
    Accesses accesses;
    for (unsigned i = random() % 3 + 1; i > 0; --i) {
      const uint64_t begin = random() % size;
      accesses.push_back(
          {&buffer, begin, begin + random() % 5, random() % 4 == 0});
      accesses.back().end = std::min<uint64_t>(accesses.back().end, size);
    }
    bool expected = false;
    auto forBytes = [&](auto visit) {
      for (const MemoryAccess &access : accesses)
        for (uint64_t at = access.begin; at < access.end; ++at)
          visit(at, access.writes);
    };
    forBytes([&](uint64_t at, bool writes) {
      expected |= isWritten[at] || (writes && isRead[at]);
    });
    if (expected) {
      std::ranges::fill(isRead, 0);
      std::ranges::fill(isWritten, 0);
    }
    forBytes([&](uint64_t at, bool writes) {
      (writes ? isWritten : isRead)[at] = 1;
    });
    ASSERT_EQ(add(accesses), expected) << step;
    barriers += expected;
  }
  EXPECT_GT(barriers, 1000);
  EXPECT_LT(barriers, 19000);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Buffers of a program with a weight, a cache of two layers, two inputs and
/// an output.
class FindBarriersTest : public testing::Test {
protected:
  FindBarriersTest() {
    program.arenaBytes = 4096;
    program.caches = {{DataType::F32, 2, 1, 8, 1, 16}};
    table = {&arena, {&weight}, {&cache}, {&x, &y}, {&z}};
  }

  struct Use {
    kf_binding binding;
    BindingAccess access;
  };
  static Use in(uint64_t offset, uint64_t bytes) {
    return {{KF_BINDING_ARENA, 0, offset}, {false, bytes}};
  }
  static Use out(uint64_t offset, uint64_t bytes) {
    return {{KF_BINDING_ARENA, 0, offset}, {true, bytes}};
  }
  static Use only(kf_binding_kind kind, uint32_t index = 0) {
    return {{uint32_t(kind), index, 0}, {false, 0}};
  }
  static Use layer(uint64_t number, bool writes) {
    return {{KF_BINDING_CACHE, 0, number}, {writes, 0}};
  }

  void dispatch(const std::vector<Use> &uses) {
    DispatchSpec &spec = program.dispatches.emplace_back();
    for (const Use &use : uses) {
      spec.bindings.push_back(use.binding);
      spec.accesses.push_back(use.access);
    }
  }
  std::vector<bool> barriers() {
    auto found = findBarriers(program, table, 4);
    EXPECT_TRUE(succeeds(found.status()));
    return found.ok() ? *found : std::vector<bool>();
  }

  NamedBuffer arena, weight, cache, x, y, z;
  Executable program;
  BindingTable table;
};

/// Two products of one row, which are added up.
TEST_F(FindBarriersTest, StandBehindBothBranches) {
  const Use input = only(KF_BINDING_INPUT), w = only(KF_BINDING_WEIGHT);
  dispatch({input, w, out(0, 256)});
  dispatch({input, w, out(256, 256)});
  dispatch({in(0, 256), in(256, 256), out(512, 64)});
  dispatch({in(512, 64), w, {{KF_BINDING_OUTPUT, 0, 0}, {true, 0}}});
  EXPECT_EQ(barriers(), (std::vector<bool>{false, false, true, true}));
}

/// The second result takes the memory that the first one had.
TEST_F(FindBarriersTest, StandWhereMemoryIsUsedAgain) {
  const Use input = only(KF_BINDING_INPUT);
  dispatch({input, out(0, 128)});
  dispatch({in(0, 128), out(128, 128)});
  dispatch({input, out(64, 64)});
  EXPECT_EQ(barriers(), (std::vector<bool>{false, true, true}));
}

/// Attention reads the pages that append wrote; another layer has its own.
TEST_F(FindBarriersTest, StandBetweenAppendAndAttention) {
  const Use k = only(KF_BINDING_INPUT, 0), q = only(KF_BINDING_INPUT, 1);
  dispatch({layer(0, true), k});
  dispatch({layer(1, true), k});
  dispatch({layer(0, false), q, out(0, 64)});
  dispatch({layer(1, false), q, out(64, 64)});
  dispatch({layer(0, true), k});
  EXPECT_EQ(barriers(), (std::vector<bool>{false, false, true, false, true}));
}

/// A buffer may be bound twice.
TEST_F(FindBarriersTest, KnowOneBufferUnderTwoNames) {
  table.inputs[1] = &z;
  dispatch({only(KF_BINDING_INPUT, 0), {{KF_BINDING_OUTPUT, 0, 0}, {true, 0}}});
  dispatch({only(KF_BINDING_INPUT, 1), out(0, 64)});
  EXPECT_EQ(barriers(), (std::vector<bool>{false, true}));
}

/// What is not known of a dispatch may be anything.
TEST_F(FindBarriersTest, StandWhereNothingIsKnown) {
  dispatch({only(KF_BINDING_WEIGHT), out(0, 64)});
  dispatch({only(KF_BINDING_WEIGHT), out(64, 64)});
  program.dispatches[1].accesses.clear();
  EXPECT_EQ(barriers(), (std::vector<bool>{false, true}));
  // The arena up to its end is more than 64 bytes of it.
  program.dispatches[1].accesses = {{false, 0}, {true, 0}};
  EXPECT_EQ(barriers(), (std::vector<bool>{false, false}));
  program.dispatches[1].bindings[1].offset = 0;
  EXPECT_EQ(barriers(), (std::vector<bool>{false, true}));
}

} // namespace
