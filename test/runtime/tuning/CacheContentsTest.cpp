//===- CacheContentsTest.cpp - Tests of caches as tensors -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/CacheContents.h"

#include "runtime/devices/Reference/ReferenceTensor.h"
#include "test/runtime/StatusAssertions.h"
#include "gtest/gtest.h"

using namespace kf;

namespace {

constexpr int64_t kPages = 3;

CacheSpec specOf(DataType type, int64_t keyBlock) {
  return {type,       /*layers=*/2, /*kvHeads=*/2, /*headDim=*/64, keyBlock,
          /*page=*/16};
}

class CacheContentsTest : public testing::TestWithParam<DataType> {};

TEST_P(CacheContentsTest, LiesAsTheReferenceReadsIt) {
  for (int64_t keyBlock : {1, 4, 16}) {
    const CacheSpec spec = specOf(GetParam(), keyBlock);
    auto contents = makeCacheContents(spec, kPages, 7);
    ASSERT_TRUE(contents.ok()) << contents.message();
    auto bytes = layOutCache(spec, *contents);
    ASSERT_TRUE(bytes.ok()) << bytes.message();
    auto again = readCache(spec, kPages, *bytes);
    ASSERT_TRUE(again.ok()) << again.message();
    EXPECT_EQ(again->bytes, contents->bytes);

    std::vector<float> expected(contents->elementCount());
    ASSERT_TRUE(test::succeeds(convertToFloat(
        spec.type, contents->bytes.data(), expected.size(), expected.data())));
    const reference::CacheView view{spec, kPages, bytes->data()};
    const float *row = expected.data();
    for (int64_t layer = 0; layer < 2; ++layer)
      for (int64_t page = 0; page < kPages; ++page)
        for (int kind = 0; kind < 2; ++kind)
          for (int64_t head = 0; head < 2; ++head)
            for (int64_t place = 0; place < 16; ++place, row += 64) {
              std::vector<float> found(64);
              const int64_t slot = page * 16 + place;
              if (kind == 0)
                view.readKey(layer, head, slot, found.data());
              else
                view.readValue(layer, head, slot, found.data());
              ASSERT_EQ(found, std::vector<float>(row, row + 64))
                  << "key block " << keyBlock << ", page " << page << ", kind "
                  << kind << ", head " << head << ", place " << place;
            }
  }
}

TEST_P(CacheContentsTest, DoesNotDependOnTheLayout) {
  auto one = makeCacheContents(specOf(GetParam(), 1), kPages, 7),
       four = makeCacheContents(specOf(GetParam(), 4), kPages, 7),
       other = makeCacheContents(specOf(GetParam(), 4), kPages, 8);
  ASSERT_TRUE(one.ok() && four.ok() && other.ok());
  EXPECT_EQ(one->bytes, four->bytes);
  EXPECT_NE(one->bytes, other->bytes);
}

INSTANTIATE_TEST_SUITE_P(Types, CacheContentsTest,
                         testing::Values(DataType::F32, DataType::F16,
                                         DataType::BF16, DataType::Q8_0),
                         [](const auto &info) {
                           return std::string(nameOf(info.param));
                         });

TEST(CacheContentsTest, NoSuchCache) {
  EXPECT_TRUE(test::failsWith(
      makeCacheContents(specOf(DataType::Q4_0, 1), kPages, 7).status(),
      "a cache of q4_0"));
}

} // namespace
