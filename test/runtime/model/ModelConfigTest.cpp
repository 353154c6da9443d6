//===- ModelConfigTest.cpp - Configurations, sound and hostile ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../TempFile.h"
#include "ConfigTesting.h"

#include "runtime/model/QuantizationField.h"

#include <algorithm>
#include <cmath>

using namespace kf;
using namespace kf::test;

namespace {

json smallQwen2() {
  json config = smallLlama();
  config["model_type"] = "qwen2";
  config["architectures"] = {"Qwen2ForCausalLM"};
  config["num_key_value_heads"] = 2;
  return config;
}

json smallGpt2() {
  return {{"model_type", "gpt2"},
          {"n_embd", 64},
          {"n_layer", 2},
          {"n_head", 4},
          {"vocab_size", 307}};
}

//===----------------------------------------------------------------------===//
// The models of the golden suite
//===----------------------------------------------------------------------===//

TEST(ModelConfig, Llama2) {
  auto config = golden("llama2-mha");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->architecture, Architecture::Llama);
  EXPECT_EQ(config->hiddenSize, 64);
  EXPECT_EQ(config->layers, 2);
  EXPECT_EQ(config->heads, 4);
  EXPECT_EQ(config->kvHeads, 4);
  EXPECT_EQ(config->headDim, 16);
  EXPECT_EQ(config->intermediateSize, 172);
  EXPECT_EQ(config->vocabSize, 307);
  EXPECT_EQ(config->maxPositions, 256);
  EXPECT_EQ(config->norm, Norm::Rms);
  EXPECT_DOUBLE_EQ(config->normEps, 1e-5);
  EXPECT_EQ(config->activation, Activation::Silu);
  EXPECT_TRUE(config->gatedMlp);
  ASSERT_TRUE(config->commonRope());
  EXPECT_EQ(*config->commonRope(), RopeConfig{.dim = 16});
  EXPECT_DOUBLE_EQ(config->attentionScale, 0.25);
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(config->qkNorm, QkNorm::None);
  EXPECT_FALSE(config->qkvBias || config->attentionOutputBias ||
               config->mlpBias || config->tiedEmbeddings);
  EXPECT_EQ(config->bosId, 1);
  EXPECT_EQ(config->eosIds, std::vector<int64_t>{2});
  EXPECT_EQ(config->dtype, DataType::F32);
}

TEST(ModelConfig, Llama3) {
  auto config = golden("llama3-gqa-scaled");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->kvHeads, 2);
  EXPECT_TRUE(config->tiedEmbeddings);
  EXPECT_EQ(config->commonRope()->scaling, RopeConfig::Scaling::Llama3);
  EXPECT_EQ(config->commonRope()->theta, 500000);
  EXPECT_EQ(config->commonRope()->factor, 8);
  EXPECT_EQ(config->commonRope()->lowFreqFactor, 1);
  EXPECT_EQ(config->commonRope()->highFreqFactor, 4);
  EXPECT_EQ(config->commonRope()->originalContext, 64);
}

TEST(ModelConfig, HeadDimensionOfItsOwnAndLinearScaling) {
  auto config = golden("llama-wide-head");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->headDim, 40);
  EXPECT_EQ(config->commonRope()->scaling, RopeConfig::Scaling::Linear);
  EXPECT_EQ(config->commonRope()->factor, 2);
}

TEST(ModelConfig, Biases) {
  auto config = golden("llama-bias");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_TRUE(config->qkvBias && config->attentionOutputBias &&
              config->mlpBias);
}

TEST(ModelConfig, Mistral) {
  auto config = golden("mistral-window");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{8, 8}));
}

TEST(ModelConfig, Qwen2) {
  auto config = golden("qwen2-bias");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->headDim, 16);
  EXPECT_TRUE(config->qkvBias);
  EXPECT_FALSE(config->attentionOutputBias || config->mlpBias);
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{0, 0}));
}

TEST(ModelConfig, Qwen3) {
  auto config = golden("qwen3-qknorm");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->qkNorm, QkNorm::Heads);
  EXPECT_FALSE(config->qkvBias);
  EXPECT_EQ(config->headDim, 32);
}

/// transformers' attribute_map: GPT2Config(n_layer=2, num_hidden_layers=3) has
/// three layers, in either order.
TEST(ModelConfig, Gpt2TakesOtherArchitecturesNames) {
  json config = {{"model_type", "gpt2"},          {"hidden_size", 32},
                 {"num_hidden_layers", 3},        {"num_attention_heads", 2},
                 {"max_position_embeddings", 99}, {"vocab_size", 307}};
  auto read = parse(config);
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(read->hiddenSize, 32);
  EXPECT_EQ(read->layers, 3);
  EXPECT_EQ(read->heads, 2);
  EXPECT_EQ(read->maxPositions, 99);
  EXPECT_EQ(read->intermediateSize, 128);
  EXPECT_TRUE(read->warnings.empty());

  read = parse(with(config, {{"n_layer", 3}, {"n_head", nullptr}}));
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_TRUE(read->warnings.empty());
  read = parse(with(config, {{"n_layer", 2}, {"n_positions", 10}}));
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(read->layers, 3);
  EXPECT_EQ(read->maxPositions, 99);
  ASSERT_EQ(read->warnings.size(), 2u);
  EXPECT_EQ(read->warnings[0],
            "config.json: 'num_hidden_layers' is 3 and 'n_layer' is 2; the "
            "first counts, as in transformers");

  // Errors speak of what the file has.
  expectContains(parse(with(config, {{"num_hidden_layers", "3"}})).message(),
                 "'num_hidden_layers' is \"3\"");
  expectContains(parse(with(config, {{"num_attention_heads", 5}})).message(),
                 "'hidden_size' 32 is not a multiple of "
                 "'num_attention_heads' 5");
  config.erase("hidden_size");
  expectContains(parse(config).message(), "'n_embd' is missing");
}

/// The others know no second names.
TEST(ModelConfig, OnlyGpt2HasAliases) {
  auto read = parse(with(smallLlama(), {{"n_layer", 2}}));
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(read->layers, 4);
}

TEST(ModelConfig, Gpt2) {
  auto config = golden("gpt2-layernorm");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->architecture, Architecture::Gpt2);
  EXPECT_EQ(config->norm, Norm::Layer);
  EXPECT_EQ(config->activation, Activation::GeluTanh);
  EXPECT_FALSE(config->gatedMlp);
  EXPECT_FALSE(config->commonRope());
  EXPECT_EQ(config->kvHeads, 4);
  EXPECT_EQ(config->intermediateSize, 256);
  EXPECT_EQ(config->maxPositions, 128);
  EXPECT_TRUE(config->tiedEmbeddings && config->qkvBias &&
              config->attentionOutputBias && config->mlpBias);
}

TEST(ModelConfig, Stories) {
  auto config = loadModelConfig(KF_SOURCE_DIR "/models/kf-stories");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->eosIds, (std::vector<int64_t>{1473, 1476}));
  EXPECT_EQ(config->dtype, DataType::BF16);
}

//===----------------------------------------------------------------------===//
// Defaults and styles
//===----------------------------------------------------------------------===//

TEST(ModelConfig, Defaults) {
  auto llama = parse(smallLlama());
  ASSERT_TRUE(llama.ok()) << llama.message();
  EXPECT_EQ(llama->kvHeads, 4);
  EXPECT_EQ(llama->headDim, 16);
  EXPECT_DOUBLE_EQ(llama->normEps, 1e-6);
  EXPECT_EQ(llama->maxPositions, 2048);
  EXPECT_FALSE(llama->bosId);
  EXPECT_TRUE(llama->eosIds.empty());
  EXPECT_FALSE(llama->dtype);
  auto gpt2 = parse(smallGpt2());
  ASSERT_TRUE(gpt2.ok()) << gpt2.message();
  EXPECT_EQ(gpt2->intermediateSize, 256);
  EXPECT_EQ(gpt2->maxPositions, 1024);
  EXPECT_TRUE(gpt2->tiedEmbeddings);
}

TEST(ModelConfig, NullIsAbsent) {
  auto config = parse(with(smallLlama(), {{"num_key_value_heads", nullptr},
                                          {"head_dim", nullptr},
                                          {"rope_scaling", nullptr},
                                          {"sliding_window", nullptr},
                                          {"quantization_config", nullptr},
                                          {"eos_token_id", nullptr}}));
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->kvHeads, 4);
}

TEST(ModelConfig, BothRopeStylesAreTheSame) {
  json scaling = {{"factor", 8},
                  {"low_freq_factor", 1.0},
                  {"high_freq_factor", 4.0},
                  {"original_max_position_embeddings", 8192}};
  json newer = with(scaling, {{"rope_type", "llama3"}, {"rope_theta", 5e5}});
  json older = with(scaling, {{"rope_type", "llama3"}});
  json oldest = with(scaling, {{"type", "llama3"}});
  auto a = parse(with(smallLlama(), {{"rope_parameters", newer}}));
  auto b = parse(
      with(smallLlama(), {{"rope_theta", 500000}, {"rope_scaling", older}}));
  auto c = parse(
      with(smallLlama(), {{"rope_theta", 500000}, {"rope_scaling", oldest}}));
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_EQ(a->commonRope()->scaling, RopeConfig::Scaling::Llama3);
  EXPECT_EQ(a->commonRope()->theta, 500000);
  EXPECT_EQ(*a->commonRope(), *b->commonRope());
  EXPECT_EQ(*a->commonRope(), *c->commonRope());
}

TEST(ModelConfig, RopeThetaAlone) {
  auto config = parse(with(smallLlama(), {{"rope_theta", 1000000}}));
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->commonRope()->theta, 1000000);
  EXPECT_EQ(config->commonRope()->scaling, RopeConfig::Scaling::None);
}

TEST(ModelConfig, WindowsPerLayer) {
  json qwen =
      with(smallQwen2(), {{"sliding_window", 32}, {"max_window_layers", 3}});
  auto off = parse(qwen);
  ASSERT_TRUE(off.ok()) << off.message();
  EXPECT_EQ(off->windows(), (std::vector<int64_t>{0, 0, 0, 0}));
  auto upper = parse(with(qwen, {{"use_sliding_window", true}}));
  ASSERT_TRUE(upper.ok()) << upper.message();
  EXPECT_EQ(upper->windows(), (std::vector<int64_t>{0, 0, 0, 32}));
  json types = {"sliding_attention", "full_attention", "sliding_attention",
                "full_attention"};
  auto listed =
      parse(with(qwen, {{"use_sliding_window", true}, {"layer_types", types}}));
  ASSERT_TRUE(listed.ok()) << listed.message();
  EXPECT_EQ(listed->windows(), (std::vector<int64_t>{32, 0, 32, 0}));
  EXPECT_FALSE(parse(with(qwen, {{"layer_types", types}})).ok());
}

TEST(ModelConfig, MistralWindowDefaults) {
  json mistral = with(smallLlama(), {{"model_type", "mistral"},
                                     {"architectures", {"MistralForCausalLM"}},
                                     {"num_key_value_heads", 2}});
  auto absent = parse(mistral);
  ASSERT_TRUE(absent.ok()) << absent.message();
  EXPECT_EQ(absent->windows().front(), 4096);
  auto null = parse(with(mistral, {{"sliding_window", nullptr}}));
  ASSERT_TRUE(null.ok()) << null.message();
  EXPECT_EQ(null->windows().front(), 0);
}

TEST(ModelConfig, UnscaledAttention) {
  auto config = parse(with(smallGpt2(), {{"scale_attn_weights", false}}));
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->attentionScale, 1);
}

TEST(ModelConfig, GenerationConfigAddsStopIds) {
  std::string text =
      with(smallLlama(), {{"eos_token_id", 2}, {"bos_token_id", 1}}).dump();
  auto config =
      parseModelConfig(text, R"({"eos_token_id":[2,7],"bos_token_id":5})");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->eosIds, (std::vector<int64_t>{2, 7}));
  EXPECT_EQ(config->bosId, 1);
  auto broken = parseModelConfig(text, "{");
  ASSERT_FALSE(broken.ok());
  expectContains(broken.message(), "generation_config.json: not valid JSON");
}

TEST(ModelConfig, IdsOutsideTheVocabulary) {
  expectContains(errorOf({{"eos_token_id", {2, 307}}}),
                 "config.json: 'eos_token_id' has the id 307, but 'vocab_size' "
                 "is 307");
  expectContains(errorOf({{"bos_token_id", 5000}}),
                 "'bos_token_id' has the id 5000, but 'vocab_size' is 307");
  auto generation =
      parseModelConfig(smallLlama().dump(), R"({"eos_token_id": 400})");
  expectContains(generation.message(),
                 "generation_config.json: 'eos_token_id' has the id 400");
  // The default of GPT-2's class stands in files of small vocabularies.
  auto config = parse(
      with(smallGpt2(), {{"bos_token_id", 50256}, {"eos_token_id", 50256}}));
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_FALSE(config->bosId);
  EXPECT_TRUE(config->eosIds.empty());
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(ModelConfig, NotAConfiguration) {
  expectContains(parseModelConfig("").message(), "not valid JSON");
  expectContains(parseModelConfig("[1]").message(), "object is expected");
  expectContains(parseModelConfig("{}").message(), "'model_type' is missing");
  EXPECT_EQ(parseModelConfig("{}").status().code(), StatusCode::Invalid);
  EXPECT_EQ(
      parse(with(smallLlama(), {{"model_type", "mamba"}})).status().code(),
      StatusCode::Unsupported);
  expectContains(loadModelConfig("/nowhere").message(), "/nowhere/config.json");
}

TEST(ModelConfig, UnknownArchitecture) {
  expectContains(errorOf({{"model_type", "mamba"}}),
                 "config.json: 'model_type' 'mamba' is not supported "
                 "(supported: llama, mistral, qwen2, qwen3, gpt2");
  expectContains(errorOf({{"architectures", {"LlamaForTokenClassification"}}}),
                 "LlamaForTokenClassification");
  expectContains(errorOf({{"model_type", 3}}), "a string is expected");
}

TEST(ModelConfig, UnknownActivation) {
  expectContains(errorOf({{"hidden_act", "quick_gelu"}}),
                 "'hidden_act' is 'quick_gelu', which is not supported");
}

TEST(ModelConfig, FieldsThatChangeTheArithmetic) {
  const std::pair<const char *, json> fields[] = {
      {"attn_logit_softcapping", 50.0},
      {"final_logit_softcapping", 30.0},
      {"quantization_config", {{"bits", 4}}},
      {"num_local_experts", 8},
      {"num_experts", 8},
      {"pretraining_tp", 2},
      {"partial_rotary_factor", 0.5},
      {"add_cross_attention", true},
      {"reorder_and_upcast_attn", true},
      {"scale_attn_by_inverse_layer_idx", true},
      {"sliding_window", 128},
      {"is_causal", false},
      {"embedding_multiplier", 12},
      {"lm_head_bias", true}};
  for (const auto &[name, value] : fields)
    expectContains(errorOf({{name, value}}),
                   "'" + std::string(name) + "' is " + value.dump());
}

json compressedTensors(const json &weights, const json &changes = {}) {
  json config = {
      {"quant_method", "compressed-tensors"},
      {"format", "float-quantized"},
      {"config_groups",
       {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}},
      {"kv_cache_scheme", nullptr},
      {"ignore", {"lm_head"}}};
  if (!changes.is_null())
    config.update(changes);
  return config;
}

TEST(ModelConfig, QuantizationsThatTheTensorsTellOf) {
  const json channel = {{"num_bits", 8},
                        {"type", "float"},
                        {"symmetric", true},
                        {"strategy", "channel"}};
  for (const json &value :
       {json{{"quant_method", "fp8"}, {"activation_scheme", "dynamic"}},
        json{{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}},
        json{{"quant_method", "fbgemm_fp8"}, {"activation_scale_ub", 1200.0}},
        compressedTensors(channel),
        compressedTensors(channel, {{"format", "int-quantized"}}),
        compressedTensors({{"num_bits", 8}}),
        compressedTensors({{"num_bits", 4},
                           {"type", "float"},
                           {"group_size", 16},
                           {"symmetric", true},
                           {"strategy", "tensor_group"}},
                          {{"format", "nvfp4-pack-quantized"}}),
        json{{"quant_method", "modelopt"},
             {"quant_algo", "NVFP4"},
             {"ignore", {"lm_head"}}},
        json{{"quant_method", "modelopt"}, {"quant_algo", "FP8"}},
        json{{"quant_method", "modelopt"},
             {"quant_algo", "FP8_PER_CHANNEL_PER_TOKEN"}},
        json{{"quant_method", "modelopt"}, {"quant_algo", nullptr}},
        json{{"quant_method", "bitsandbytes"},
             {"load_in_4bit", true},
             {"load_in_8bit", false},
             {"bnb_4bit_quant_type", "nf4"},
             {"bnb_4bit_quant_storage", "uint8"},
             {"bnb_4bit_use_double_quant", true}}}) {
    auto config = parse(with(smallLlama(), {{"quantization_config", value}}));
    EXPECT_TRUE(config.ok()) << config.message();
  }
}

TEST(ModelConfig, QuantizationsThatAreNotSupported) {
  auto error = [](const json &value) {
    return errorOf({{"quantization_config", value}});
  };
  expectContains(
      error({{"quant_method", "gptq"}, {"bits", 4}}),
      "'quantization_config' is of the method 'gptq', whose weights are "
      "not read; take the model as it was before");
  expectContains(error({{"quant_method", "awq"}, {"bits", 4}}),
                 "is of the method 'awq', whose weights are not read");
  expectContains(error("fp8"), "'quantization_config' is \"fp8\"");
  expectContains(error({{"quant_method", {8}}}), "'quantization_config' is");
  expectContains(
      error({{"quant_method", "fp8"}, {"weight_block_size", {64, 64}}}),
      "blocks of [64,64]; [128,128] is supported");
  expectContains(error(compressedTensors({{"num_bits", 4}})),
                 "weights of 4 bits; 8 are supported");
  expectContains(error(compressedTensors({{"bits", 4}})), "weights of ? bits");
  expectContains(error(compressedTensors({{"num_bits", 4}, {"group_size", 32}},
                                         {{"format", "nvfp4-pack-quantized"}})),
                 "'group_size' is 32 (supported: 16)");
  expectContains(
      error({{"quant_method", "modelopt"}, {"quant_algo", "W4A8_AWQ"}}),
      "'quant_algo' \"W4A8_AWQ\", which is not supported (supported: FP8, "
      "FP8_PER_CHANNEL_PER_TOKEN, NVFP4)");
  expectContains(
      error({{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}}),
      "weights of 8 bits");
  expectContains(error({{"quant_method", "bitsandbytes"}}),
                 "has no 'load_in_4bit'");
  expectContains(error({{"quant_method", "bitsandbytes"},
                        {"load_in_4bit", true},
                        {"bnb_4bit_quant_storage", "bfloat16"}}),
                 "'bnb_4bit_quant_storage' \"bfloat16\"");
  expectContains(
      error(compressedTensors({{"num_bits", 8}, {"symmetric", false}})),
      "zero points");
  expectContains(
      error(compressedTensors({{"num_bits", 8}, {"actorder", "group"}})),
      "actorder");
  expectContains(
      error(compressedTensors({{"num_bits", 8}, {"strategy", "token"}})),
      "strategy \"token\"");
  const json good = {{"num_bits", 8}};
  expectContains(error(compressedTensors(good, {{"format", "pack-quantized"}})),
                 "format \"pack-quantized\"");
  expectContains(error(compressedTensors(good, {{"format", nullptr}})),
                 "format null");
  expectContains(error(compressedTensors(good, {{"kv_cache_scheme", "fp8"}})),
                 "has 'kv_cache_scheme' \"fp8\" where an object is expected");
  expectContains(error({{"quant_method", "modelopt"},
                        {"quant_algo", "FP8"},
                        {"kv_cache_quant_algo", 8}}),
                 "has 'kv_cache_quant_algo' 8 where a text is expected");
  expectContains(error(compressedTensors(
                     good, {{"sparsity_config", {{"format", "2:4"}}}})),
                 "sparsity_config");
  expectContains(error(compressedTensors(
                     good, {{"transform_config",
                             {{"config_groups", {{"u", {{"x", 1}}}}}}}})),
                 "transform_config");
  expectContains(error(compressedTensors(good, {{"config_groups", 1}})),
                 "no object 'config_groups'");
  expectContains(error(compressedTensors(nullptr)), "without 'weights'");
}

/// Which older folders of ModelOpt have (modelopt.test reads some).
TEST(ModelConfig, QuantizationsInAFileOfTheirOwn) {
  std::vector<std::string> warnings;
  auto read = [&](const json &quantization) {
    return readModelOptFile(json{{"producer", {{"name", "modelopt"}}},
                                 {"quantization", quantization}},
                            warnings);
  };
  const json eightBits = {{"quant_algo", "FP8"}};
  Result<bool> hasScales = read(eightBits);
  ASSERT_TRUE(hasScales.ok()) << hasScales.message();
  EXPECT_FALSE(*hasScales);
  EXPECT_TRUE(warnings.empty());
  hasScales = read(with(eightBits, {{"kv_cache_quant_algo", "FP8"}}));
  ASSERT_TRUE(hasScales.ok()) << hasScales.message();
  EXPECT_TRUE(*hasScales);
  ASSERT_EQ(warnings.size(), 1u);
  expectContains(warnings[0], "hf_quant_config.json: 'quantization' has "
                              "'kv_cache_quant_algo'");
  // Of the KV cache alone.
  for (const json &cacheAlone :
       {json{{"kv_cache_quant_algo", "FP8"}},
        json{{"quant_algo", nullptr}, {"kv_cache_quant_algo", "FP8"}}}) {
    warnings.clear();
    hasScales = read(cacheAlone);
    ASSERT_TRUE(hasScales.ok()) << hasScales.message();
    EXPECT_TRUE(*hasScales);
    EXPECT_EQ(warnings.size(), 1u);
  }
  expectContains(read({{"quant_algo", "INT4_AWQ"}}).message(),
                 "'quantization' of modelopt has 'quant_algo' \"INT4_AWQ\", "
                 "which is not supported");
  expectContains(read(with(eightBits, {{"kv_cache_quant_algo", 8}})).message(),
                 "'quantization' has 'kv_cache_quant_algo' 8");
  for (const json &file :
       {json::array(), json::object(), json{{"quantization", 8}}, json()})
    expectContains(readModelOptFile(file, warnings).message(),
                   "there is no object 'quantization'");
}

/// It counts where config.json does not say how the model is quantized.
TEST(ModelConfig, AQuantizationConfigCountsMoreThanAFile) {
  const std::string refused = R"({"quantization": {"quant_algo": "AWQ"}})";
  auto read = [&](const json &config) {
    return parseModelConfig(config.dump(), "", refused);
  };
  const json own = {{"quant_method", "modelopt"}, {"quant_algo", "FP8"}};
  auto nested = [](const json &text, const json &outside = json::object()) {
    return with({{"model_type", "gemma3"},
                 {"architectures", {"Gemma3ForConditionalGeneration"}},
                 {"text_config", with({{"hidden_size", 64}}, text)}},
                outside);
  };
  for (const json &config :
       {with(smallLlama(), {{"quantization_config", own}}),
        nested({{"quantization_config", own}}),
        nested(json::object(), {{"quantization_config", own}})}) {
    const Result<ModelConfig> result = read(config);
    EXPECT_TRUE(result.ok()) << result.message();
  }
  for (const json &config :
       {smallLlama(), with(smallLlama(), {{"quantization_config", nullptr}}),
        nested(json::object()), nested({{"quantization_config", nullptr}})})
    expectContains(read(config).message(),
                   "hf_quant_config.json: 'quantization' of modelopt has "
                   "'quant_algo' \"AWQ\"");
  const Result<ModelConfig> good = parseModelConfig(
      smallLlama().dump(), "",
      R"({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}})");
  ASSERT_TRUE(good.ok()) << good.message();
  EXPECT_TRUE(good->hasCacheScales);
  EXPECT_TRUE(parseModelConfig(smallLlama().dump(), "", std::nullopt).ok());
}

/// One that is there and empty was cut off.
TEST(ModelConfig, AnEmptyFileOfAQuantizationIsAnError) {
  expectContains(parseModelConfig(smallLlama().dump(), "", "").message(),
                 "hf_quant_config.json: ");
  const TempFolder folder;
  folder.write("config.json", smallLlama().dump());
  EXPECT_TRUE(loadModelConfig(folder.path()).ok());
  const std::string path = folder.write("hf_quant_config.json", "");
  const Result<ModelConfig> empty = loadModelConfig(folder.path());
  EXPECT_FALSE(empty.ok());
  expectContains(empty.message(), path + ": ");
}

/// Scales of a KV cache may be there where the configuration speaks of one.
TEST(ModelConfig, QuantizedCaches) {
  const json scheme = {{"num_bits", 8}, {"type", "float"}, {"dynamic", false}};
  const json weights = {{"num_bits", 8}};
  const json modelopt = {{"quant_method", "modelopt"}, {"quant_algo", "FP8"}};
  for (const auto &[value, field] :
       {std::pair(compressedTensors(weights, {{"kv_cache_scheme", scheme}}),
                  "kv_cache_scheme"),
        std::pair(with(modelopt, {{"kv_cache_scheme", scheme}}),
                  "kv_cache_scheme"),
        std::pair(with(modelopt, {{"kv_cache_quant_algo", "FP8"}}),
                  "kv_cache_quant_algo")}) {
    auto config = parse(with(smallLlama(), {{"quantization_config", value}}));
    ASSERT_TRUE(config.ok()) << config.message();
    EXPECT_TRUE(config->hasCacheScales);
    EXPECT_EQ(config->warnings,
              std::vector<std::string>{
                  "config.json: 'quantization_config' has '" +
                  std::string(field) +
                  "', a rounding of the KV cache that is not done here: its "
                  "scales (k_scale and v_scale) are not read, and --cache-type "
                  "says what the cache is of"});
  }
  for (const json &value :
       {modelopt, with(modelopt, {{"kv_cache_scheme", nullptr}}),
        with(modelopt, {{"kv_cache_quant_algo", nullptr}}),
        json{{"quant_method", "fp8"}, {"kv_cache_scheme", scheme}}}) {
    auto config = parse(with(smallLlama(), {{"quantization_config", value}}));
    ASSERT_TRUE(config.ok()) << config.message();
    EXPECT_FALSE(config->hasCacheScales) << value;
    EXPECT_TRUE(config->warnings.empty());
  }
}

TEST(ModelConfig, FieldsOfOtherArchitectures) {
  expectContains(parse(with(smallQwen2(), {{"mlp_bias", true}})).message(),
                 "'mlp_bias' is true");
  expectContains(parse(with(smallGpt2(), {{"rope_theta", 10000.0}})).message(),
                 "'rope_theta' is 10000.0");
}

TEST(ModelConfig, RopeErrors) {
  for (const char *type : {"mrope", "axial", "proportional"}) {
    expectContains(
        errorOf({{"rope_scaling", {{"type", type}, {"factor", 2.0}}}}),
        "rope_type '" + std::string(type) + "', which is not supported");
    expectContains(errorOf({{"rope_parameters", {{"rope_type", type}}}}),
                   "(supported: default, linear, dynamic, llama3, yarn, "
                   "longrope)");
  }
  expectContains(
      errorOf({{"rope_parameters",
                {{"rope_type", "default"}, {"mrope_section", {1, 2}}}}}),
      "'mrope_section'");
  expectContains(
      errorOf({{"rope_parameters",
                {{"rope_type", "default"}, {"partial_rotary_factor", 0.25}}}}),
      "'rope_parameters.partial_rotary_factor' is 0.25");
  expectContains(errorOf({{"rope_scaling", {{"type", "linear"}}}}),
                 "'rope_scaling.factor' is missing");
  expectContains(
      errorOf({{"rope_scaling", {{"type", "linear"}, {"factor", 1e-7}}}}),
      "'rope_scaling.factor' is 1e-07, but a number from 1 to 1e+18 is "
      "expected");
  expectContains(errorOf({{"rope_theta", 1e-9}}),
                 "'rope_theta' is 1e-09, but a number from 1 to 1e+18 is "
                 "expected");
  expectContains(
      errorOf({{"rope_parameters", {{"rope_theta", 1e19}}}}),
      "'rope_parameters.rope_theta' is 1e+19, but a number from 1 to 1e+18");
  expectContains(errorOf({{"rope_scaling", 4}}), "an object is expected");
  expectContains(errorOf({{"rope_scaling", {{"type", "linear"}, {"factor", 2}}},
                          {"rope_parameters", {{"rope_type", "default"}}}}),
                 "disagree");
  expectContains(errorOf({{"rope_scaling",
                           {{"rope_type", "llama3"},
                            {"factor", 8},
                            {"low_freq_factor", 4},
                            {"high_freq_factor", 3},
                            {"original_max_position_embeddings", 8192}}}}),
                 "a number that is not below low_freq_factor");
}

/// Within max_position_embeddings nothing is scaled.
TEST(ModelConfig, DynamicScaling) {
  const json dynamic = {{"type", "dynamic"}, {"factor", 4.0}};
  auto config = parse(with(smallLlama(), {{"rope_scaling", dynamic}}));
  ASSERT_TRUE(config.ok()) << config.message();
  auto plain = parse(smallLlama());
  ASSERT_TRUE(plain.ok()) << plain.message();
  EXPECT_EQ(*config->commonRope(), *plain->commonRope());
  EXPECT_TRUE(parse(with(smallLlama(),
                         {{"rope_scaling",
                           with(dynamic, {{"original_max_position_embeddings",
                                           plain->maxPositions}})}}))
                  .ok());
  expectContains(
      errorOf({{"rope_scaling",
                with(dynamic, {{"original_max_position_embeddings", 7}})}}),
      "'rope_scaling.original_max_position_embeddings' is 7, but "
      "max_position_embeddings, ");
  expectContains(errorOf({{"rope_scaling", {{"type", "dynamic"}}}}),
                 "'rope_scaling.factor' is missing");
  expectContains(errorOf({{"rope_scaling", with(dynamic, {{"factor", "x"}})}}),
                 "'rope_scaling.factor' is");
}

TEST(ModelConfig, Yarn) {
  const json yarn = {{"rope_type", "yarn"},
                     {"factor", 4.0},
                     {"original_max_position_embeddings", 64}};
  auto ropeOf = [&](const json &more) -> Result<RopeConfig> {
    KF_ASSIGN_OR_RETURN(
        ModelConfig config,
        parse(with(smallLlama(), {{"rope_scaling", with(yarn, more)}})));
    return *config.commonRope();
  };
  auto plain = ropeOf(json::object());
  ASSERT_TRUE(plain.ok()) << plain.message();
  EXPECT_EQ(plain->scaling, RopeConfig::Scaling::Yarn);
  EXPECT_EQ(plain->factor, 4);
  EXPECT_EQ(plain->originalContext, 64);
  EXPECT_EQ(plain->betaFast, 32);
  EXPECT_EQ(plain->betaSlow, 1);
  EXPECT_TRUE(plain->truncate);
  EXPECT_NEAR(plain->magnitude, 1.138629436, 1e-9);
  auto own = ropeOf({{"beta_fast", 16}, {"beta_slow", 2}, {"truncate", false}});
  ASSERT_TRUE(own.ok()) << own.message();
  EXPECT_EQ(own->betaFast, 16);
  EXPECT_EQ(own->betaSlow, 2);
  EXPECT_FALSE(own->truncate);
  EXPECT_NEAR(ropeOf({{"mscale", 0.5}, {"mscale_all_dim", 0.25}})->magnitude,
              1.03349646, 1e-8);
  EXPECT_EQ(ropeOf({{"attention_factor", 1.25}})->magnitude, 1.25);
  // Without its own field, the original context is the model's, and the file's
  // counts before the object's.
  auto original = [&](const json &more) {
    return parse(with(smallLlama(), more))->commonRope()->originalContext;
  };
  EXPECT_EQ(original({{"rope_scaling", {{"type", "yarn"}, {"factor", 4}}},
                      {"max_position_embeddings", 96}}),
            96);
  EXPECT_EQ(original({{"rope_scaling", yarn},
                      {"original_max_position_embeddings", 32}}),
            32);
  for (const char *name :
       {"beta_fast", "beta_slow", "attention_factor", "factor"})
    for (json value : {json(0), json(-1), json(1e300), json("2"), json(true)})
      expectContains(ropeOf({{name, value}}).message(),
                     "'rope_scaling." + std::string(name) + "' is " +
                         value.dump());
  expectContains(ropeOf({{"mscale", -1}}).message(), "'rope_scaling.mscale'");
  expectContains(ropeOf({{"truncate", 1}}).message(), "'rope_scaling.truncate");
  expectContains(ropeOf({{"original_max_position_embeddings", 0}}).message(),
                 "'rope_scaling.original_max_position_embeddings' is 0");
  expectContains(
      parse(with(smallLlama(), {{"rope_theta", 1}, {"rope_scaling", yarn}}))
          .message(),
      "a 'rope_theta' of 1 has no yarn scaling");
}

TEST(ModelConfig, SizesOutOfRange) {
  for (const char *name :
       {"hidden_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "head_dim", "intermediate_size", "vocab_size",
        "max_position_embeddings"})
    for (json value : {json(0), json(-1), json(1.5), json("64"),
                       json(INT64_MAX), json(UINT64_MAX), json(true)})
      expectContains(errorOf({{name, value}}),
                     "'" + std::string(name) + "' is " + value.dump() +
                         ", but an integer from 1 to ");
  expectContains(errorOf({{"num_key_value_heads", 3}}), "not a multiple");
  expectContains(errorOf({{"head_dim", 15}}), "odd");
  expectContains(errorOf({{"hidden_size", 66}}), "'head_dim' is missing");
  expectContains(errorOf({{"num_attention_heads", 1 << 20},
                          {"num_key_value_heads", 1},
                          {"head_dim", 1 << 16}}),
                 "'num_attention_heads' times 'head_dim'");
  expectContains(errorOf({{"head_dim", 65538}}),
                 "'head_dim' is 65538, but an integer from 1 to 65536");
  const json oneHead = {{"hidden_size", 1 << 17},
                        {"num_attention_heads", 1},
                        {"num_key_value_heads", 1}};
  expectContains(errorOf(oneHead),
                 "'hidden_size' 131072 with 'num_attention_heads' 1 makes "
                 "heads of 131072 elements; at most 65536 are possible");
  expectContains(
      parse(with(smallGpt2(), {{"n_embd", 1 << 17}, {"n_head", 1}})).message(),
      "'n_embd' 131072 with 'n_head' 1 makes heads of 131072 elements");
  expectContains(errorOf({{"rms_norm_eps", -1.0}}), "not negative");
  expectContains(parse(with(smallGpt2(), {{"n_head", 5}})).message(),
                 "'n_embd' 64 is not a multiple of 'n_head' 5");
}

TEST(ModelConfig, WrongTypes) {
  expectContains(errorOf({{"tie_word_embeddings", 1}}),
                 "true or false is expected");
  expectContains(errorOf({{"eos_token_id", "x"}}), "token id");
  expectContains(errorOf({{"eos_token_id", {1, -2}}}), "token id");
  expectContains(errorOf({{"layer_types", {"full_attention"}}}),
                 "one entry a layer");
  expectContains(errorOf({{"layer_types", {"a", "b", "c", "d"}}}),
                 "'layer_types' has");
}

} // namespace
