//===- LinearTensorsTest.cpp - Linear attention in GGUF files -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/LinearTensors.h"

#include "test/runtime/io/MemoryTensors.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace kf;
using namespace kf::test;

namespace {

std::vector<float> valuesOf(const WeightSource &source,
                            const std::string &name) {
  Result<TensorView> view = source.find(name);
  EXPECT_TRUE(view.ok()) << view.message();
  std::vector<float> values(view.ok() ? view->bytes / sizeof(float) : 0);
  if (view.ok())
    std::memcpy(values.data(), view->data, view->bytes);
  return values;
}

std::unique_ptr<WeightSource> makeSource() {
  auto source = std::make_unique<MemoryTensors>();
  source->add("decay", {2}, {-2, -1});
  source->add("other", {2}, {1, 2});
  source->add("taps", {3, 2}, {1, 2, 3, 4, 5, 6});
  return source;
}

TEST(LinearTensors, RatesAreLogarithms) {
  LinearTensors tensors(makeSource());
  ASSERT_TRUE(tensors.addDecay("decay", 2).ok());
  EXPECT_EQ(valuesOf(tensors, "decay"),
            (std::vector<float>{std::log(2.0f), 0}));
  EXPECT_EQ(valuesOf(tensors, "other"), (std::vector<float>{1, 2}));
}

TEST(LinearTensors, RowsOfConvolutionsRepeat) {
  LinearTensors tensors(makeSource());
  ASSERT_TRUE(tensors.addConvolution("taps", {{1, 2}, {2, 1}}, 2).ok());
  EXPECT_EQ(tensors.describe("taps")->shape, (std::vector<int64_t>{4, 1, 2}));
  EXPECT_EQ(valuesOf(tensors, "taps"),
            (std::vector<float>{1, 2, 1, 2, 3, 4, 5, 6}));
}

TEST(LinearTensors, WhatCannotBe) {
  LinearTensors tensors(makeSource());
  EXPECT_NE(tensors.addDecay("none", 2).message().find("none"),
            std::string::npos);
  EXPECT_NE(tensors.addDecay("decay", 3).message().find("[3] of f32"),
            std::string::npos);
  EXPECT_NE(
      tensors.addConvolution("taps", {{4, 1}}, 2).message().find("[4, 2]"),
      std::string::npos);
  ASSERT_TRUE(tensors.addDecay("other", 2).ok());
  EXPECT_NE(tensors.find("other").message().find(
                "tensor 'other' has 1, but finite numbers below 0"),
            std::string::npos);
}

} // namespace
