//===- GridWeightsTest.cpp - Tensors of GGUF's grids ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GridWeights.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Nvfp4Weights.h"
#include "test/runtime/GgufBuilder.h"

#include <gtest/gtest.h>

using namespace kf;
using kf::test::GgufBuilder;

namespace {

/// What the gguf package made.
HostTensor readData(const std::string &name) {
  Result<HostTensor> tensor =
      readNpy(KF_SOURCE_DIR "/test/runtime/data/blocks/" + name + ".npy");
  EXPECT_TRUE(tensor.ok()) << tensor.message();
  return tensor.ok() ? tensor.take() : HostTensor();
}

struct Case {
  uint32_t number; ///< ggml's, of the type
  std::string name;
  DataType into;
  std::string note;
};
const Case kCases[] = {
    {21, "iq3_s", DataType::Q6_K,
     "1 tensor of IQ3_S is read as q6_k, of the same values, in 1.9 times the "
     "memory"},
    {18, "iq3_xxs", DataType::Q6_K,
     "1 tensor of IQ3_XXS is read as q6_k, of the same values but for small "
     "scales, in 2.1 times the memory"},
    {16, "iq2_xxs", DataType::Q8_0,
     "1 tensor of IQ2_XXS is read as q8_0, rounded to it, in 4.1 times the "
     "memory"},
    {17, "iq2_xs", DataType::Q8_0,
     "1 tensor of IQ2_XS is read as q8_0, rounded to it, in 3.7 times the "
     "memory"},
    {22, "iq2_s", DataType::Q8_0,
     "1 tensor of IQ2_S is read as q8_0, rounded to it, in 3.3 times the "
     "memory"}};

TEST(GridWeights, HasTheValuesOfTheGgufPackage) {
  for (const Case &each : kCases) {
    const HostTensor blocks = readData(each.name + ".blocks");
    const HostTensor values = readData(each.name + ".values");
    const int64_t count = values.elementCount();
    ASSERT_EQ(count, 256 * 6) << each.name;
    const std::string file =
        GgufBuilder()
            .tensorEntry("a", {512, 3}, each.number, 0)
            .append({reinterpret_cast<const char *>(blocks.bytes.data()),
                     blocks.bytes.size()})
            .bytes();
    auto gguf = Gguf::parse(std::as_bytes(std::span(file)), "test");
    ASSERT_TRUE(gguf.ok()) << gguf.message();
    ASSERT_TRUE(GridWeights::isNeeded(**gguf));
    const GridWeights weights(gguf.take());
    EXPECT_EQ(weights.notes(), std::vector<std::string>{each.note});
    EXPECT_EQ(weights.names(), std::vector<std::string>{"a"});

    auto described = weights.describe("a");
    ASSERT_TRUE(described.ok()) << described.message();
    EXPECT_EQ(described->type, each.into);
    EXPECT_EQ(described->shape, (std::vector<int64_t>{3, 512}));
    EXPECT_EQ(described->data, nullptr);
    auto view = weights.find("a");
    ASSERT_TRUE(view.ok()) << view.message();
    EXPECT_EQ(view->bytes, described->bytes);
    EXPECT_EQ(view->bytes, uint64_t(*checkedByteCount(each.into, view->shape)));

    std::vector<float> expected(values.data<float>(),
                                values.data<float>() + count);
    if (each.into == DataType::Q8_0) {
      std::vector<uint8_t> rounded(view->bytes);
      quantizeBlocks(each.into, expected.data(), count / 32, rounded.data());
      ASSERT_TRUE(std::ranges::equal(
          rounded,
          std::span(static_cast<const uint8_t *>(view->data), view->bytes)))
          << each.name;
      continue;
    }
    std::vector<float> got(count);
    ASSERT_TRUE(convertToFloat(view->type, view->data, count, got.data()).ok());
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(got[i], expected[i]) << each.name << " element " << i;
  }
}

TEST(GridWeights, MakesWhatWasReleasedAnew) {
  const std::string file = GgufBuilder()
                               .tensorEntry("a", {256}, 21, 0)
                               .tensorEntry("b", {4}, 0, 128)
                               .append(std::string(128 + 16, '\x11'))
                               .bytes();
  auto gguf = Gguf::parse(std::as_bytes(std::span(file)), "test");
  ASSERT_TRUE(gguf.ok()) << gguf.message();
  EXPECT_EQ((*gguf)->bytesOf("a").size(), 110u);
  EXPECT_TRUE((*gguf)->bytesOf("c").empty());
  const GridWeights weights(gguf.take());
  auto first = weights.find("a");
  ASSERT_TRUE(first.ok());
  const std::string bytes(static_cast<const char *>(first->data), first->bytes);
  weights.releasePart("a", 0, 10);
  weights.release("a");
  auto again = weights.find("a");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(bytes,
            std::string(static_cast<const char *>(again->data), again->bytes));
  EXPECT_EQ(weights.find("b")->type, DataType::F32);
  EXPECT_EQ(weights.describe("b")->type, DataType::F32);
  EXPECT_FALSE(weights.find("c").ok());
  weights.release("b");
}

/// Each passes on what the other makes.
TEST(GridWeights, StandsBelowNvfp4Weights) {
  const HostTensor blocks = readData("iq3_s.blocks");
  const HostTensor values = readData("iq3_s.values");
  ASSERT_EQ(blocks.bytes.size(), 110u * 6);
  const std::string file =
      GgufBuilder()
          .tensorEntry("a.weight", {512, 3}, 21, 0)
          .tensorEntry("b.weight", {64}, 40, 672)
          .tensorEntry("c.weight", {4}, 0, 736)
          .append({reinterpret_cast<const char *>(blocks.bytes.data()),
                   blocks.bytes.size()})
          .append(std::string(12, '\0'))
          .append(std::string(4, '\x38'))  // ones as scales
          .append(std::string(32, '\x22')) // ones
          .append(std::string(28, '\0'))
          .append(std::string(16, '\0'))
          .bytes();
  auto gguf = Gguf::parse(std::as_bytes(std::span(file)), "test");
  ASSERT_TRUE(gguf.ok()) << gguf.message();
  const Gguf &tensors = **gguf;
  ASSERT_TRUE(GridWeights::isNeeded(tensors));
  ASSERT_TRUE(Nvfp4Weights::isNeeded(tensors));
  auto weights =
      Nvfp4Weights::create(std::make_unique<GridWeights>(gguf.take()), tensors);
  ASSERT_TRUE(weights.ok()) << weights.message();
  EXPECT_EQ((*weights)->names(),
            (std::vector<std::string>{"a.weight", "b.weight", "c.weight"}));
  auto valuesOf = [&](const std::string &name, DataType type, int64_t count) {
    auto view = (*weights)->find(name);
    EXPECT_TRUE(view.ok()) << view.message();
    std::vector<float> got(count);
    if (!view.ok())
      return got;
    EXPECT_EQ(view->type, type);
    EXPECT_TRUE(convertToFloat(view->type, view->data, count, got.data()).ok());
    return got;
  };
  const auto *expected = values.data<float>();
  EXPECT_EQ(valuesOf("a.weight", DataType::Q6_K, 512 * 3),
            std::vector<float>(expected, expected + 512 * 3));
  EXPECT_EQ(valuesOf("b.weight", DataType::BF16, 64),
            std::vector<float>(64, 1.0f));
  EXPECT_EQ(valuesOf("c.weight", DataType::F32, 4), std::vector<float>(4));
}

TEST(GridWeights, IsNotNeededForOthers) {
  const std::string file = GgufBuilder().tensor("b", {4}).bytes();
  auto gguf = Gguf::parse(std::as_bytes(std::span(file)), "test");
  ASSERT_TRUE(gguf.ok()) << gguf.message();
  EXPECT_FALSE(GridWeights::isNeeded(**gguf));
}

} // namespace
