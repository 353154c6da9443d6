//===- ConvertLayersTest.cpp - GGUF files whose layers differ -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GgufConfig.h"
#include "runtime/model/StoredTensors.h"
#include "runtime/model/TensorList.h"
#include "test/runtime/convert/ConvertTesting.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace kf;
using namespace kf::test;

namespace {

/// What layers do, but for how they turn queries and keys, and for numbers that
/// files have as f32.
std::vector<LayerConfig> layersOf(const ModelConfig &config) {
  std::vector<LayerConfig> layers = config.layerConfigs;
  for (LayerConfig &layer : layers) {
    if (layer.rope) {
      RopeConfig rope;
      rope.dim = layer.rope->dim;
      layer.rope = rope;
    }
    if (layer.gateCutoff)
      layer.gateCutoff = std::round(*layer.gateCutoff * 1e5);
  }
  return layers;
}

TEST(ConvertLayers, ReadBackAsTheyAre) {
  for (const std::string name :
       {"qwen3-next", "qwen3-5", "gemma3n", "gemma4-moe", "gemma4-shared-kv",
        "deepseek-v3"}) {
    SCOPED_TRACE(name);
    TempFolder folder;
    const Source source = openSource(kGolden + name);
    auto gguf = convertFolder(folder, kGolden + name, DataType::BF16);
    ASSERT_TRUE(gguf);
    const Result<ModelConfig> config = readGgufConfig(*gguf);
    ASSERT_TRUE(config.ok()) << config.message();
    EXPECT_EQ(config->architecture, source.config.architecture);
    EXPECT_EQ(layersOf(*config), layersOf(source.config));
    EXPECT_EQ(config->experts, source.config.experts);
    EXPECT_EQ(config->latent, source.config.latent);
    EXPECT_EQ(config->linear, source.config.linear);
    EXPECT_EQ(config->streams, source.config.streams);
    EXPECT_EQ(config->narrowWidth, source.config.narrowWidth);
    EXPECT_EQ(config->tokenInputWidth, source.config.tokenInputWidth);
    EXPECT_EQ(config->layerScales, source.config.layerScales);
    EXPECT_EQ(config->valueNorm, source.config.valueNorm);
    EXPECT_EQ(config->gatedAttention, source.config.gatedAttention);
    EXPECT_NEAR(config->attentionScale, source.config.attentionScale, 1e-6);
    std::unique_ptr<WeightSource> weights = std::move(gguf);
    ASSERT_TRUE(adaptStoredTensors(*config, weights).ok());
    const auto found = findTensors(*config, *weights);
    EXPECT_TRUE(found.ok()) << found.message();
  }
}

/// Of two key heads with two value heads each, 0 and 1 are the first one's in a
/// folder, and 0 and 2 in a file.
TEST(ConvertLayers, ValueHeadsTakeTurns) {
  const std::string model = kGolden + "qwen3-5";
  TempFolder folder;
  const Source source = openSource(model);
  auto gguf = convertFolder(folder, model, DataType::F32);
  ASSERT_TRUE(gguf);
  const LinearAttentionConfig &linear = source.config.linear;
  ASSERT_EQ(linear.keyHeads, 2);
  ASSERT_EQ(linear.valueHeads, 4);
  const std::string at = "model.layers.0.linear_attn.";
  constexpr int64_t order[] = {0, 2, 1, 3};
  const int64_t hidden = source.config.hiddenSize, dv = linear.valueDim;
  auto expectRows = [&](const std::string &file, const std::string &from,
                        int64_t first, int64_t rows, int64_t columns) {
    const std::vector<float> found = valuesOf(*gguf, file);
    const std::vector<float> expected = valuesOf(*source.weights, from);
    ASSERT_EQ(found.size(), expected.size());
    const int64_t size = rows * columns;
    for (int64_t head = 0; head < 4; ++head)
      for (int64_t i = 0; i < size; ++i)
        ASSERT_EQ(found[first * columns + head * size + i],
                  expected[first * columns + order[head] * size + i])
            << file << " " << head << " " << i;
    for (int64_t i = 0; i < first * columns; ++i)
      ASSERT_EQ(found[i], expected[i]) << file << " " << i;
  };
  const int64_t keys = 2 * linear.keyHeads * linear.keyDim;
  expectRows("blk.0.attn_qkv.weight", at + "in_proj_qkv.weight", keys, dv,
             hidden);
  expectRows("blk.0.attn_gate.weight", at + "in_proj_z.weight", 0, dv, hidden);
  expectRows("blk.0.ssm_beta.weight", at + "in_proj_b.weight", 0, 1, hidden);
  expectRows("blk.0.ssm_alpha.weight", at + "in_proj_a.weight", 0, 1, hidden);
  expectRows("blk.0.ssm_conv1d.weight", at + "conv1d.weight", keys, dv,
             linear.taps);
  expectRows("blk.0.ssm_dt.bias", at + "dt_bias", 0, 1, 1);
  const std::vector<float> rates = valuesOf(*gguf, "blk.0.ssm_a");
  const std::vector<float> decays = valuesOf(*source.weights, at + "A_log");
  for (size_t head = 0; head < 4; ++head)
    EXPECT_EQ(rates[head], -std::exp(decays[order[head]]));
  const std::vector<float> out = valuesOf(*gguf, "blk.0.ssm_out.weight");
  const std::vector<float> from =
      valuesOf(*source.weights, at + "out_proj.weight");
  for (int64_t row = 0; row < hidden; ++row)
    for (int64_t column = 0; column < 4 * dv; ++column)
      ASSERT_EQ(out[row * 4 * dv + column],
                from[row * 4 * dv + order[column / dv] * dv + column % dv]);
}

} // namespace
