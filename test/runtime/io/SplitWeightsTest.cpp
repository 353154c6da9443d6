//===- SplitWeightsTest.cpp - Rows of tensors as tensors ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/SplitWeights.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

using Releases = std::vector<std::string>;

/// "whole" [4, 3] of f32, and "other"; writes down what is released.
class Tensors : public WeightSource {
public:
  explicit Tensors(Releases &releases) : releases(releases) {}
  Result<TensorView> find(const std::string &name) const override {
    if (name == "whole")
      return TensorView{DataType::F32, {4, 3}, values, sizeof(values)};
    if (name == "other")
      return TensorView{DataType::F32, {3}, values, 3 * sizeof(float)};
    return Status::error("no tensor '" + name + "'");
  }
  void release(const std::string &name) const override {
    releases.push_back(name);
  }
  void releasePart(const std::string &name, uint64_t first,
                   uint64_t bytes) const override {
    releases.push_back(name + " " + std::to_string(first) + " " +
                       std::to_string(bytes));
  }
  std::vector<std::string> names() const override { return {"other", "whole"}; }

private:
  Releases &releases;
  const float values[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
};

float firstOf(const TensorView &view) {
  return *static_cast<const float *>(view.data);
}

class SplitWeightsTest : public testing::Test {
protected:
  Releases releases;
  SplitWeights weights{std::make_unique<Tensors>(releases)};
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

TEST_F(SplitWeightsTest, Errors) {
  EXPECT_EQ(weights.split("whole", {{"b", 1}, {"a", 2}}).message(),
            "checkpoint tensor 'whole' has 4 rows, but the configuration "
            "implies 3");
  EXPECT_EQ(weights.split("none", {{"b", 1}}).message(), "no tensor 'none'");
  EXPECT_EQ(weights.split("whole", {{"other", 4}}).message(),
            "checkpoint tensors 'whole' and 'other' hold the same");
}

} // namespace
