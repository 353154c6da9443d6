//===- ModelWorkTest.cpp - What a decoder has to read and compute ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ModelWork.h"

#include "runtime/model/DummyWeights.h"
#include "runtime/model/NamedConfigs.h"
#include "runtime/model/TensorList.h"
#include "test/runtime/StatusAssertions.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace kf;
using namespace kf::test;

namespace {

ModelConfig configOf(const char *name) {
  return parseModelConfig(findNamedConfig(name)->json).take();
}

ModelWork workOf(const ModelConfig &config, DataType type,
                 DataType cacheType = DataType::F16) {
  auto weights = DummyWeights::create(config, type, 0);
  EXPECT_TRUE(succeeds(weights.status()));
  Result<ModelWork> work = ModelWork::of(config, **weights, cacheType);
  EXPECT_TRUE(succeeds(work.status()));
  return work.take();
}

// TinyLlama 1.1B, by hand.
constexpr double kLayers = 22, kHidden = 2048, kInner = 5632, kKeys = 256;
constexpr double kLayerElements =
    kLayers *
    (2 * kHidden * kHidden + 2 * kKeys * kHidden + 3 * kInner * kHidden);
constexpr double kHeadElements = 32000 * kHidden;
constexpr double kNormBytes = 45 * kHidden * 4;
constexpr double kKeyBytes = kLayers * 2 * kKeys * 2; // f16, of a position

} // namespace

TEST(ModelWork, OfATokenIsAllMatricesAndTheCache) {
  const ModelWork work = workOf(configOf("tinyllama-1.1b"), DataType::Q4_0);
  EXPECT_EQ(work.parameters(), 1100048384u);
  EXPECT_EQ(work.weightType(), DataType::Q4_0);
  const StepWork first = work.decode(1, 0, 1);
  const double blocks = 18.0 / 32;
  EXPECT_EQ(first.bytes, (kLayerElements + kHeadElements) * blocks +
                             kNormBytes + kHidden * blocks + kKeyBytes);
  EXPECT_EQ(first.blockOperations, 2 * (kLayerElements + kHeadElements));
  EXPECT_EQ(first.floatOperations, 4 * kHidden * kLayers);
}

TEST(ModelWork, GrowsWithTheDepthByTheCacheAlone) {
  const ModelWork work = workOf(configOf("tinyllama-1.1b"), DataType::BF16);
  const StepWork shallow = work.decode(1, 0, 1), deep = work.decode(1, 4096, 1);
  EXPECT_EQ(deep.bytes - shallow.bytes, 4096 * kKeyBytes);
  EXPECT_EQ(deep.floatOperations - shallow.floatOperations,
            4096 * 4 * kHidden * kLayers);
  EXPECT_EQ(shallow.blockOperations, 0);
}

TEST(ModelWork, OfSequencesReadsWeightsOnce) {
  const ModelWork work = workOf(configOf("tinyllama-1.1b"), DataType::F16);
  const StepWork one = work.decode(1, 0, 1), four = work.decode(4, 0, 1);
  EXPECT_EQ(four.floatOperations, 4 * one.floatOperations);
  EXPECT_EQ(four.bytes - one.bytes, 3 * (kKeyBytes + 2 * kHidden));
  const StepWork two = work.decode(1, 0, 2);
  EXPECT_EQ(two.bytes, 2 * one.bytes + kKeyBytes);
}

TEST(ModelWork, OfAPromptGoesInSteps) {
  const ModelWork work = workOf(configOf("tinyllama-1.1b"), DataType::Q8_0);
  const StepWork prompt = work.prompt(1, 0, 512, 512);
  EXPECT_EQ(prompt.blockOperations, 2 * (512 * kLayerElements + kHeadElements));
  EXPECT_EQ(prompt.floatOperations, 512 * 513 / 2 * 4 * kHidden * kLayers);
  EXPECT_EQ(prompt.bf16Operations, 0);
  const ModelWork bf16 = workOf(configOf("tinyllama-1.1b"), DataType::BF16);
  EXPECT_EQ(bf16.prompt(1, 0, 512, 512).bf16Operations, prompt.blockOperations);
  // Twice the layers' weights, and the first half's keys once more; the output
  // is that of the last row.
  const StepWork halves = work.prompt(1, 0, 512, 256);
  const double weights = kLayerElements * 34 / 32 + kNormBytes;
  EXPECT_EQ(halves.bytes - prompt.bytes, weights + 256 * kKeyBytes);
  EXPECT_EQ(halves.floatOperations, prompt.floatOperations);
}

TEST(ModelWork, OfPromptsReadsTheOutputMatrixWhereOneEnds) {
  const ModelWork work = workOf(configOf("tinyllama-1.1b"), DataType::Q8_0);
  const double layers = kLayerElements * 34 / 32 + kNormBytes,
               head = kHeadElements * 34 / 32;
  // Rows and keys are the same; three prompts end in two steps, or in three.
  auto bytesOf = [&](int64_t rows) {
    return work.prompt(3, 0, 128, rows).bytes;
  };
  EXPECT_EQ(bytesOf(192) - bytesOf(384), layers + head);
  EXPECT_EQ(bytesOf(128) - bytesOf(192), layers + head);
  EXPECT_EQ(work.prompt(3, 0, 128, 64).bytes - bytesOf(128),
            3 * (layers + 64 * kKeyBytes));
}

TEST(ModelWork, LooksNoFurtherThanAWindow) {
  ModelConfig config = configOf("tinyllama-1.1b");
  config.layerConfigs.assign(static_cast<size_t>(config.layers), {});
  config.layerConfigs[0].window = 100;
  const ModelWork work = workOf(config, DataType::Q8_0);
  const StepWork shallow = work.decode(1, 99, 1), deep = work.decode(1, 199, 1);
  EXPECT_EQ(deep.bytes - shallow.bytes, 100 * kKeyBytes / kLayers * 21);
}

TEST(ModelWork, BeginsAnewWithAChunk) {
  ModelConfig config = configOf("tinyllama-1.1b");
  config.layerConfigs.assign(static_cast<size_t>(config.layers), {});
  config.layerConfigs[0].window = 100;
  config.layerConfigs[0].chunked = true;
  const ModelWork work = workOf(config, DataType::Q8_0);
  const StepWork last = work.decode(1, 99, 1), first = work.decode(1, 100, 1);
  EXPECT_EQ(first.bytes - last.bytes, kKeyBytes / kLayers * (21 - 99));
}

TEST(ModelWork, KnowsTheCachesType) {
  const ModelConfig config = configOf("tinyllama-1.1b");
  const ModelWork half = workOf(config, DataType::Q8_0),
                  bytes = workOf(config, DataType::Q8_0, DataType::Q8_0);
  EXPECT_EQ(half.decode(1, 999, 1).bytes - bytes.decode(1, 999, 1).bytes,
            1000 * (kKeyBytes - kKeyBytes / 2 * 34 / 32));
}

TEST(ModelWork, ReadsATiedTableInFull) {
  const ModelConfig config = configOf("qwen2.5-0.5b");
  ASSERT_TRUE(config.tiedEmbeddings);
  const ModelWork work = workOf(config, DataType::F32);
  const double row = static_cast<double>(config.hiddenSize) * 4;
  const double keys = static_cast<double>(config.layers * 2 * config.kvHeads *
                                          config.headDim * 2);
  EXPECT_EQ(work.decode(1, 0, 1).bytes,
            static_cast<double>(work.tensorBytes()) + row + keys);
}

/// A layer of 8 experts of which rows choose 2, and one without.
TEST(ModelWork, ReadsTheExpertsThatRowsChoose) {
  ModelConfig config = parseModelConfig(R"({"model_type": "qwen2_moe",
    "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 300,
    "moe_intermediate_size": 64, "shared_expert_intermediate_size": 128,
    "num_experts": 8, "num_experts_per_tok": 2, "mlp_only_layers": [0]})")
                           .take();
  const ModelWork work = workOf(config, DataType::F32);
  const double expert = 3 * 64 * 256;
  const double others = static_cast<double>(work.parameters()) - 8 * expert -
                        300 * 256; // the table
  const StepWork one = work.decode(1, 0, 1);
  const double rows = (2 * 2 * 256 * 2) + 256 * 4; // keys and values, an id's
  EXPECT_EQ(one.bytes, (others + 2 * expert) * 4 + rows);
  // Independent choices of two rows have 7/16 of the experts together.
  const StepWork two = work.decode(2, 0, 1);
  EXPECT_EQ(two.bytes, (others + 3.5 * expert) * 4 + 2 * rows);
  EXPECT_EQ(two.floatOperations, 2 * one.floatOperations);
  const double vectors = 5 * 256 + 2 * 3 * 256; // norms and biases
  EXPECT_EQ(one.floatOperations,
            2 * (others - vectors + 2 * expert) + 2 * 4 * 256);
  // A prompt of three rows in steps of two.
  const StepWork prompt = work.prompt(1, 0, 3, 2);
  const double head = 300 * 256;
  EXPECT_EQ(prompt.bytes,
            (2 * (others - head) + head + (3.5 + 2) * expert) * 4 +
                3 * 256 * 4 + (2 + 3) * 2 * 2 * 256 * 2);
}

/// Keys of layers of other sizes, and those that two layers attend to.
TEST(ModelWork, CountsTheKeysOfEachLayer) {
  ModelConfig config = configOf("tinyllama-1.1b");
  config.layers = 3;
  config.layerConfigs.resize(3);
  const auto growth = [&] {
    const ModelWork work = workOf(config, DataType::BF16);
    const StepWork shallow = work.decode(1, 0, 1),
                   deep = work.decode(1, 100, 1);
    return std::pair(deep.bytes - shallow.bytes,
                     deep.floatOperations - shallow.floatOperations);
  };
  const double bytes = 100.0 * 2 * kKeys * 2, operations = 100.0 * 4 * kHidden;
  EXPECT_EQ(growth(), std::pair(3 * bytes, 3 * operations));
  config.layerConfigs[1].headDim = 2 * config.headDim;
  config.layerConfigs[1].kvHeads = config.kvHeads / 4;
  EXPECT_EQ(growth(), std::pair(2.5 * bytes, 4 * operations));
  config.layerConfigs[2].keysOf = 0;
  EXPECT_EQ(growth(), std::pair(2.5 * bytes, 4 * operations));
}

TEST(ModelWork, ReadsAndWritesStates) {
  const ModelConfig config = configOf("qwen3.5-9b");
  ASSERT_EQ(config.linear.valueDim, 128);
  const double layers = static_cast<double>(
      std::ranges::count_if(config.layerConfigs, &LayerConfig::isLinear));
  const double heads = static_cast<double>(config.linear.valueHeads);
  const ModelWork work = workOf(config, DataType::BF16);
  const StepWork one = work.decode(1, 0, 1), two = work.decode(2, 0, 1);
  const double keys = static_cast<double>(config.layers) - layers;
  const double state = 128 * 128 + 3 * (3 * 128);
  EXPECT_EQ(two.bytes - one.bytes,
            layers * heads * 2 * 4 * state +
                keys * 2 * static_cast<double>(config.kvHeads) *
                    static_cast<double>(config.headDim) * 2 +
                2 * static_cast<double>(config.hiddenSize));
  // Whatever the depth is, as for full layers it is not.
  EXPECT_EQ(work.decode(1, 100, 1).floatOperations - one.floatOperations,
            keys * 100 * 4 * static_cast<double>(config.headDim) *
                static_cast<double>(config.heads));
  ModelConfig without = config;
  without.linear.taps = 2;
  EXPECT_EQ(one.floatOperations -
                workOf(without, DataType::BF16).decode(1, 0, 1).floatOperations,
            layers * heads * 2 * 2 * (3 * 128));
}

TEST(ModelWork, SaysWhatATensorLacks) {
  ModelConfig config = configOf("tinyllama-1.1b");
  auto weights = DummyWeights::create(config, DataType::F16, 0).take();
  ++config.layers;
  EXPECT_TRUE(failsWith(ModelWork::of(config, *weights, DataType::F16).status(),
                        "layers.22"));
}
