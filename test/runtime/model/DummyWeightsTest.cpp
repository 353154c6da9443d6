//===- DummyWeightsTest.cpp - Random weights of known models --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/DummyWeights.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/io/Safetensors.h"
#include "runtime/model/NamedConfigs.h"
#include "runtime/model/TensorList.h"
#include "runtime/weights/RowScales.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <thread>

using namespace kf;

namespace {

ModelConfig configOf(const std::string &name) {
  const NamedConfig *named = findNamedConfig(name);
  EXPECT_TRUE(named) << name;
  Result<ModelConfig> config = parseModelConfig(named->json);
  EXPECT_TRUE(config.ok()) << config.message();
  return config.ok() ? *config : ModelConfig();
}

int64_t parametersOf(const ModelConfig &config) {
  int64_t total = 0;
  for (const ListedTensor &tensor : listTensors(config)) {
    int64_t count = 1;
    for (int64_t dim : tensor.shape)
      count *= dim;
    total += count;
  }
  return total;
}

/// What the models' pages say they have.
TEST(NamedConfigs, HaveTheNumberOfParameters) {
  const std::pair<std::string, int64_t> published[] = {
      {"tinyllama-1.1b", 1100048384},
      {"llama-3.2-1b", 1235814400},
      {"llama-3.2-3b", 3212749824},
      {"llama-2-7b", 6738415616},
      {"llama-3-8b", 8030261248},
      {"llama-3-70b", 70553706496},
      {"mistral-7b", 7241732096},
      {"qwen2.5-0.5b", 494032768},
      {"granite-3.3-2b", 2533539840},
      {"smollm3-3b", 3075098624},
      {"olmo-2-1b", 1484916736},
      {"phi-3-mini-4k", 3821079552},
      {"stablelm-2-1.6b", 1644515328},
      {"starcoder2-3b", 3030371328},
      {"gemma-2-2b", 2614341888},
      {"gemma-3-4b", 3880263168},
      {"gemma-3-1b", 999885952},
      {"olmo-3-7b", 7298011136},
      {"phi-4-mini", 3836021760},
      {"aya-23-8b", 8028033024},
      {"command-r7b", 8028033024},
      {"mixtral-8x7b", 46702792704},
      {"qwen1.5-moe-a2.7b", 14315784192},
      {"qwen3-30b-a3b", 30532122624},
      {"qwen3-next-80b-a3b", 79674391296},
      {"qwen3.5-9b", 8953803264},
      {"granite-3.1-3b-a800m", 3298793472},
      {"olmoe-1b-7b", 6919161856},
      {"gpt-oss-20b", 20914757184},
      {"llama-4-scout", 107769861120},
      {"deepseek-v3", 671026419200},
      {"gemma-3n-e2b", 4435182688},
      {"gemma-4-e2b", 4628569379},
      {"gemma-4-26b-a4b", 25233141790}};
  EXPECT_EQ(namedConfigs().size(), std::size(published));
  for (const auto &[name, parameters] : published)
    EXPECT_EQ(parametersOf(configOf(name)), parameters) << name;
  EXPECT_FALSE(findNamedConfig("llama"));
  EXPECT_FALSE(findNamedConfig(""));
}

TEST(NamedConfigs, KeepWhatSetsTheModelsApart) {
  ModelConfig llama = configOf("llama-3.2-1b");
  EXPECT_EQ(llama.commonRope()->scaling, RopeConfig::Scaling::Llama3);
  EXPECT_EQ(llama.commonRope()->factor, 32);
  EXPECT_TRUE(llama.tiedEmbeddings);
  EXPECT_EQ(configOf("mistral-7b").windows()[31], 4096);
  ModelConfig qwen = configOf("qwen2.5-0.5b");
  EXPECT_TRUE(qwen.qkvBias);
  EXPECT_EQ(qwen.windows()[23], 0);
  EXPECT_EQ(configOf("llama-2-7b").dtype, DataType::F16);
}

/// The list has to agree with checkpoints that Hugging Face's code wrote.
TEST(TensorList, IsWhatCheckpointsHold) {
  for (const char *model :
       {"gpt2-layernorm", "llama-bias", "llama-wide-head", "llama2-mha",
        "llama3-gqa-scaled", "mistral-window", "qwen2-bias", "qwen3-qknorm",
        "mixtral", "qwen2-moe", "qwen3-moe", "olmoe"}) {
    const std::string folder =
        std::string(KF_SOURCE_DIR "/test/golden/") + model;
    auto config = loadModelConfig(folder);
    ASSERT_TRUE(config.ok()) << config.message();
    auto weights = openSafetensors(folder);
    ASSERT_TRUE(weights.ok()) << weights.message();
    std::set<std::string> listed;
    for (const ListedTensor &tensor : listTensors(*config)) {
      listed.insert(tensor.name);
      auto view = (*weights)->find(tensor.name);
      ASSERT_TRUE(view.ok()) << view.message();
      EXPECT_EQ(view->shape, tensor.storedShape())
          << model << ": " << tensor.name;
    }
    for (const std::string &name : (*weights)->names())
      EXPECT_TRUE(listed.count(name)) << model << ": " << name;
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Two small layers of a width that every block goes into.
ModelConfig smallConfig() {
  auto config = parseModelConfig(R"({"model_type": "qwen2", "hidden_size": 512,
    "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2,
    "intermediate_size": 1024, "vocab_size": 300})");
  EXPECT_TRUE(config.ok()) << config.message();
  return *config;
}

std::unique_ptr<DummyWeights> make(const ModelConfig &config, DataType type,
                                   uint64_t seed = 0) {
  auto weights = DummyWeights::create(config, type, seed);
  EXPECT_TRUE(weights.ok()) << weights.message();
  return weights.take();
}

std::vector<float> valuesOf(const TensorView &view) {
  int64_t count = static_cast<int64_t>(view.bytes) / bytesPerBlock(view.type) *
                  elementsPerBlock(view.type);
  std::vector<float> values(count);
  EXPECT_TRUE(convertToFloat(view.type, view.data, count, values.data()).ok());
  return values;
}

struct Moments {
  double mean = 0, deviation = 0;
};

Moments momentsOf(const TensorView &view) {
  std::vector<float> values = valuesOf(view);
  double sum = 0, squares = 0;
  for (float value : values) {
    EXPECT_TRUE(std::isfinite(value));
    sum += value;
    squares += double(value) * value;
  }
  double mean = sum / values.size();
  return {mean, std::sqrt(squares / values.size() - mean * mean)};
}

const std::string kMatrix = "model.layers.1.mlp.down_proj.weight";

TEST(DummyWeights, EveryTypeHasTheDeviation) {
  std::vector<DataType> types = {DataType::F32, DataType::F16, DataType::BF16};
  for (const BlockFormat &format : kBlockFormats)
    types.push_back(format.type);
  for (DataType type : types) {
    auto weights = make(smallConfig(), type);
    auto view = weights->find(kMatrix);
    ASSERT_TRUE(view.ok()) << view.message();
    EXPECT_EQ(view->type, type);
    EXPECT_EQ(view->shape, (std::vector<int64_t>{512, 1024}));
    Moments moments = momentsOf(*view);
    EXPECT_NEAR(moments.mean, 0, 0.0005) << nameOf(type);
    EXPECT_NEAR(moments.deviation, 0.02, 0.001) << nameOf(type);
  }
}

TEST(DummyWeights, NormsAndBiases) {
  const DataType cases[][2] = {{DataType::BF16, DataType::BF16},
                               {DataType::F32, DataType::F32},
                               {DataType::Q4_K, DataType::F32}};
  for (auto [type, expected] : cases) {
    auto weights = make(smallConfig(), type);
    auto norm = weights->find("model.norm.weight");
    ASSERT_TRUE(norm.ok()) << norm.message();
    EXPECT_EQ(norm->type, expected);
    EXPECT_NEAR(momentsOf(*norm).mean, 1, 0.01);
    auto bias = weights->find("model.layers.0.self_attn.k_proj.bias");
    ASSERT_TRUE(bias.ok()) << bias.message();
    EXPECT_EQ(bias->type, expected);
    EXPECT_NEAR(momentsOf(*bias).mean, 0, 0.01);
  }
}

TEST(DummyWeights, RowsWithoutWholeBlocksTakeAnotherType) {
  // Rows of 896 values: 28 blocks of 32, and three and a half of 256.
  auto weights = make(configOf("qwen2.5-0.5b"), DataType::Q4_K);
  auto query = weights->describe("model.layers.0.self_attn.q_proj.weight");
  ASSERT_TRUE(query.ok()) << query.message();
  EXPECT_EQ(query->type, DataType::Q8_0);
  auto down = weights->describe("model.layers.0.mlp.down_proj.weight");
  ASSERT_TRUE(down.ok()) << down.message();
  EXPECT_EQ(down->type, DataType::Q4_K); // rows of 4864
  EXPECT_EQ(down->bytes, uint64_t(896) * 4864 / 256 * 144);

  ModelConfig odd = smallConfig();
  odd.hiddenSize = 8 * 62;
  auto other = make(odd, DataType::Q4_0);
  auto embedding = other->describe("model.embed_tokens.weight");
  ASSERT_TRUE(embedding.ok()) << embedding.message();
  EXPECT_EQ(embedding->type, DataType::F16);

  // What is stored transposed has no rows of products.
  auto latent = make(configOf("deepseek-v3"), DataType::Q4_0);
  const std::string of = "model.layers.0.self_attn.kv_b_proj.0.";
  auto keys = latent->describe(of + "keys.weight");
  ASSERT_TRUE(keys.ok()) << keys.message();
  EXPECT_EQ(keys->type, DataType::F16);
  EXPECT_EQ(keys->shape, (std::vector<int64_t>{128, 512}));
  auto values = latent->describe(of + "values.weight");
  ASSERT_TRUE(values.ok()) << values.message();
  EXPECT_EQ(values->type, DataType::Q4_0);
}

TEST(DummyWeights, NameAndSeedDecide) {
  const std::string other = "model.layers.0.mlp.down_proj.weight";
  for (DataType type : {DataType::BF16, DataType::Q4_0}) {
    auto first = make(smallConfig(), type, 7);
    auto again = make(smallConfig(), type, 7);
    auto seeded = make(smallConfig(), type, 8);
    auto bytes = [](const DummyWeights &weights, const std::string &name) {
      auto view = weights.find(name);
      EXPECT_TRUE(view.ok()) << view.message();
      return std::string(static_cast<const char *>(view->data), view->bytes);
    };
    const std::string expected = bytes(*first, kMatrix);
    EXPECT_EQ(bytes(*again, kMatrix), expected);
    EXPECT_NE(bytes(*seeded, kMatrix), expected);
    EXPECT_NE(bytes(*first, other), expected);
    first->release(kMatrix);
    EXPECT_EQ(bytes(*first, kMatrix), expected);
  }
}

TEST(DummyWeights, DescribeMakesNothing) {
  auto weights = make(configOf("llama-3-8b"), DataType::F32);
  uint64_t total = 0;
  for (const std::string &name : weights->names()) {
    auto view = weights->describe(name);
    ASSERT_TRUE(view.ok()) << view.message();
    EXPECT_EQ(view->data, nullptr);
    total += view->bytes;
  }
  EXPECT_EQ(total, uint64_t(8030261248) * 4);
}

TEST(DummyWeights, ThreadsMakeTensorsAtOnce) {
  auto weights = make(smallConfig(), DataType::Q6_K);
  auto alone = make(smallConfig(), DataType::Q6_K);
  std::vector<std::thread> threads;
  std::vector<const void *> found(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (const std::string &name : weights->names())
        EXPECT_TRUE(weights->find(name).ok());
      found[t] = weights->find(kMatrix)->data;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const void *data : found)
    EXPECT_EQ(data, found[0]);
  auto view = alone->find(kMatrix);
  EXPECT_EQ(std::memcmp(found[0], view->data, view->bytes), 0);
}

TEST(DummyWeights, AnyTensors) {
  const std::vector<DummyTensor> tensors = {{"w", DataType::Q4_0, {3, 64}},
                                            {"n", DataType::F32, {1000}, 1}};
  auto weights = DummyWeights::create(tensors, 5);
  ASSERT_TRUE(weights.ok()) << weights.message();
  EXPECT_EQ((*weights)->names(), (std::vector<std::string>{"n", "w"}));
  EXPECT_EQ((*weights)->find("w")->bytes, 3u * 2 * 18);
  auto norm = (*weights)->find("n");
  ASSERT_TRUE(norm.ok());
  const float *values = static_cast<const float *>(norm->data);
  EXPECT_NEAR(std::accumulate(values, values + 1000, 0.0) / 1000, 1, 0.01);

  EXPECT_EQ(
      DummyWeights::create(std::vector<DummyTensor>{tensors[0], tensors[0]}, 5)
          .message(),
      "there are two tensors 'w'");
  const DummyTensor cut = {"c", DataType::Q4_0, {3, 40}};
  EXPECT_NE(DummyWeights::create({&cut, 1}, 5).message().find("tensor 'c'"),
            std::string::npos);
  const DummyTensor integers = {"i", DataType::I32, {3}};
  EXPECT_FALSE(DummyWeights::create({&integers, 1}, 5).ok());
}

// As a checkpoint has them: tables stay bf16.
TEST(DummyWeights, EightBitsWithScales) {
  const ModelConfig config = smallConfig();
  auto weights = make(config, DataType::F8E4M3);
  size_t kept = 0;
  for (const ListedTensor &tensor : listTensors(config)) {
    SCOPED_TRACE(tensor.name);
    auto view = weights->find(tensor.name);
    ASSERT_TRUE(view.ok()) << view.message();
    if (!isFactor(tensor)) {
      EXPECT_EQ(view->type, DataType::BF16);
      EXPECT_FALSE(weights->find(scaleName(tensor.name)).ok());
      continue;
    }
    ++kept;
    EXPECT_EQ(view->type, DataType::F8E4M3);
    auto scales = weights->find(scaleName(tensor.name));
    ASSERT_TRUE(scales.ok()) << scales.message();
    EXPECT_EQ(scales->shape, std::vector<int64_t>{tensor.shape[0]});
    std::vector<float> values(view->bytes);
    ASSERT_TRUE(convertToFloat(view->type, view->data,
                               static_cast<int64_t>(values.size()),
                               values.data())
                    .ok());
    const auto *factors = static_cast<const float *>(scales->data);
    double squares = 0;
    for (size_t i = 0; i < values.size(); ++i)
      squares += std::pow(values[i] * factors[i / tensor.shape[1]], 2);
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())), 0.02,
                0.02 * 0.4);
  }
  EXPECT_GT(kept, 0u);
  EXPECT_LT(kept, listTensors(config).size());
}

TEST(DummyWeights, SaysWhatItCannotMake) {
  EXPECT_EQ(DummyWeights::create(smallConfig(), DataType::I8, 0).message(),
            "weights cannot be of type i8; f32, f16, bf16, f8E4M3FN and GGUF's "
            "block types are possible");
  auto weights = make(smallConfig(), DataType::F32);
  EXPECT_EQ(weights->find("x").message(), "the model has no tensor 'x'");
  EXPECT_EQ(weights->describe("x").message(), "the model has no tensor 'x'");
  weights->release("x");
}

// Threads make parts of them.
TEST(DummyWeights, LargeTensorsBeginLikeSmallOnes) {
  for (DataType type : {DataType::F32, DataType::BF16, DataType::Q4_K}) {
    const int64_t block = elementsPerBlock(type);
    const int64_t part = isBlock(type) ? block << 15 : 1 << 20;
    std::vector<std::string> bytes;
    for (int64_t count : {part / 4, part + 8 * block, 2 * part + 20 * block}) {
      DummyTensor tensor = {"t", type, {count}};
      auto weights = DummyWeights::create({&tensor, 1}, 5);
      ASSERT_TRUE(weights.ok()) << weights.message();
      auto view = (*weights)->find("t");
      ASSERT_TRUE(view.ok()) << view.message();
      bytes.emplace_back(static_cast<const char *>(view->data), view->bytes);
    }
    EXPECT_TRUE(bytes[1].starts_with(bytes[0])) << nameOf(type);
    EXPECT_TRUE(bytes[2].starts_with(bytes[1])) << nameOf(type);
    // Parts differ.
    const size_t size = bytes[0].size();
    EXPECT_NE(bytes[2].substr(4 * size, size), bytes[0]) << nameOf(type);
  }
}

} // namespace
