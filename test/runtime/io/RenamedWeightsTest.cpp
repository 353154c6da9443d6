//===- RenamedWeightsTest.cpp - Tensors by other names --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/RenamedWeights.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

using Releases = std::vector<std::string>;

/// Tensors of one element of every name; writes down what is released.
class Tensors : public WeightSource {
public:
  explicit Tensors(Releases &releases) : releases(releases) {}
  Result<TensorView> find(const std::string &name) const override {
    if (name == "missing")
      return Status::error("no tensor '" + name + "'");
    return TensorView{DataType::F32, {int64_t(name.size())}, nullptr, 0};
  }
  void release(const std::string &name) const override {
    releases.push_back(name);
  }
  void releasePart(const std::string &name, uint64_t first,
                   uint64_t bytes) const override {
    releases.push_back(name + " " + std::to_string(first) + " " +
                       std::to_string(bytes));
  }
  std::vector<std::string> names() const override { return {}; }

private:
  Releases &releases;
};

TEST(RenamedWeights, AsksForTheSourcesNames) {
  Releases releases;
  const RenamedWeights weights(
      std::make_unique<Tensors>(releases),
      {{"b", "part.b"}, {"a", "whole"}, {"c", "missing"}});
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(weights.find("b")->shape, std::vector<int64_t>{6});
  EXPECT_EQ(weights.describe("a")->shape, std::vector<int64_t>{5});
  weights.release("b");
  weights.releasePart("a", 4, 8);
  // It is not here.
  weights.release("part.b");
  weights.releasePart("whole", 0, 4);
  EXPECT_EQ(releases, (Releases{"part.b", "whole 4 8"}));
  EXPECT_EQ(weights.find("c").message(), "no tensor 'missing'");
  EXPECT_EQ(weights.find("whole").message(),
            "the checkpoint has no tensor 'whole'");
  EXPECT_EQ(weights.describe("part.b").message(),
            "the checkpoint has no tensor 'part.b'");
}

} // namespace
