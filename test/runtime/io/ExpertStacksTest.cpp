//===- ExpertStacksTest.cpp - Experts whose matrices lie in stacks --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/ExpertStacks.h"

#include "MemoryTensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace kf;
using namespace kf::test;

namespace {

std::string repeated(size_t count, char byte = 0) {
  return std::string(count, byte);
}

std::vector<float> valuesOf(const WeightSource &source,
                            const std::string &name) {
  auto view = source.find(name);
  EXPECT_TRUE(view.ok()) << view.message();
  if (!view.ok())
    return {};
  std::vector<float> values(
      static_cast<size_t>(*checkedElementCount(view->shape)));
  EXPECT_TRUE(convertToFloat(view->type, view->data,
                             static_cast<int64_t>(values.size()), values.data())
                  .ok());
  return values;
}

/// "s" of two experts with gate and up of [2, 3], and "other".
std::unique_ptr<MemoryTensors> floats(Releases *releases = nullptr) {
  auto tensors = std::make_unique<MemoryTensors>(releases);
  std::vector<float> stack, bias;
  for (int expert = 0; expert < 2; ++expert)
    for (int column = 0; column < 3; ++column)
      for (int row = 0; row < 4; ++row)
        stack.push_back(static_cast<float>(100 * expert + 10 * row + column));
  for (int i = 0; i < 8; ++i)
    bias.push_back(static_cast<float>(i));
  tensors->add("s", {2, 3, 4}, stack);
  tensors->add("s_bias", {2, 4}, bias);
  tensors->add("other", {1}, {7});
  return tensors;
}

const std::vector<ExpertStacks::Parts> kParts = {{"a.gate", "a.up"},
                                                 {"b.gate", "b.up"}};

/// Rows in turns, and biases.
constexpr ExpertStacks::Form kInTurns = {.inTurns = true, .hasBiases = true};

TEST(ExpertStacks, RowsOfFloatsAlternate) {
  Releases releases;
  ExpertStacks stacks(floats(&releases), kInTurns);
  const Status status = stacks.add("s", 2, 3, kParts);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(stacks.names(), (std::vector<std::string>{
                                "a.gate.bias", "a.gate.weight", "a.up.bias",
                                "a.up.weight", "b.gate.bias", "b.gate.weight",
                                "b.up.bias", "b.up.weight", "other"}));
  EXPECT_EQ(stacks.describe("b.up.weight")->shape,
            (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(stacks.describe("b.up.weight")->data, nullptr);
  EXPECT_EQ(valuesOf(stacks, "a.gate.weight"),
            (std::vector<float>{0, 1, 2, 20, 21, 22}));
  EXPECT_EQ(valuesOf(stacks, "b.up.weight"),
            (std::vector<float>{110, 111, 112, 130, 131, 132}));
  EXPECT_EQ(valuesOf(stacks, "b.gate.bias"), (std::vector<float>{4, 6}));
  EXPECT_EQ(valuesOf(stacks, "a.up.bias"), (std::vector<float>{1, 3}));
  EXPECT_EQ(valuesOf(stacks, "other"), std::vector<float>{7});
  // What both were made of goes back with the second.
  stacks.release("b.gate.weight");
  EXPECT_EQ(releases, Releases());
  stacks.release("b.up.weight");
  EXPECT_EQ(releases, Releases{"s 48 48"});
  EXPECT_EQ(valuesOf(stacks, "b.up.weight")[0], 110);
}

TEST(ExpertStacks, PartsFollowOneAnother) {
  Releases releases;
  ExpertStacks stacks(floats(&releases), {});
  const Status status = stacks.add("s", 2, 3, kParts);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(stacks.names(), (std::vector<std::string>{
                                "a.gate.weight", "a.up.weight", "b.gate.weight",
                                "b.up.weight", "other", "s_bias"}));
  EXPECT_EQ(valuesOf(stacks, "a.gate.weight"),
            (std::vector<float>{0, 1, 2, 10, 11, 12}));
  EXPECT_EQ(valuesOf(stacks, "b.up.weight"),
            (std::vector<float>{120, 121, 122, 130, 131, 132}));
  stacks.release("b.gate.weight");
  EXPECT_TRUE(releases.empty());
  stacks.release("b.up.weight");
  EXPECT_EQ(releases.size(), 1u);
}

/// One matrix an expert, of 16 bits, in more than one square of them.
TEST(ExpertStacks, TransposesLargeMatrices) {
  constexpr int64_t rows = 70, columns = 45;
  auto tensors = std::make_unique<MemoryTensors>();
  std::string stack;
  for (int64_t i = 0; i < columns * rows; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    stack.append(reinterpret_cast<const char *>(&bits), 2);
  }
  tensors->add("s", DataType::F16, {1, columns, rows}, stack);
  tensors->add("s_bias", {1, rows}, std::vector<float>(rows));
  ExpertStacks stacks(std::move(tensors), kInTurns);
  ASSERT_TRUE(stacks.add("s", rows, columns, {{"down"}}).ok());
  auto view = stacks.find("down.weight");
  ASSERT_TRUE(view.ok()) << view.message();
  EXPECT_EQ(view->type, DataType::F16);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      uint16_t bits = 0;
      std::memcpy(&bits,
                  static_cast<const char *>(view->data) + 2 * (r * columns + c),
                  2);
      ASSERT_EQ(bits, c * rows + r);
    }
}

TEST(ExpertStacks, BlocksBecomeMxfp4) {
  // Two experts with gate and up of [1, 64]: code (e + row + i) % 16 of element
  // i, and scales of 2^block.
  auto tensors = std::make_unique<MemoryTensors>();
  std::string codes, scales;
  for (int expert = 0; expert < 2; ++expert)
    for (int row = 0; row < 2; ++row)
      for (int block = 0; block < 2; ++block) {
        for (int i = 32 * block; i < 32 * block + 32; i += 2)
          codes += static_cast<char>((expert + row + i) % 16 |
                                     (expert + row + i + 1) % 16 << 4);
        scales += static_cast<char>(127 + block);
      }
  tensors->add("s_blocks", DataType::U8, {2, 2, 2, 16}, codes);
  tensors->add("s_scales", DataType::U8, {2, 2, 2}, scales);
  tensors->add("s_bias", {2, 2}, {0, 1, 2, 3});
  ExpertStacks stacks(std::move(tensors), kInTurns);
  const Status status = stacks.add("s", 1, 64, kParts);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(stacks.names().size(), 8u);
  auto view = stacks.describe("b.up.weight");
  EXPECT_EQ(view->type, DataType::MXFP4);
  EXPECT_EQ(view->shape, (std::vector<int64_t>{1, 64}));
  EXPECT_EQ(view->bytes, 34u);
  const float numbers[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const std::pair<const char *, int> parts[] = {{"a.gate.weight", 0},
                                                {"a.up.weight", 1},
                                                {"b.gate.weight", 1},
                                                {"b.up.weight", 2}};
  for (const auto &[name, first] : parts) {
    const std::vector<float> values = valuesOf(stacks, name);
    ASSERT_EQ(values.size(), 64u);
    for (int i = 0; i < 64; ++i) {
      const int code = (first + i) % 16;
      EXPECT_EQ(std::fabs(values[i]),
                numbers[code % 8] * static_cast<float>(1 << i / 32))
          << name << " " << i;
      EXPECT_EQ(values[i] < 0, code > 8) << name << " " << i;
    }
  }
  EXPECT_EQ(valuesOf(stacks, "b.up.bias"), std::vector<float>{3});
}

/// An error changes nothing.
TEST(ExpertStacks, WhatDoesNotFit) {
  ExpertStacks stacks(floats(), kInTurns);
  EXPECT_EQ(stacks.add("s", 3, 3, kParts).message(),
            "checkpoint tensor 's' has shape [2, 3, 4], but the configuration "
            "implies [2, 3, 6]");
  EXPECT_EQ(stacks.add("t", 2, 32, kParts).message(), "no tensor 't'");
  EXPECT_NE(stacks.add("t", 2, 33, kParts).message().find("'t'"),
            std::string::npos);
  EXPECT_EQ(stacks.add("s", 2, 3, {{"a", "b"}, {"a", "c"}}).message(),
            "checkpoint tensors 's' and 'a.weight' hold the same");
  EXPECT_EQ(stacks.names().size(), 3u);

  auto tensors = std::make_unique<MemoryTensors>();
  tensors->add("s", DataType::I8, {1, 3, 4}, repeated(12));
  tensors->add("t_blocks", DataType::U8, {1, 4, 1, 16}, repeated(64));
  tensors->add("t_scales", DataType::I8, {1, 4, 1}, repeated(4));
  tensors->add("t_bias", {1, 4}, {0, 0, 0, 0});
  ExpertStacks others(std::move(tensors), kInTurns);
  EXPECT_EQ(others.add("s", 2, 3, {{"a", "b"}}).message(),
            "checkpoint tensor 's' has type i8 where f32, f16 or bf16 are "
            "expected");
  EXPECT_EQ(others.add("t", 2, 32, {{"a", "b"}}).message(),
            "checkpoint tensor 't_scales' has type i8 where ui8 is expected");
}

} // namespace
