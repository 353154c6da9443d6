//===- ConvertLayersTest.cpp - GGUF files whose layers differ -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/TensorNames.h"
#include "runtime/convert/TensorRows.h"
#include "runtime/model/DummyWeights.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/StoredTensors.h"
#include "runtime/model/TensorList.h"
#include "test/runtime/convert/ConvertTesting.h"

#include "gtest/gtest.h"

#include <algorithm>
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

/// What a file says of the golden model `name`, changed, with random weights,
/// and the file, whose tensors are those that follow.
struct Changed {
  ModelConfig from, config;
  std::unique_ptr<WeightSource> file;

  template <typename Change> Changed(const std::string &name, Change change) {
    from = openSource(kGolden + name).config;
    change(from);
    auto weights = DummyWeights::create(from, DataType::F32, 1);
    EXPECT_TRUE(weights.ok()) << weights.message();
    Result<GgufPlan> plan =
        planFromModel(from, **weights, {}, "x", DataType::F32);
    EXPECT_TRUE(plan.ok()) << plan.message();
    if (!plan.ok())
      return;
    auto gguf = writeAndOpen(folder, *plan, **weights);
    Result<ModelConfig> read = readGgufConfig(*gguf);
    EXPECT_TRUE(read.ok()) << read.message();
    file = std::move(gguf);
    if (!read.ok())
      return;
    config = read.take();
    const Status adapted = adaptStoredTensors(config, file);
    EXPECT_TRUE(adapted.ok()) << adapted.message();
    const auto found = findTensors(config, *file);
    EXPECT_TRUE(found.ok()) << found.message();
  }

private:
  TempFolder folder;
};

/// Gives every RoPE of a layer without a window the kind of scaling.
void scaleRopes(ModelConfig &config, RopeConfig::Scaling scaling) {
  for (LayerConfig &layer : config.layerConfigs) {
    if (!layer.rope || layer.window > 0)
      continue;
    layer.rope->scaling = scaling;
    layer.rope->factor = 8;
    layer.rope->originalContext = 64;
  }
}

/// The name of `config`'s first tensor that is `wanted`.
template <typename Wanted>
std::string firstTensor(const ModelConfig &config, Wanted wanted) {
  for (const ListedTensor &tensor : listTensors(config))
    if (wanted(tensor))
      return tensor.name;
  ADD_FAILURE() << "no such tensor";
  return "";
}

/// Weights of which one is said to be of Q8_0.
class OneOfBlocks : public WeightSource {
public:
  OneOfBlocks(const WeightSource &weights, std::string name)
      : weights(weights), name(std::move(name)) {}
  Result<TensorView> find(const std::string &wanted) const override {
    Result<TensorView> view = weights.find(wanted);
    if (view.ok() && wanted == name)
      view->type = DataType::Q8_0;
    return view;
  }
  std::vector<std::string> names() const override { return weights.names(); }

private:
  const WeightSource &weights;
  std::string name;
};

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

/// One table, as long as what is turned, whatever else heads have.
TEST(ConvertLayers, TablesAreOfWhatIsTurned) {
  for (const std::string name : {"deepseek-v3", "stablelm"}) {
    SCOPED_TRACE(name);
    const Changed changed(name, [](ModelConfig &config) {
      scaleRopes(config, RopeConfig::Scaling::Llama3);
    });
    ASSERT_TRUE(changed.file);
    const RopeConfig &rope = *changed.from.commonRope();
    EXPECT_LT(rope.dim, changed.from.headDim);
    EXPECT_EQ(valuesOf(*changed.file, "rope_freqs.weight"),
              llama3FrequencyFactors(rope));
    EXPECT_TRUE(changed.config.commonRope()->frequencyFactors);
    EXPECT_EQ(changed.config.commonRope()->dim, rope.dim);
  }
}

TEST(ConvertLayers, LatentRowsHaveBiases) {
  const Changed changed("deepseek-v3", [](ModelConfig &config) {
    config.qkvBias = config.attentionOutputBias = true;
  });
  EXPECT_TRUE(changed.config.qkvBias);
  EXPECT_TRUE(changed.config.attentionOutputBias);
}

/// Where no layer has linear attention, files say that, too.
TEST(ConvertLayers, NoLayerIsLinear) {
  for (const std::string name : {"qwen3-next", "qwen3-5"}) {
    SCOPED_TRACE(name);
    const Changed changed(name, [](ModelConfig &config) {
      config.linear = {};
      const std::optional<RopeConfig> rope =
          std::ranges::find(config.layerConfigs, false, &LayerConfig::isLinear)
              ->rope;
      for (LayerConfig &layer : config.layerConfigs) {
        layer.isLinear = false;
        layer.rope = rope;
      }
    });
    EXPECT_EQ(layersOf(changed.config), layersOf(changed.from));
    EXPECT_EQ(changed.config.linear, changed.from.linear);
  }
}

TEST(ConvertLayers, NamesRopesThatFilesCannotSay) {
  auto errorOf = [](const std::string &name, auto change) {
    Source source = openSource(kGolden + name);
    change(source.config);
    return planFromModel(source.config, *source.weights, {}, "x", DataType::F32)
        .message();
  };
  EXPECT_EQ(errorOf("deepseek-v3",
                    [](ModelConfig &config) {
                      for (LayerConfig &layer : config.layerConfigs)
                        layer.rope->interleaved = false;
                    }),
            "a GGUF file cannot say that RoPE turns halves of heads rather "
            "than neighbours ('rope_interleave')");
  for (auto [scaling, name] :
       {std::pair(RopeConfig::Scaling::Yarn, "yarn"),
        std::pair(RopeConfig::Scaling::Llama3, "llama3")})
    EXPECT_EQ(
        errorOf("gemma4-moe",
                [&](ModelConfig &config) { scaleRopes(config, scaling); }),
        std::string("a GGUF file cannot say that RoPE of layers without "
                    "a window is scaled by ") +
            name);
}

/// Heads' keys, which are transposed, as well as matrices of their own.
TEST(ConvertLayers, NamesBlocksThatCannotBeTransposed) {
  const Source source = openSource(kGolden + "deepseek-v3");
  const std::string name =
      firstTensor(source.config, [](const ListedTensor &tensor) {
        return tensor.ofHead && tensor.transposed;
      });
  const OneOfBlocks weights(*source.weights, name);
  EXPECT_EQ(listConvertedTensors(source.config, weights).message(),
            "checkpoint tensor '" + name +
                "' is quantized, so it cannot be transposed");
}

/// Of rates, -exp of what a checkpoint has, which readers take the logarithm.
TEST(ConvertLayers, NamesRatesThatAreNone) {
  for (float odd : {-120.0f, 90.0f, std::nanf("")}) {
    MapWeights weights;
    weights.add("x", {4}, {1, 2, odd, -80});
    const TensorView view = *weights.find("x");
    ConvertedTensor tensor;
    tensor.name = "y";
    tensor.source = "x";
    tensor.shape = {4};
    tensor.rows = {{0, 4}};
    tensor.negatedExponential = true;
    auto pool = makePool();
    EXPECT_EQ(TensorRows(*pool)
                  .convert(tensor, &view, DataType::F32,
                           [](std::span<const std::byte>) { return Status(); })
                  .message(),
              "tensor 'x' has a value in row 2 of which -exp is no finite "
              "number below 0");
  }
}

} // namespace
