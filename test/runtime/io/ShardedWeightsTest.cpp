//===- ShardedWeightsTest.cpp - Parts of tensors as tensors ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/ShardedWeights.h"

#include "MemoryTensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

using namespace kf;
using namespace kf::test;

namespace {

/// "w" [4, 6] of f32, 0 to 23; "v" [4]; "q" [2, 96] of q8_0, whose blocks are
/// of bytes 'a', 'b' ... 'f'.
class ShardedWeightsTest : public testing::Test {
protected:
  ShardedWeightsTest() {
    std::vector<float> values(24);
    for (int i = 0; i < 24; ++i)
      values[i] = static_cast<float>(i);
    tensors->add("w", {4, 6}, values);
    tensors->add("v", {4}, {0, 1, 2, 3});
    std::string blocks;
    for (char c = 'a'; c <= 'f'; ++c)
      blocks += std::string(34, c);
    tensors->add("q", DataType::Q8_0, {2, 96}, blocks);
  }

  void open(ShardedWeights::Shards shards) {
    auto made = ShardedWeights::create(tensors, std::move(shards));
    ASSERT_TRUE(made.ok()) << made.message();
    weights = made.take();
  }

  std::string errorOf(TensorShard shard) {
    return ShardedWeights::create(tensors, {{"x", std::move(shard)}}).message();
  }

  std::vector<float> floatsOf(const std::string &name) {
    auto view = weights->find(name);
    EXPECT_TRUE(view.ok()) << view.message();
    std::vector<float> values(view->bytes / sizeof(float));
    std::memcpy(values.data(), view->data, view->bytes);
    return values;
  }

  Releases releases;
  std::shared_ptr<MemoryTensors> tensors =
      std::make_shared<MemoryTensors>(&releases);
  std::unique_ptr<ShardedWeights> weights;
};

TEST_F(ShardedWeightsTest, RowsAreViewsOfTheSource) {
  open({{"x", {"w", 0, {{1, 2}}, 2}}});
  auto view = weights->find("x"), whole = tensors->find("w");
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->shape, (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(view->bytes, 48u);
  EXPECT_EQ(view->data, static_cast<const float *>(whole->data) + 6);
  EXPECT_EQ(weights->names(), std::vector<std::string>{"x"});
  EXPECT_EQ(weights->find("w").status().code(), StatusCode::NotFound);
  EXPECT_EQ(weights->find("w").message(),
            "checkpoint tensor 'w' does not exist");
}

TEST_F(ShardedWeightsTest, RangesFollowOneAnotherWithZerosBehind) {
  open({{"rows", {"w", 0, {{3, 1}, {0, 1}}, 3}},
        {"columns", {"w", 1, {{4, 1}, {1, 2}}, 4}},
        {"vector", {"v", 0, {{2, 2}}, 3}},
        {"zeros", {"v", 0, {}, 4}}});
  EXPECT_EQ(floatsOf("rows"),
            (std::vector<float>{18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5, //
                                0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(floatsOf("columns"),
            (std::vector<float>{4, 1, 2, 0, 10, 7, 8, 0, //
                                16, 13, 14, 0, 22, 19, 20, 0}));
  EXPECT_EQ(floatsOf("vector"), (std::vector<float>{2, 3, 0}));
  EXPECT_EQ(floatsOf("zeros"), (std::vector<float>{0, 0, 0, 0}));
  auto described = weights->describe("columns");
  ASSERT_TRUE(described.ok());
  EXPECT_EQ(described->shape, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(described->data, nullptr);
}

TEST_F(ShardedWeightsTest, ColumnsAreWholeBlocks) {
  open({{"x", {"q", 1, {{32, 64}}, 96}}});
  auto view = weights->find("x");
  ASSERT_TRUE(view.ok()) << view.message();
  EXPECT_EQ(view->shape, (std::vector<int64_t>{2, 96}));
  const std::string zeros(34, '\0');
  EXPECT_EQ(std::string(static_cast<const char *>(view->data), view->bytes),
            std::string(34, 'b') + std::string(34, 'c') + zeros +
                std::string(34, 'e') + std::string(34, 'f') + zeros);
}

TEST_F(ShardedWeightsTest, CopiesAreHeldUntilTheyAreReleased) {
  open({{"x", {"w", 1, {{0, 3}}, 3}}});
  auto first = weights->find("x"), second = weights->find("x");
  EXPECT_EQ(first->data, second->data);
  weights->releasePart("x", 0, 8); // of a copy: nothing
  EXPECT_EQ(releases, Releases{});
  weights->release("x");
  EXPECT_EQ(releases, Releases{"w"});
  EXPECT_EQ(floatsOf("x"),
            (std::vector<float>{0, 1, 2, 6, 7, 8, 12, 13, 14, 18, 19, 20}));
}

TEST_F(ShardedWeightsTest, RowsReleaseWhatTheyAre) {
  open({{"x", {"w", 0, {{1, 2}}, 2}}});
  weights->releasePart("x", 4, 8);
  weights->release("x");
  EXPECT_EQ(releases, (Releases{"w 28 8", "w 24 48", "w"}));
}

TEST_F(ShardedWeightsTest, ATensorOfSeveralShardsIsNotReleased) {
  open({{"x", {"w", 0, {{0, 2}}, 2}}, {"all", {"w", 0, {{0, 4}}, 4}}});
  weights->release("x");
  EXPECT_EQ(releases, Releases{"w 0 48"});
}

TEST_F(ShardedWeightsTest, ManyThreadsMakeOneCopy) {
  open({{"x", {"w", 1, {{0, 3}}, 3}}});
  std::vector<const void *> seen(8);
  std::vector<std::thread> threads;
  for (const void *&data : seen)
    threads.emplace_back([&] { data = weights->find("x")->data; });
  for (std::thread &thread : threads)
    thread.join();
  for (const void *data : seen)
    EXPECT_EQ(data, seen[0]);
}

TEST_F(ShardedWeightsTest, SaysWhatIsWrong) {
  EXPECT_EQ(errorOf({"none", 0, {{0, 1}}, 1}), "shard 'x': no tensor 'none'");
  EXPECT_EQ(
      errorOf({"v", 1, {{0, 1}}, 1}),
      "shard 'x': checkpoint tensor 'v' has 1 dimensions, of which number "
      "1 cannot be split");
  EXPECT_EQ(errorOf({"w", 0, {{3, 2}}, 2}),
            "shard 'x': 2 elements from number 3 on are not in the 4 of 'w'");
  EXPECT_EQ(errorOf({"w", 0, {{-1, 2}}, 2}),
            "shard 'x': 2 elements from number -1 on are not in the 4 of 'w'");
  EXPECT_EQ(errorOf({"q", 1, {{16, 32}}, 32}),
            "shard 'x': 32 columns from number 16 on split blocks of 32");
  EXPECT_EQ(errorOf({"q", 1, {{0, 32}}, 48}),
            "shard 'x': 32 elements and zeros do not make 48");
  EXPECT_EQ(errorOf({"w", 0, {{0, 3}}, 2}),
            "shard 'x': 3 elements and zeros do not make 2");
  EXPECT_EQ(errorOf({"w", 0, {}, 0}),
            "shard 'x': 0 elements and zeros do not make 0");
}

} // namespace
