//===- RenamedWeightsTest.cpp - Tensors by other names --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/RenamedWeights.h"

#include "MemoryTensors.h"

#include "runtime/io/ScaledWeights.h"
#include "runtime/weights/RowScales.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

TEST(RenamedWeights, AsksForTheSourcesNames) {
  Releases releases;
  auto tensors = std::make_unique<MemoryTensors>(&releases);
  tensors->add("part.b", {2}, {1, 2});
  tensors->add("whole", {3}, {1, 2, 3});
  const RenamedWeights weights(
      std::move(tensors), {{"b", "part.b"}, {"a", "whole"}, {"c", "missing"}});
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(weights.find("b")->shape, std::vector<int64_t>{2});
  EXPECT_EQ(weights.describe("a")->shape, std::vector<int64_t>{3});
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

TEST(RenamedWeights, KeepsFloat8) {
  MemoryTensors tensors;
  tensors.add("part.b", DataType::F8E4M3, {2, 3}, std::string(6, '\x38'));
  tensors.add("part.b_scale", {2}, {3, 5});
  tensors.add("part.c", {2}, {1, 2});
  auto scaled = ScaledWeights::create(std::make_unique<MemoryTensors>(tensors));
  ASSERT_TRUE(scaled.ok()) << scaled.message();
  RenamedWeights weights(scaled.take(), {{"b", "part.b"}, {"c", "part.c"}});
  EXPECT_EQ(weights.describe("b")->type, DataType::BF16);
  EXPECT_TRUE(*weights.keepFloat8("b"));
  for (const char *name : {"c", "part.b", "none"})
    EXPECT_FALSE(*weights.keepFloat8(name)) << name;
  EXPECT_EQ(weights.describe("b")->type, DataType::F8E4M3);
  auto scales = weights.find(scaleName("b"));
  ASSERT_TRUE(scales.ok()) << scales.message();
  EXPECT_EQ(static_cast<const float *>(scales->data)[1], 5);
  EXPECT_FALSE(weights.find(scaleName("part.b")).ok());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"b", "c"}));
}

} // namespace
