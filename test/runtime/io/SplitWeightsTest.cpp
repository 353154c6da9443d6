//===- SplitWeightsTest.cpp - Rows of tensors as tensors ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/SplitWeights.h"

#include "MemoryTensors.h"

#include "runtime/io/ScaledWeights.h"
#include "runtime/weights/RowScales.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

/// "whole" [4, 3] of f32, and "other" [3].
std::unique_ptr<WeightSource> wholeAndOther(Releases &releases) {
  auto tensors = std::make_unique<MemoryTensors>(&releases);
  tensors->add("whole", {4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  tensors->add("other", {3}, {0, 1, 2});
  return tensors;
}

float firstOf(const TensorView &view) {
  return *static_cast<const float *>(view.data);
}

class SplitWeightsTest : public testing::Test {
protected:
  Releases releases;
  SplitWeights weights{wholeAndOther(releases)};
};

TEST_F(SplitWeightsTest, PartsAreRowsOfTheWhole) {
  ASSERT_TRUE(weights.split("whole", {{"b", 1}, {"a", 3}}).ok());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"a", "b", "other"}));
  auto a = weights.find("a"), b = weights.find("b");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(b->shape, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(a->shape, (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(b->bytes, 12u);
  EXPECT_EQ(a->bytes, 36u);
  EXPECT_EQ(firstOf(*b), 0);
  EXPECT_EQ(firstOf(*a), 3);
  EXPECT_EQ(weights.describe("a")->shape, a->shape);
  EXPECT_TRUE(weights.find("other").ok());
}

/// A row of a stack of vectors is one of them.
TEST_F(SplitWeightsTest, PartsThatAreVectors) {
  ASSERT_TRUE(weights
                  .split("whole", {{"a", 1, /*isVector=*/true},
                                   {"b", 1, /*isVector=*/true},
                                   {"c", 2}})
                  .ok());
  const auto b = weights.find("b");
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(b->shape, std::vector<int64_t>{3});
  EXPECT_EQ(b->bytes, 12u);
  EXPECT_EQ(firstOf(*b), 3);
  EXPECT_EQ(weights.describe("c")->shape, (std::vector<int64_t>{2, 3}));
}

/// A stack of matrices is their rows, one matrix after another.
TEST(SplitWeights, PartsOfAStack) {
  auto tensors = std::make_unique<MemoryTensors>();
  tensors->add("stack", {2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  SplitWeights weights(std::move(tensors));
  EXPECT_EQ(weights.split("stack", {{"a", 2}}).message(),
            "checkpoint tensor 'stack' has 6 rows, but the configuration "
            "implies 2");
  ASSERT_TRUE(
      weights.split("stack", {{"a0", 1}, {"b0", 2}, {"a1", 1}, {"b1", 2}})
          .ok());
  for (auto [name, rows, first] :
       std::initializer_list<std::tuple<const char *, int64_t, float>>{
           {"a0", 1, 0}, {"b0", 2, 2}, {"a1", 1, 6}, {"b1", 2, 8}}) {
    auto part = weights.find(name);
    ASSERT_TRUE(part.ok()) << part.message();
    EXPECT_EQ(part->shape, (std::vector<int64_t>{rows, 2}));
    EXPECT_EQ(part->bytes, static_cast<uint64_t>(rows) * 8);
    EXPECT_EQ(firstOf(*part), first);
  }
}

/// A vector is the only row of a matrix, or one element a row.
TEST_F(SplitWeightsTest, AVectorMayBeARow) {
  ASSERT_TRUE(weights.split("other", {{"other", 1}}).ok());
  auto row = weights.find("other");
  ASSERT_TRUE(row.ok()) << row.message();
  EXPECT_EQ(row->shape, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(row->bytes, 12u);
  EXPECT_EQ(weights.describe("other")->shape, row->shape);
  weights.release("other");
  EXPECT_EQ(releases, (Releases{"other 0 12", "other"}));

  SplitWeights elements(wholeAndOther(releases));
  ASSERT_TRUE(elements.split("other", {{"a", 1}, {"b", 2}}).ok());
  EXPECT_EQ(elements.find("b")->shape, std::vector<int64_t>{2});
  EXPECT_EQ(firstOf(*elements.find("b")), 1);
}

TEST_F(SplitWeightsTest, TheLastPartReleasesTheWhole) {
  ASSERT_TRUE(weights.split("whole", {{"b", 1}, {"a", 3}}).ok());
  weights.releasePart("a", 4, 8);
  EXPECT_EQ(releases, Releases{"whole 16 8"});
  weights.release("a");
  weights.release("a");
  EXPECT_EQ(releases, (Releases{"whole 16 8", "whole 12 36", "whole 12 36"}));
  // Who finds a part again has the whole until it is released again.
  ASSERT_TRUE(weights.find("a").ok());
  releases.clear();
  weights.release("b");
  EXPECT_EQ(releases, Releases{"whole 0 12"});
  weights.release("a");
  EXPECT_EQ(releases, (Releases{"whole 0 12", "whole 12 36", "whole"}));
  weights.release("other");
  EXPECT_EQ(releases.back(), "other");
}

TEST_F(SplitWeightsTest, APartMayHaveTheNameOfTheWhole) {
  ASSERT_TRUE(weights.split("whole", {{"b", 1}, {"whole", 3}}).ok());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"b", "other", "whole"}));
  auto part = weights.find("whole");
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->shape, (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(firstOf(*part), 3);
  weights.release("whole");
  EXPECT_EQ(releases, Releases{"whole 12 36"});
  EXPECT_EQ(weights.split("whole", {{"whole", 4}}).message(),
            "checkpoint tensors 'whole' and 'whole' hold the same");
}

TEST_F(SplitWeightsTest, Errors) {
  EXPECT_EQ(weights.split("whole", {{"b", 1}, {"a", 2}}).message(),
            "checkpoint tensor 'whole' has 4 rows, but the configuration "
            "implies 3");
  EXPECT_EQ(weights.split("none", {{"b", 1}}).message(), "no tensor 'none'");
  EXPECT_EQ(weights.split("whole", {{"other", 4}}).message(),
            "checkpoint tensors 'whole' and 'other' hold the same");
  // Nothing is left of parts in front of one that is there already.
  EXPECT_FALSE(weights.split("whole", {{"a", 1}, {"other", 3}}).ok());
  EXPECT_FALSE(weights.split("whole", {{"a", 1}, {"a", 3}}).ok());
  EXPECT_EQ(weights.find("a").message(), "no tensor 'a'");
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"other", "whole"}));
  EXPECT_TRUE(weights.split("whole", {{"a", 1}, {"b", 3}}).ok());
}

/// Codes of F8_E4M3 and their factors are rows of the whole, too.
TEST(SplitWeights, KeepsFloat8) {
  // 1, 2 and -0.5.
  const std::string codes = "\x38\x38\x40\x40\xb0\xb0";
  Releases releases;
  MemoryTensors tensors(&releases);
  tensors.add("whole", DataType::F8E4M3, {3, 2}, codes);
  tensors.add("whole_scale", {3, 1}, {3, 5, 7});
  tensors.add("groups", DataType::F8E4M3, {3, 2}, codes);
  tensors.add("groups_scale", {3, 2}, {1, 2, 3, 4, 5, 6});
  tensors.add("own", DataType::F8E4M3, {3, 2}, codes);
  auto scaled = ScaledWeights::create(std::make_unique<MemoryTensors>(tensors));
  ASSERT_TRUE(scaled.ok()) << scaled.message();
  SplitWeights weights(scaled.take());
  ASSERT_TRUE(weights.split("whole", {{"a", 1}, {"b", 2}}).ok());
  ASSERT_TRUE(weights.split("groups", {{"c", 1}, {"d", 2}}).ok());
  const std::vector<std::string> names = weights.names();
  EXPECT_EQ(weights.describe("b")->type, DataType::BF16);
  for (const char *name : {"a", "b", "b", "own"})
    EXPECT_TRUE(*weights.keepFloat8(name)) << name;
  for (const char *name : {"c", "whole", "none"})
    EXPECT_FALSE(*weights.keepFloat8(name)) << name;
  EXPECT_EQ(weights.names(), names);
  EXPECT_EQ(weights.describe("d")->type, DataType::BF16);
  auto b = weights.find("b"), scales = weights.find(scaleName("b"));
  ASSERT_TRUE(b.ok() && scales.ok()) << b.message() << scales.message();
  EXPECT_EQ(b->type, DataType::F8E4M3);
  EXPECT_EQ(b->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(std::string(static_cast<const char *>(b->data), b->bytes),
            codes.substr(2));
  EXPECT_EQ(scales->type, DataType::F32);
  EXPECT_EQ(scales->shape, std::vector<int64_t>{2});
  EXPECT_EQ(firstOf(*scales), 5);
  EXPECT_EQ(firstOf(*weights.find(scaleName("a"))), 3);
  releases.clear();
  weights.release("b");
  weights.release(scaleName("b"));
  weights.release("a");
  EXPECT_EQ(releases, (Releases{"whole 2 4", "whole 0 2", "whole"}));
}

} // namespace
