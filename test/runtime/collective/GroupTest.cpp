//===- GroupTest.cpp - Collectives of programs on a group -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/Group.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

using namespace kf;

namespace {

/// Three ranks that all have what this one has, but for the first byte of each
/// element, which is the rank's number.
class MirrorGroup final : public Group {
public:
  MirrorGroup() : Group(0, 3) {}

  Status allReduce(DataType type, const void *source, void *target,
                   uint64_t elements) override {
    ++reduced;
    std::memcpy(target, source, elements * sizeOf(type));
    return Status();
  }
  Status allGather(const void *source, void *target, uint64_t bytes) override {
    gathered.push_back(bytes);
    for (int64_t rank = 0; rank < size(); ++rank) {
      auto *to = static_cast<char *>(target) + rank * int64_t(bytes);
      std::memcpy(to, source, bytes);
      for (uint64_t i = 0; i < bytes; i += sizeof(uint16_t))
        to[i] = static_cast<char>(rank);
    }
    return Status();
  }
  Status send(const void *, uint64_t bytes) override {
    sent.push_back(bytes);
    return Status();
  }
  Status receive(void *target, uint64_t bytes) override {
    std::memset(target, 0x55, bytes);
    return Status();
  }
  void abort(std::string_view) override {}
  Status failure() const override { return Status(); }

  int reduced = 0;
  std::vector<uint64_t> gathered, sent; ///< bytes of each call
};

/// What devices have bound.
template <typename T> std::byte *bytesOf(const T *data) {
  return reinterpret_cast<std::byte *>(const_cast<T *>(data));
}

/// A gather of 2 columns each of f16 into `resultColumns`, of the rows that
/// slot n_tokens says.
std::vector<uint16_t> gather(MirrorGroup &group, int64_t rows,
                             int64_t resultColumns) {
  const CollectiveSpec spec = {CollectiveSpec::Kind::AllGather, DataType::F16,
                               extentOfSlot(KF_SCALAR_N_TOKENS), 2,
                               resultColumns};
  std::vector<uint16_t> source;
  for (int64_t i = 0; i < 2 * rows; ++i)
    source.push_back(static_cast<uint16_t>(i << 8));
  std::vector<uint16_t> target(static_cast<size_t>(rows * resultColumns + 1),
                               0x7777);
  std::array<int64_t, KF_SCALAR_COUNT> scalars = {rows};
  std::vector<std::byte> staging;
  EXPECT_TRUE(
      runCollective(group, spec, scalars,
                    std::array{bytesOf(source.data()), bytesOf(target.data())},
                    staging)
          .ok());
  EXPECT_EQ(target.back(), 0x7777); // nothing behind the end
  target.pop_back();
  return target;
}

TEST(RunCollective, GathersColumns) {
  MirrorGroup group;
  EXPECT_EQ(gather(group, 2, 6),
            (std::vector<uint16_t>{0x000, 0x100, 0x001, 0x101, 0x002, 0x102,
                                   0x200, 0x300, 0x201, 0x301, 0x202, 0x302}));
  EXPECT_EQ(group.gathered, (std::vector<uint64_t>{8}));
}

TEST(RunCollective, DropsColumnsPastTheEnd) {
  MirrorGroup group;
  EXPECT_EQ(gather(group, 2, 5),
            (std::vector<uint16_t>{0x000, 0x100, 0x001, 0x101, 0x002, 0x200,
                                   0x300, 0x201, 0x301, 0x202}));
  EXPECT_EQ(gather(group, 1, 5),
            (std::vector<uint16_t>{0x000, 0x100, 0x001, 0x101, 0x002}));
}

TEST(RunCollective, GathersARowInPlace) {
  MirrorGroup group;
  EXPECT_EQ(gather(group, 1, 6),
            (std::vector<uint16_t>{0x000, 0x100, 0x001, 0x101, 0x002, 0x102}));
}

TEST(RunCollective, SumsUpAllElements) {
  MirrorGroup group;
  const CollectiveSpec spec = {CollectiveSpec::Kind::AllReduce, DataType::F32,
                               extentOfSlot(KF_SCALAR_NAMED_SIZES), 3, 3};
  const float source[] = {1, 2, 3, 4, 5, 6, 7};
  float target[7] = {};
  std::array<int64_t, KF_SCALAR_COUNT> scalars = {};
  scalars[KF_SCALAR_NAMED_SIZES] = 2;
  std::vector<std::byte> staging;
  EXPECT_TRUE(runCollective(group, spec, scalars,
                            std::array{bytesOf(source), bytesOf(target)},
                            staging)
                  .ok());
  EXPECT_EQ(std::vector(target, target + 7),
            (std::vector<float>{1, 2, 3, 4, 5, 6, 0}));
  EXPECT_EQ(group.reduced, 1);
}

TEST(RunCollective, SendsAndReceivesAllRows) {
  MirrorGroup group;
  CollectiveSpec spec = {CollectiveSpec::Kind::Send, DataType::F16,
                         extentOfSlot(KF_SCALAR_N_TOKENS), 3, 3};
  std::array<int64_t, KF_SCALAR_COUNT> scalars = {2};
  std::vector<std::byte> staging;
  const uint16_t source[6] = {};
  EXPECT_TRUE(
      runCollective(group, spec, scalars, std::array{bytesOf(source)}, staging)
          .ok());
  EXPECT_EQ(group.sent, (std::vector<uint64_t>{12}));
  spec.kind = CollectiveSpec::Kind::Receive;
  uint16_t target[7] = {};
  EXPECT_TRUE(
      runCollective(group, spec, scalars, std::array{bytesOf(target)}, staging)
          .ok());
  EXPECT_EQ(target[5], 0x5555);
  EXPECT_EQ(target[6], 0);
}

} // namespace
