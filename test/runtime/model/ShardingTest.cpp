//===- ShardingTest.cpp - One rank's part of a model ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Sharding.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/model/DummyWeights.h"
#include "runtime/model/TensorList.h"
#include "runtime/weights/RowScales.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

using namespace kf;

namespace {

/// A llama with `more` in its config.json.
ModelConfig llama(const std::string &more, int heads = 8) {
  auto config = parseModelConfig(
      R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256,
          "rms_norm_eps": 1e-5, "max_position_embeddings": 64,
          "num_attention_heads": )" +
      std::to_string(heads) + ", " + more + "}");
  EXPECT_TRUE(config.ok()) << config.message();
  return *config;
}

ModelConfig gpt2() {
  auto config = parseModelConfig(
      R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4,
          "vocab_size": 307, "n_positions": 64})");
  EXPECT_TRUE(config.ok()) << config.message();
  return *config;
}

std::string bytesOf(const WeightSource &weights, const std::string &name) {
  auto view = weights.find(name);
  EXPECT_TRUE(view.ok()) << view.message();
  return view.ok()
             ? std::string(static_cast<const char *>(view->data), view->bytes)
             : std::string();
}

/// All ranks' parts of a model of dummy weights.
class Shards {
public:
  Shards(const ModelConfig &config, DataType type, int64_t ranks)
      : config(config) {
    whole = DummyWeights::create(config, type, /*seed=*/1).take();
    for (int64_t rank = 0; rank < ranks; ++rank) {
      auto shard = shardModel(config, whole, rank, ranks);
      EXPECT_TRUE(shard.ok()) << shard.message();
      parts.push_back(shard.take());
      // What programs are made of is there, and nothing else.
      auto found = findTensors(parts.back().config, *parts.back().weights);
      EXPECT_TRUE(found.ok()) << found.message();
    }
  }

  const ModelConfig &local() const { return parts.front().config; }

  std::string ofWhole(const std::string &name) const {
    return bytesOf(*whole, name);
  }
  std::string ofRank(size_t rank, const std::string &name) const {
    return bytesOf(*parts[rank].weights, name);
  }

  /// Every rank has all of it.
  void expectWhole(const std::string &name) const {
    for (size_t rank = 0; rank < parts.size(); ++rank)
      EXPECT_EQ(ofRank(rank, name), ofWhole(name)) << name;
  }

  /// The ranks' rows, one after the other, are those of `source`, and zeros.
  void expectRows(const std::string &name, std::string source = {}) const {
    std::string all;
    for (size_t rank = 0; rank < parts.size(); ++rank)
      all += ofRank(rank, name);
    expectWithZeros(all, ofWhole(source.empty() ? name : source), name);
  }

  /// The ranks' columns, side by side, are those of the whole, and zeros.
  void expectColumns(const std::string &name) const {
    const auto view = whole->describe(name);
    const size_t rows = static_cast<size_t>(view->shape[0]);
    std::vector<std::string> own;
    for (size_t rank = 0; rank < parts.size(); ++rank)
      own.push_back(ofRank(rank, name));
    const std::string all = ofWhole(name);
    for (size_t row = 0; row < rows; ++row) {
      std::string joined;
      for (const std::string &bytes : own)
        joined += bytes.substr(row * bytes.size() / rows, bytes.size() / rows);
      expectWithZeros(
          joined, all.substr(row * all.size() / rows, all.size() / rows), name);
    }
  }

  /// The first rank has all of it, the others have zeros.
  void expectOnce(const std::string &name) const {
    EXPECT_EQ(ofRank(0, name), ofWhole(name)) << name;
    for (size_t rank = 1; rank < parts.size(); ++rank)
      EXPECT_EQ(ofRank(rank, name), std::string(ofWhole(name).size(), '\0'))
          << name;
  }

  ModelConfig config;
  std::shared_ptr<WeightSource> whole;
  std::vector<ModelShard> parts;

private:
  static void expectWithZeros(const std::string &found,
                              const std::string &expected,
                              const std::string &name) {
    ASSERT_GE(found.size(), expected.size()) << name;
    EXPECT_EQ(found.substr(0, expected.size()), expected) << name;
    EXPECT_EQ(found.find_first_not_of('\0', expected.size()), found.npos)
        << name;
  }
};

TEST(Sharding, SharesHeadsInnerColumnsAndTheVocabulary) {
  const Shards shards(
      llama(R"("num_key_value_heads": 4, "intermediate_size": 300,
               "vocab_size": 307, "attention_bias": true, "mlp_bias": true)"),
      DataType::BF16, 4);
  EXPECT_EQ(shards.local().ranks, 4);
  EXPECT_EQ(shards.local().heads, 2);
  EXPECT_EQ(shards.local().kvHeads, 1);
  EXPECT_EQ(shards.local().intermediateSize, 75);
  EXPECT_EQ(shards.local().vocabSize, 307);
  EXPECT_FALSE(shards.local().outputByRows);
  shards.expectWhole("model.embed_tokens.weight");
  shards.expectWhole("model.norm.weight");
  shards.expectRows("lm_head.weight");
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    for (const char *part :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
          "mlp.gate_proj", "mlp.up_proj"}) {
      shards.expectRows(layer + part + ".weight");
      shards.expectRows(layer + part + ".bias");
    }
    for (const char *part : {"self_attn.o_proj", "mlp.down_proj"}) {
      shards.expectColumns(layer + part + ".weight");
      shards.expectOnce(layer + part + ".bias");
    }
    shards.expectWhole(layer + "input_layernorm.weight");
    shards.expectWhole(layer + "post_attention_layernorm.weight");
  }
}

TEST(Sharding, RepeatsKVHeadsWhereRanksExceedThem) {
  const Shards shards(
      llama(R"("num_key_value_heads": 2, "intermediate_size": 256,
               "vocab_size": 307)"),
      DataType::F32, 8);
  EXPECT_EQ(shards.local().heads, 1);
  EXPECT_EQ(shards.local().kvHeads, 1);
  for (const char *part : {"k_proj", "v_proj"}) {
    const std::string name =
        std::string("model.layers.1.self_attn.") + part + ".weight";
    const std::string all = shards.ofWhole(name);
    for (size_t rank = 0; rank < 8; ++rank)
      EXPECT_EQ(shards.ofRank(rank, name),
                all.substr(rank / 4 * (all.size() / 2), all.size() / 2));
  }
  shards.expectRows("model.layers.1.self_attn.q_proj.weight");
}

TEST(Sharding, TiedHeadsAreRowsOfTheTable) {
  const Shards shards(
      llama(R"("num_key_value_heads": 4, "intermediate_size": 256,
               "vocab_size": 307, "tie_word_embeddings": true)"),
      DataType::F16, 2);
  EXPECT_FALSE(shards.local().tiedEmbeddings);
  shards.expectWhole("model.embed_tokens.weight");
  shards.expectRows("lm_head.weight", "model.embed_tokens.weight");
}

TEST(Sharding, SharesBlocks) {
  // 2 ranks: 3 blocks of 256 of down's columns, of which they have 2 and 1.
  const ModelConfig config =
      llama(R"("num_key_value_heads": 4, "intermediate_size": 768,
               "vocab_size": 307, "head_dim": 64)");
  for (DataType type : {DataType::Q4_K, DataType::Q6_K}) {
    const Shards shards(config, type, 2);
    EXPECT_EQ(shards.local().intermediateSize, 512);
    EXPECT_FALSE(shards.local().outputByRows);
    shards.expectRows("model.layers.0.mlp.gate_proj.weight");
    shards.expectRows("model.layers.0.mlp.up_proj.weight");
    shards.expectColumns("model.layers.0.mlp.down_proj.weight");
    shards.expectColumns("model.layers.0.self_attn.o_proj.weight");
    shards.expectRows("model.layers.0.self_attn.q_proj.weight");
    shards.expectRows("lm_head.weight");
  }
  const Shards small(config, DataType::Q8_0, 8);
  EXPECT_EQ(small.local().intermediateSize, 96);
  EXPECT_FALSE(small.local().outputByRows);
  small.expectColumns("model.layers.0.mlp.down_proj.weight");
  small.expectColumns("model.layers.0.self_attn.o_proj.weight");
}

TEST(Sharding, BlocksOfSeveralRanksAreSharedByRows) {
  const ModelConfig config =
      llama(R"("num_key_value_heads": 4, "intermediate_size": 768,
               "vocab_size": 307, "head_dim": 64, "attention_bias": true)");
  const Shards shards(config, DataType::Q4_K, 4);
  EXPECT_TRUE(shards.local().outputByRows);
  EXPECT_EQ(shards.local().intermediateSize, 256);
  shards.expectRows("model.layers.0.self_attn.o_proj.weight");
  shards.expectRows("model.layers.0.self_attn.o_proj.bias");
  shards.expectColumns("model.layers.0.mlp.down_proj.weight");
}

/// Zeros that fill up a matrix are zeros in every format.
TEST(Sharding, BlocksOfZeroBytesAreZeros) {
  for (const BlockFormat &format : kBlockFormats) {
    const std::string block(static_cast<size_t>(format.bytes), '\0');
    std::vector<float> values(static_cast<size_t>(format.elements), 1.0f);
    ASSERT_TRUE(convertToFloat(format.type, block.data(), format.elements,
                               values.data())
                    .ok());
    EXPECT_EQ(std::ranges::count(values, 0.0f), format.elements)
        << nameOf(format.type);
  }
}

TEST(Sharding, SharesGpt2) {
  const Shards shards(gpt2(), DataType::F32, 2);
  EXPECT_EQ(shards.local().heads, 2);
  EXPECT_EQ(shards.local().intermediateSize, 128);
  // Stored [in, out]: what products see as columns are rows.
  const std::string layer = "transformer.h.1.";
  shards.expectRows(layer + "attn.c_proj.weight");
  shards.expectOnce(layer + "attn.c_proj.bias");
  shards.expectColumns(layer + "mlp.c_fc.weight");
  shards.expectRows(layer + "mlp.c_fc.bias");
  shards.expectRows(layer + "mlp.c_proj.weight");
  shards.expectOnce(layer + "mlp.c_proj.bias");
  shards.expectWhole("transformer.wpe.weight");
  shards.expectWhole(layer + "ln_1.bias");
  shards.expectRows("lm_head.weight", "transformer.wte.weight");
  // Half of each third.
  const std::string bias = shards.ofWhole(layer + "attn.c_attn.bias");
  const std::string weight = shards.ofWhole(layer + "attn.c_attn.weight");
  constexpr size_t half = 32 * sizeof(float), row = 6 * half;
  for (size_t rank = 0; rank < 2; ++rank) {
    std::string expected, columns;
    for (size_t third = 0; third < 3; ++third)
      expected += bias.substr((2 * third + rank) * half, half);
    EXPECT_EQ(shards.ofRank(rank, layer + "attn.c_attn.bias"), expected);
    for (size_t in = 0; in < 64; ++in)
      for (size_t third = 0; third < 3; ++third)
        columns += weight.substr(in * row + (2 * third + rank) * half, half);
    EXPECT_EQ(shards.ofRank(rank, layer + "attn.c_attn.weight"), columns);
  }
}

TEST(Sharding, SaysHowManyRanksCan) {
  const ModelConfig config =
      llama(R"("num_key_value_heads": 4, "intermediate_size": 256,
               "vocab_size": 307, "head_dim": 16)",
            /*heads=*/12);
  EXPECT_EQ(possibleRanks(config), (std::vector<int64_t>{1, 2, 4, 12}));
  const std::shared_ptr<WeightSource> weights =
      DummyWeights::create(config, DataType::F32, 1).take();
  EXPECT_EQ(shardModel(config, weights, 0, 3).status().message(),
            "3 ranks cannot share the model's 12 heads, 4 KV heads and 307 "
            "tokens; 1, 2, 4 and 12 can");
  EXPECT_EQ(shardModel(config, weights, 0, 24).status().message(),
            "24 ranks cannot share the model's 12 heads, 4 KV heads and 307 "
            "tokens; 1, 2, 4 and 12 can");
  EXPECT_EQ(shardModel(config, weights, 2, 2).status().message(),
            "there is no rank 2 of 2 that share a model");
  // Each of 8 ranks would have 2 of 11 tokens, and the last two none.
  EXPECT_EQ(
      possibleRanks(llama(R"("vocab_size": 11, "intermediate_size": 256)")),
      (std::vector<int64_t>{1, 2, 4}));
}

TEST(Sharding, SharesEachExpert) {
  auto config = parseModelConfig(
      R"({"model_type": "qwen2_moe", "num_hidden_layers": 2, "hidden_size": 64,
          "intermediate_size": 64, "moe_intermediate_size": 22,
          "shared_expert_intermediate_size": 40, "num_attention_heads": 4,
          "num_key_value_heads": 4, "vocab_size": 307, "num_experts": 3,
          "num_experts_per_tok": 2, "decoder_sparse_step": 1})");
  ASSERT_TRUE(config.ok()) << config.message();
  const Shards shards(*config, DataType::BF16, 4);
  EXPECT_EQ(shards.local().experts.count, 3);
  EXPECT_EQ(shards.local().experts.width, 6);
  EXPECT_EQ(shards.local().experts.sharedWidth, 10);
  const std::string at = "model.layers.1.mlp.";
  for (const std::string block :
       {"experts.0.", "experts.2.", "shared_expert."}) {
    shards.expectRows(at + block + "gate_proj.weight");
    shards.expectRows(at + block + "up_proj.weight");
    shards.expectColumns(at + block + "down_proj.weight");
  }
  shards.expectWhole(at + "gate.weight");
  shards.expectWhole(at + "shared_expert_gate.weight");
  // Each layer's attention and feed-forward are summed once.
  EXPECT_EQ(collectivesOf(shards.local()).front().count, 4);
}

TEST(Sharding, SharesSinksAndBiasesOfExperts) {
  auto config = parseModelConfig(
      R"({"model_type": "gpt_oss", "num_hidden_layers": 2, "hidden_size": 64,
          "intermediate_size": 64, "num_attention_heads": 4, "head_dim": 16,
          "num_key_value_heads": 2, "vocab_size": 307, "num_local_experts": 3,
          "num_experts_per_tok": 2})");
  ASSERT_TRUE(config.ok()) << config.message();
  const Shards shards(*config, DataType::BF16, 2);
  const std::string layer = "model.layers.1.";
  shards.expectRows(layer + "self_attn.sinks");
  shards.expectOnce(layer + "self_attn.o_proj.bias");
  for (const std::string expert : {"mlp.experts.0.", "mlp.experts.2."}) {
    shards.expectRows(layer + expert + "gate_proj.bias");
    shards.expectRows(layer + expert + "up_proj.bias");
    shards.expectOnce(layer + expert + "down_proj.bias");
  }
  shards.expectWhole(layer + "mlp.router.weight");
  shards.expectWhole(layer + "mlp.router.bias");
}

TEST(Sharding, SharesBlocksOfGgufExperts) {
  auto config = parseModelConfig(
      R"({"model_type": "mixtral", "num_hidden_layers": 1, "hidden_size": 256,
          "intermediate_size": 768, "num_attention_heads": 4,
          "num_key_value_heads": 4, "vocab_size": 307,
          "num_local_experts": 3})");
  ASSERT_TRUE(config.ok()) << config.message();
  config->naming = TensorNaming::Gguf;
  const Shards shards(*config, DataType::Q4_K, 2);
  EXPECT_EQ(shards.local().experts.width, 512);
  shards.expectRows("blk.0.ffn_gate.2.weight");
  shards.expectRows("blk.0.ffn_up.0.weight");
  shards.expectColumns("blk.0.ffn_down.2.weight");
  shards.expectWhole("blk.0.ffn_gate_inp.weight");
}

/// Sizes of layers that fields state are shared as the model's, where they are
/// the same.
TEST(Sharding, SharesLayersThatStateTheModelsSizes) {
  auto config = parseModelConfig(
      R"({"model_type": "gemma4_text", "num_hidden_layers": 2,
          "hidden_size": 64, "intermediate_size": 64, "vocab_size": 307,
          "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16,
          "global_head_dim": 16, "hidden_size_per_layer_input": 0})");
  ASSERT_TRUE(config.ok()) << config.message();
  const Shards shards(*config, DataType::BF16, 2);
  EXPECT_EQ(shards.local().layer(1).kvHeads, 2);
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    shards.expectRows(layer + "self_attn.k_proj.weight");
    shards.expectColumns(layer + "mlp.down_proj.weight");
  }
}

/// Gemma 4's layers that attend to all have wider heads, fewer of them, and
/// keys that are values; the last layers attend to the keys of earlier ones.
TEST(Sharding, SharesLayersOfOtherSizes) {
  auto config = parseModelConfig(
      R"({"model_type": "gemma4_text", "num_hidden_layers": 4,
          "layer_types": ["sliding_attention", "full_attention",
                          "sliding_attention", "full_attention"],
          "hidden_size": 64, "intermediate_size": 44, "vocab_size": 307,
          "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 16,
          "global_head_dim": 32, "num_global_key_value_heads": 2,
          "attention_k_eq_v": true, "num_kv_shared_layers": 2,
          "use_double_wide_mlp": true, "hidden_size_per_layer_input": 8})");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(possibleRanks(*config), (std::vector<int64_t>{1, 2, 4, 8}));
  const Shards shards(*config, DataType::BF16, 4);
  EXPECT_EQ(shards.local().layer(0).kvHeads, 1);
  EXPECT_EQ(shards.local().layer(1).kvHeads, 1);
  EXPECT_EQ(shards.local().layer(1).headDim, 32);
  EXPECT_EQ(shards.local().layer(0).intermediateSize, 11);
  EXPECT_EQ(shards.local().layer(3).intermediateSize, 22);
  for (const std::string layer :
       {"model.layers.0.", "model.layers.1.", "model.layers.3."}) {
    shards.expectRows(layer + "self_attn.q_proj.weight");
    shards.expectColumns(layer + "self_attn.o_proj.weight");
    shards.expectRows(layer + "mlp.up_proj.weight");
    shards.expectColumns(layer + "mlp.down_proj.weight");
    shards.expectWhole(layer + "per_layer_input_gate.weight");
    shards.expectWhole(layer + "layer_scalar");
  }
  shards.expectRows("model.layers.0.self_attn.k_proj.weight");
  // Two ranks have one of the two heads each.
  const std::string keys = "model.layers.1.self_attn.k_proj.weight";
  EXPECT_EQ(shards.ofRank(0, keys), shards.ofRank(1, keys));
  EXPECT_EQ(shards.ofRank(1, keys) + shards.ofRank(2, keys),
            shards.ofWhole(keys));
  shards.expectWhole("model.embed_tokens_per_layer.weight");
  EXPECT_EQ(shardModel(*config, shards.whole, 0, 3).status().message(),
            "3 ranks cannot share the model's 8 heads, 2 and 4 KV heads and "
            "307 tokens; 1, 2, 4 and 8 can");
}

TEST(Sharding, SharesNoLatentAttention) {
  auto config = parseModelConfig(
      R"({"model_type": "deepseek_v3", "num_hidden_layers": 4,
          "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 307})");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(possibleRanks(*config), std::vector<int64_t>{1});
  EXPECT_EQ(shardModel(*config, nullptr, 0, 2).status().message(),
            "2 ranks cannot share models with latent attention; 1 can");
}

/// Qwen 3.5's, whose layers keep states, and where none does, have gates.
TEST(Sharding, StatesAndGatesAreAlone) {
  auto config = loadModelConfig(KF_SOURCE_DIR "/test/golden/qwen3-5");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(possibleRanks(*config), std::vector<int64_t>{1});
  EXPECT_EQ(shardModel(*config, nullptr, 0, 2).status().message(),
            "2 ranks cannot share models whose layers keep states; 1 can");
  config->linear = {};
  for (LayerConfig &layer : config->layerConfigs)
    layer.isLinear = false;
  EXPECT_EQ(possibleRanks(*config), std::vector<int64_t>{1});
  EXPECT_EQ(shardModel(*config, nullptr, 0, 2).status().message(),
            "2 ranks cannot share models whose attention has gates; 1 can");
}

/// Gemma 3n's gates of which few count: the mean is that of all ranks' columns,
/// and no zeros behind them.
TEST(Sharding, GatesKnowHowManyColumnsAllHave) {
  auto config = parseModelConfig(
      R"({"model_type": "gemma3n_text", "num_hidden_layers": 2,
          "hidden_size": 64, "intermediate_size": [50, 50], "vocab_size": 307,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
          "layer_types": ["sliding_attention", "full_attention"],
          "activation_sparsity_pattern": [0.95, 0.0],
          "num_kv_shared_layers": 0})");
  ASSERT_TRUE(config.ok()) << config.message();
  const Shards shards(*config, DataType::BF16, 4);
  EXPECT_EQ(shards.local().layer(0).intermediateSize, 13);
  EXPECT_EQ(shards.local().layer(0).gateColumns, 50);
  EXPECT_EQ(shards.local().layer(1).gateColumns, 0);
  shards.expectWhole("model.altup_projections.0.weight");
  shards.expectWhole("model.layers.0.altup.prediction_coefs.weight");
  shards.expectWhole("model.layers.0.laurel.linear_left.weight");
  // Its mean, and the variance.
  EXPECT_EQ(collectivesOf(shards.local())[1].count, 2);
  EXPECT_EQ(collectivesOf(shards.local())[1].columns, 1);
}

} // namespace
