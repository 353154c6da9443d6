//===- ConvertTest.cpp - Models as GGUF files -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvertTesting.h"

#include "runtime/convert/ModelMetadata.h"
#include "runtime/convert/ReaderProblems.h"
#include "runtime/convert/TensorRows.h"
#include "runtime/convert/TensorTypes.h"
#include "runtime/core/BlockFormat.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/ReadFaults.h"
#include "runtime/model/DummyWeights.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/TensorList.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

using namespace kf;
using namespace kf::test;

namespace {

/// How embeddings are made goes along, as far as GGUF can say it.
TEST(Convert, KeepsThePooling) {
  TempFolder folder;
  Source source = openSource(kGolden + "mistral-window");
  auto planOf = [&](const PoolingConfig &pooling) {
    return planFromModel(source.config, *source.weights, {}, "x", DataType::F32,
                         pooling)
        .take();
  };
  auto pooledAs = [&](const GgufPlan &plan) {
    return readPoolingConfig(*writeAndOpen(folder, plan, *source.weights));
  };
  const GgufPlan unsaid = planOf({});
  EXPECT_EQ(pooledAs(unsaid).pooling, std::nullopt);
  for (Pooling pooling : {Pooling::Mean, Pooling::Cls, Pooling::Last}) {
    const GgufPlan plan = planOf({.pooling = pooling, .normalizes = true});
    EXPECT_EQ(plan.notes, unsaid.notes);
    EXPECT_EQ(pooledAs(plan).pooling, pooling);
    EXPECT_TRUE(
        readGgufConfig(*writeAndOpen(folder, plan, *source.weights)).ok());
  }
  const GgufPlan plain =
      planOf({.pooling = Pooling::Mean, .normalizes = false});
  EXPECT_EQ(plain.notes.size(), unsaid.notes.size() + 1);
  EXPECT_EQ(plain.notes.front(),
            "the file cannot say that embeddings are not normalized: "
            "--normalize none does");
  const GgufPlan odd = planOf({.unsupported = Status::error("odd")});
  EXPECT_EQ(odd.notes.front(),
            "the file does not say how embeddings are made: odd");
}

//===----------------------------------------------------------------------===//
// Against the files that llama.cpp made
//===----------------------------------------------------------------------===//

/// kf-stories as `type`, with its tokenizer and chat template.
std::unique_ptr<Gguf> convertStories(const TempFolder &folder, DataType type) {
  Source source = openSource(kModels + "kf-stories");
  MappedFile tokenizer =
      MappedFile::open(kModels + "kf-stories/tokenizer.json").take();
  MappedFile chat =
      MappedFile::open(kModels + "kf-stories/chat_template.jinja").take();
  Result<GgufPlan> plan = planFromModel(source.config, *source.weights,
                                        {.json = tokenizer.text(),
                                         .sentencePiece = {},
                                         .chatTemplate = chat.text()},
                                        "kf-stories", type);
  EXPECT_TRUE(plan.ok()) << plan.message();
  return plan.ok() ? writeAndOpen(folder, *plan, *source.weights) : nullptr;
}

TEST(Convert, EqualsTheReferenceFiles) {
  TempFolder folder;
  for (auto [type, name] :
       {std::pair(DataType::Q8_0, "Q8_0"), std::pair(DataType::Q4_0, "Q4_0"),
        std::pair(DataType::Q4_K, "Q4_K_M")}) {
    auto ours = convertStories(folder, type);
    auto reference =
        Gguf::open(kModels + "kf-stories-gguf/kf-stories-" + name + ".gguf")
            .take();
    ASSERT_TRUE(ours);
    EXPECT_EQ(ours->tensors().size(), reference->tensors().size());
    for (const GgufTensor &tensor : reference->tensors()) {
      const std::string key(tensor.name);
      Result<TensorView> mine = ours->find(key);
      ASSERT_TRUE(mine.ok()) << mine.message();
      const TensorView theirs = *reference->find(key);
      EXPECT_EQ(mine->type, theirs.type) << name << " " << key;
      // What ggml's definition leaves open differs.
      if (theirs.type != DataType::Q4_K && theirs.type != DataType::Q6_K)
        EXPECT_TRUE(sameBytes(*mine, theirs)) << name << " " << key;
    }
    for (const GgufEntry &entry : reference->metadata()) {
      const GgufValue *mine = ours->lookUp(entry.key);
      ASSERT_TRUE(mine) << entry.key;
      EXPECT_EQ(mine->type(), entry.value.type()) << entry.key;
      EXPECT_EQ(mine->bytes(), entry.value.bytes()) << entry.key;
    }
    // llama.cpp wrote these files before it knew of general.sampling.
    EXPECT_EQ(ours->metadata().size(), reference->metadata().size() + 2);
    EXPECT_EQ(float(*ours->getFloat("general.sampling.temp")), 0.8f);
    EXPECT_EQ(float(*ours->getFloat("general.sampling.top_p")), 0.95f);
  }
}

TEST(Convert, ErrsNoMoreThanTheReferenceFile) {
  TempFolder folder;
  auto ours = convertStories(folder, DataType::Q4_K);
  auto exact = convertStories(folder, DataType::F32); // maps its own file
  auto reference =
      Gguf::open(kModels + "kf-stories-gguf/kf-stories-Q4_K_M.gguf").take();
  ASSERT_TRUE(ours && exact);
  auto error = [&](const Gguf &file, const std::string &name) {
    const std::vector<float> a = valuesOf(file, name),
                             b = valuesOf(*exact, name);
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i)
      sum += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    return sum;
  };
  std::map<DataType, std::pair<double, double>> sums;
  for (const GgufTensor &tensor : reference->tensors()) {
    auto &[mine, theirs] = sums[*tensor.type->type];
    mine += error(*ours, std::string(tensor.name));
    theirs += error(*reference, std::string(tensor.name));
  }
  for (const auto &[type, pair] : sums)
    EXPECT_LE(pair.first, pair.second) << nameOf(type);
}

//===----------------------------------------------------------------------===//
// Every architecture
//===----------------------------------------------------------------------===//

/// Changes the RoPE of every layer.
void changeRope(ModelConfig &config,
                const std::function<void(RopeConfig &)> &change) {
  for (LayerConfig &layer : config.layerConfigs)
    change(*layer.rope);
}
void setScaling(ModelConfig &config, RopeConfig::Scaling scaling) {
  changeRope(config, [&](RopeConfig &rope) { rope.scaling = scaling; });
}

/// That files turn as configurations do; of LLaMA 3's scaling they have the
/// factors, and rows may be in another order.
void expectSameRope(const std::optional<RopeConfig> &read,
                    const std::optional<RopeConfig> &from) {
  ASSERT_EQ(read.has_value(), from.has_value());
  if (!from)
    return;
  const bool llama3 = from->scaling == RopeConfig::Scaling::Llama3;
  EXPECT_EQ(read->frequencyFactors, llama3);
  EXPECT_FLOAT_EQ(float(read->magnitude), float(from->magnitude));
  RopeConfig expected = *from;
  expected.magnitude = read->magnitude;
  expected.interleaved = read->interleaved;
  if (llama3) {
    expected = *read;
    expected.theta = from->theta;
    expected.dim = from->dim;
  }
  EXPECT_EQ(*read, expected);
}

TEST(Convert, KeepsConfigurations) {
  TempFolder folder;
  for (const char *name : {"gpt2-layernorm",
                           "llama-bias",
                           "llama-wide-head",
                           "llama2-mha",
                           "llama3-gqa-scaled",
                           "mistral-window",
                           "qwen2-bias",
                           "qwen3-qknorm",
                           "qwen2-wide-head",
                           "qwen3-bias",
                           "granite",
                           "smollm3",
                           "olmo2",
                           "starcoder2",
                           "gemma2",
                           "gemma3",
                           "gemma3-nested",
                           "phi3",
                           "phi3-longrope",
                           "phi3-longrope-short",
                           "olmo3",
                           "stablelm",
                           "cohere",
                           "cohere2",
                           "mixtral",
                           "qwen2-moe",
                           "qwen3-moe",
                           "granitemoe",
                           "olmoe",
                           "gpt-oss",
                           "gpt-oss-mxfp4"}) {
    SCOPED_TRACE(name);
    const std::string model = writableGolden(folder, name);
    const ModelConfig from = openSource(model).config;
    auto gguf = convertFolder(folder, model, DataType::F32);
    ASSERT_TRUE(gguf);
    Result<ModelConfig> read = readGgufConfig(*gguf);
    ASSERT_TRUE(read.ok()) << read.message();
    // Windows tell OLMo 3's files from OLMo 2's, and experts Mixtral's from
    // LLaMA's.
    if (from.architecture == Architecture::Olmo3 ||
        from.architecture == Architecture::Mixtral)
      EXPECT_EQ(read->architecture, from.architecture);
    else
      EXPECT_EQ(read->architecture, ggufArchitecture(from));
    EXPECT_EQ(read->bosId, from.bosId);
    EXPECT_EQ(read->eosIds, from.eosIds);
    EXPECT_EQ(read->layers, from.layers);
    EXPECT_EQ(read->hiddenSize, from.hiddenSize);
    EXPECT_EQ(read->intermediateSize, from.intermediateSize);
    EXPECT_EQ(read->vocabSize, from.vocabSize);
    EXPECT_EQ(read->heads, from.heads);
    EXPECT_EQ(read->kvHeads, from.kvHeads);
    EXPECT_EQ(read->headDim, from.headDim);
    EXPECT_EQ(read->maxPositions, from.maxPositions);
    EXPECT_EQ(read->norm, from.norm);
    EXPECT_EQ(float(read->normEps), float(from.normEps));
    EXPECT_EQ(read->activation, from.activation);
    EXPECT_EQ(read->gatedMlp, from.gatedMlp);
    EXPECT_EQ(read->windows(), from.windows());
    EXPECT_EQ(read->normBias, from.normBias);
    EXPECT_EQ(read->normPlaces, from.normPlaces);
    EXPECT_FALSE(read->zeroCenteredNorms);
    EXPECT_EQ(read->parallelBlocks, from.parallelBlocks);
    EXPECT_EQ(float(read->attentionCap), float(from.attentionCap));
    EXPECT_EQ(float(read->logitCap), float(from.logitCap));
    for (int64_t i = 0; i < from.layers; ++i)
      expectSameRope(read->layerConfigs[i].rope, from.layerConfigs[i].rope);
    EXPECT_EQ(float(read->attentionScale), float(from.attentionScale));
    EXPECT_EQ(float(read->embeddingScale), float(from.embeddingScale));
    EXPECT_EQ(float(read->residualScale), float(from.residualScale));
    EXPECT_EQ(float(read->logitScale), float(from.logitScale));
    EXPECT_EQ(read->qkNorm, from.qkNorm);
    EXPECT_EQ(read->qkvBias, from.qkvBias);
    EXPECT_EQ(read->attentionOutputBias, from.attentionOutputBias);
    EXPECT_EQ(read->mlpBias, from.mlpBias);
    EXPECT_EQ(read->tiedEmbeddings, from.tiedEmbeddings);
    EXPECT_EQ(read->experts, from.experts);
    EXPECT_EQ(read->attentionSinks, from.attentionSinks);
    for (int64_t i = 0; i < from.layers; ++i)
      EXPECT_EQ(read->hasExperts(i), from.hasExperts(i));
  }
}

/// What llama.cpp's architectures have: see its src/models, where qwen2 takes
/// heads that make up the hidden size and no rope_freqs.weight, and only llama
/// a bias of the attention's output.
TEST(Convert, ChoosesArchitecturesThatOtherReadersKnow) {
  auto architectureOf = [](const char *name, auto change) {
    ModelConfig config = openSource(kGolden + name).config;
    change(config);
    return ggufArchitecture(config);
  };
  auto nothing = [](ModelConfig &) {};
  EXPECT_EQ(architectureOf("llama-bias", nothing), Architecture::Llama);
  EXPECT_EQ(architectureOf("mistral-window", nothing), Architecture::Llama);
  EXPECT_EQ(architectureOf("qwen2-bias", nothing), Architecture::Qwen2);
  EXPECT_EQ(architectureOf("qwen3-bias", nothing), Architecture::Qwen3);
  EXPECT_EQ(architectureOf("gpt2-layernorm", nothing), Architecture::Gpt2);
  EXPECT_EQ(architectureOf("qwen2-bias",
                           [](ModelConfig &config) { config.headDim *= 2; }),
            Architecture::Llama);
  EXPECT_EQ(architectureOf("qwen2-bias",
                           [](ModelConfig &config) {
                             setScaling(config, RopeConfig::Scaling::Linear);
                           }),
            Architecture::Qwen2);
  EXPECT_EQ(architectureOf("qwen2-bias",
                           [](ModelConfig &config) {
                             setScaling(config, RopeConfig::Scaling::Llama3);
                           }),
            Architecture::Llama);

  Source source = openSource(kGolden + "qwen2-wide-head");
  Result<GgufPlan> plan =
      planFromModel(source.config, *source.weights, {}, "x", DataType::F32);
  ASSERT_TRUE(plan.ok()) << plan.message();
  EXPECT_TRUE(plan->warnings.empty());
  ASSERT_FALSE(plan->notes.empty());
  EXPECT_EQ(plan->notes[0], "the file's architecture is llama, since qwen2 has "
                            "no size of heads of its own");
}

TEST(Convert, WarnsOfWhatOtherReadersDoNotRead) {
  auto problemsOf = [](const char *name, auto change) {
    Source source = openSource(kGolden + name);
    change(source.config);
    return listReaderProblems(source.config);
  };
  using Lines = std::vector<std::string>;
  auto nothing = [](ModelConfig &) {};
  for (const char *name :
       {"gpt2-layernorm", "llama-bias", "llama-wide-head", "llama2-mha",
        "llama3-gqa-scaled", "qwen2-bias", "qwen2-wide-head", "qwen3-qknorm"})
    EXPECT_EQ(problemsOf(name, nothing), Lines()) << name;

  EXPECT_EQ(problemsOf("mistral-window", nothing),
            Lines{"llama.cpp will not heed llama.attention.sliding_window: "
                  "past 8 positions, its results are not the model's"});
  // A window that no text leaves.
  EXPECT_EQ(problemsOf("mistral-window",
                       [](ModelConfig &config) {
                         config.maxPositions =
                             config.layerConfigs.front().window;
                       }),
            Lines());
  for (const char *name : {"qwen2-bias", "qwen3-qknorm"}) {
    const Lines lines = problemsOf(name, [](ModelConfig &config) {
      for (LayerConfig &layer : config.layerConfigs)
        layer.window = 16;
    });
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NE(lines[0].find(std::string(name, 5) + ".attention.sliding_window"),
              std::string::npos)
        << lines[0];
  }
  EXPECT_EQ(
      problemsOf("qwen3-bias", nothing),
      Lines{"llama.cpp will not load the file: its qwen3 has no biases "
            "of the attention's output (such as blk.0.attn_output.bias)"});
  EXPECT_EQ(problemsOf("qwen3-qknorm",
                       [](ModelConfig &config) {
                         setScaling(config, RopeConfig::Scaling::Llama3);
                       }),
            Lines{"llama.cpp will not load the file: its qwen3 has no RoPE "
                  "scaling of Llama 3's kind (rope_freqs.weight)"});
  EXPECT_EQ(problemsOf("llama2-mha",
                       [](ModelConfig &config) { config.layers = 513; }),
            Lines{"llama.cpp will not load the file: llama.block_count is 513, "
                  "of which it takes 512"});

  // Families whose windows it heeds, and what else it has no place for.
  for (const char *name : {"gemma3-nested", "olmo3", "stablelm", "cohere",
                           "cohere2", "phi3-longrope"}) {
    const bool heeds = !std::string(name).starts_with("gemma3");
    EXPECT_EQ(problemsOf(name, nothing).size(), heeds ? 0u : 1u) << name;
  }
  EXPECT_EQ(problemsOf("gemma2", nothing),
            Lines{"llama.cpp will not heed gemma2.attention.scale: its results "
                  "are not the model's"});
  EXPECT_EQ(problemsOf("phi3", nothing),
            Lines{"llama.cpp will not heed phi3.attention.sliding_window: past "
                  "10 positions, its results are not the model's"});
  EXPECT_EQ(problemsOf("stablelm",
                       [](ModelConfig &config) {
                         config.tiedEmbeddings = true;
                         config.headDim *= 2;
                         config.attentionScale = ggufAttentionScale(config);
                       }),
            (Lines{"llama.cpp will not load the file: its stablelm has no size "
                   "of heads of its own (attention.key_length)",
                   "llama.cpp will not load the file: its stablelm has always "
                   "an output matrix of its own (output.weight)"}));
  EXPECT_EQ(problemsOf("cohere",
                       [](ModelConfig &config) {
                         config.tiedEmbeddings = false;
                         config.attentionOutputBias = true;
                       }),
            (Lines{"llama.cpp will not load the file: its command-r has no "
                   "biases of the attention's output (such as "
                   "blk.0.attn_output.bias)",
                   "llama.cpp will not load the file: its command-r has no "
                   "output matrix of its own (output.weight)"}));
  EXPECT_EQ(problemsOf("olmo3",
                       [](ModelConfig &config) {
                         config.layerConfigs[3].rope->betaFast = 16;
                         config.layerConfigs[3].rope->theta = 1e4;
                       }),
            (Lines{"llama.cpp will not heed "
                   "olmo2.rope.scaling.yarn_beta_fast and yarn_beta_slow: its "
                   "results are not the model's",
                   "llama.cpp will not heed olmo2.rope.freq_base_swa: its "
                   "results are not the model's"}));
  EXPECT_EQ(
      problemsOf("smollm3", [](ModelConfig &config) { config.mlpBias = true; }),
      Lines{"llama.cpp will not load the file: its smollm3 has no biases "
            "of the feed-forward's products (such as "
            "blk.0.ffn_down.bias)"});
}

class MovedRows : public testing::TestWithParam<const char *> {};

TEST_P(MovedRows, AreThoseOfHeads) {
  TempFolder folder;
  const std::string model = kGolden + GetParam();
  Source source = openSource(model);
  auto gguf = convertFolder(folder, model, DataType::F32);
  ASSERT_TRUE(gguf);
  const size_t dim = size_t(source.config.headDim);
  const size_t columns = size_t(source.config.hiddenSize);
  for (auto [to, from] : {std::pair("blk.1.attn_q", "q_proj"),
                          std::pair("blk.1.attn_k", "k_proj")}) {
    const std::string base = "model.layers.1.self_attn." + std::string(from);
    const std::vector<float> a = valuesOf(*gguf, std::string(to) + ".weight"),
                             b = valuesOf(*source.weights, base + ".weight"),
                             c = valuesOf(*gguf, std::string(to) + ".bias"),
                             d = valuesOf(*source.weights, base + ".bias");
    ASSERT_EQ(a.size(), b.size());
    for (size_t row = 0; row < c.size(); ++row) {
      // Neighbours 2i and 2i + 1 were i and i + dim / 2.
      const size_t head = row / dim, i = row % dim;
      const size_t was = head * dim + i / 2 + (i % 2) * (dim / 2);
      ASSERT_EQ(c[row], d[was]) << to << " " << row;
      for (size_t column = 0; column < columns; ++column)
        ASSERT_EQ(a[row * columns + column], b[was * columns + column]);
    }
  }
  EXPECT_EQ(
      valuesOf(*gguf, "blk.0.attn_v.weight"),
      valuesOf(*source.weights, "model.layers.0.self_attn.v_proj.weight"));
}

INSTANTIATE_TEST_SUITE_P(Convert, MovedRows,
                         testing::Values("llama-bias", "qwen2-wide-head"),
                         [](const testing::TestParamInfo<const char *> &info) {
                           return std::string(info.param, 5);
                         });

TEST(Convert, TransposesGpt2) {
  TempFolder folder;
  const std::string model = kGolden + "gpt2-layernorm";
  Source source = openSource(model);
  auto gguf = convertFolder(folder, model, DataType::Q8_0);
  ASSERT_TRUE(gguf);
  EXPECT_EQ(gguf->find("blk.0.attn_qkv.weight")->type, DataType::Q8_0);
  EXPECT_EQ(gguf->find("position_embd.weight")->type, DataType::F32);
  EXPECT_FALSE(gguf->find("output.weight").ok());
  const std::vector<float> a = valuesOf(*gguf, "blk.0.attn_qkv.weight");
  const std::vector<float> b =
      valuesOf(*source.weights, "transformer.h.0.attn.c_attn.weight");
  EXPECT_EQ(gguf->find("blk.0.attn_qkv.weight")->shape,
            (std::vector<int64_t>{192, 64}));
  double error = 0;
  for (size_t out = 0; out < 192; ++out)
    for (size_t in = 0; in < 64; ++in)
      error = std::max(error, std::fabs(double(a[out * 64 + in]) -
                                        double(b[in * 192 + out])));
  EXPECT_LT(error, 0.005);
  EXPECT_EQ(valuesOf(*gguf, "blk.0.attn_qkv.bias"),
            valuesOf(*source.weights, "transformer.h.0.attn.c_attn.bias"));
}

/// Files have what norms multiply by.
TEST(Convert, AddsOneToGemmasNorms) {
  TempFolder folder;
  for (const char *name : {"gemma2", "gemma3"}) {
    SCOPED_TRACE(name);
    Source source = openSource(kGolden + name);
    auto gguf = convertFolder(folder, kGolden + name, DataType::F32);
    ASSERT_TRUE(gguf);
    std::vector<std::pair<std::string, std::string>> norms = {
        {"output_norm", "norm"},
        {"blk.1.attn_norm", "layers.1.input_layernorm"},
        {"blk.1.post_attention_norm", "layers.1.post_attention_layernorm"},
        {"blk.1.ffn_norm", "layers.1.pre_feedforward_layernorm"},
        {"blk.1.post_ffw_norm", "layers.1.post_feedforward_layernorm"}};
    if (source.config.qkNorm == QkNorm::Heads) {
      norms.emplace_back("blk.1.attn_q_norm", "layers.1.self_attn.q_norm");
      norms.emplace_back("blk.1.attn_k_norm", "layers.1.self_attn.k_norm");
    }
    for (const auto &[to, from] : norms) {
      std::vector<float> expected =
          valuesOf(*source.weights, "model." + from + ".weight");
      for (float &value : expected)
        value += 1;
      EXPECT_EQ(valuesOf(*gguf, to + ".weight"), expected) << to;
    }
    EXPECT_EQ(
        valuesOf(*gguf, "blk.1.attn_q.weight"),
        valuesOf(*source.weights, "model.layers.1.self_attn.q_proj.weight"));
  }
}

/// Files of Phi-3 have its matrices joined, as checkpoints do.
TEST(Convert, JoinsPhi3sMatrices) {
  TempFolder folder;
  const std::string model = kGolden + "phi3-longrope";
  auto stored = openSafetensors(model);
  ASSERT_TRUE(stored.ok()) << stored.message();
  auto gguf = convertFolder(folder, model, DataType::BF16);
  ASSERT_TRUE(gguf);
  for (auto [to, from] : {std::pair("blk.3.attn_qkv.weight",
                                    "model.layers.3.self_attn.qkv_proj.weight"),
                          std::pair("blk.3.ffn_up.weight",
                                    "model.layers.3.mlp.gate_up_proj.weight")})
    EXPECT_TRUE(sameBytes(*gguf->find(to), *(*stored)->find(from))) << to;
  for (const char *part : {"attn_q", "attn_k", "attn_v", "ffn_gate"})
    EXPECT_FALSE(gguf->find("blk.3." + std::string(part) + ".weight").ok());

  Source source = openSource(model);
  const RopeConfig &rope = *source.config.commonRope();
  EXPECT_EQ(valuesOf(*gguf, "rope_factors_long.weight"), rope.longFactors);
  EXPECT_EQ(valuesOf(*gguf, "rope_factors_short.weight"), rope.shortFactors);
  // Readers see them apart again.
  const ModelConfig config = readGgufConfig(*gguf).take();
  std::unique_ptr<WeightSource> weights = std::move(gguf);
  ASSERT_TRUE(adaptStoredTensors(config, weights).ok());
  Result<std::vector<ListedTensor>> found = findTensors(config, *weights);
  ASSERT_TRUE(found.ok()) << found.message();
  for (auto [to, from] : {std::pair("attn_k", "self_attn.k_proj"),
                          std::pair("ffn_gate", "mlp.gate_proj"),
                          std::pair("ffn_up", "mlp.up_proj")})
    EXPECT_EQ(valuesOf(*weights, "blk.3." + std::string(to) + ".weight"),
              valuesOf(*source.weights,
                       "model.layers.3." + std::string(from) + ".weight"))
        << to;
}

/// Rows of models that turn neighbours stay where they are.
TEST(Convert, MovesNoRowsThatTurnNeighbours) {
  TempFolder folder;
  for (const char *name : {"cohere", "cohere2"}) {
    Source source = openSource(kGolden + name);
    auto gguf = convertFolder(folder, kGolden + name, DataType::F32);
    ASSERT_TRUE(gguf);
    EXPECT_EQ(
        valuesOf(*gguf, "blk.1.attn_q.weight"),
        valuesOf(*source.weights, "model.layers.1.self_attn.q_proj.weight"));
  }
}

TEST(Convert, WritesLlama3Frequencies) {
  // Llama 3.1: theta 500000, factor 8, 1 and 4, 8192 positions, heads of 128.
  RopeConfig rope;
  rope.theta = 500000;
  rope.dim = 128;
  rope.scaling = RopeConfig::Scaling::Llama3;
  rope.factor = 8;
  rope.lowFreqFactor = 1;
  rope.highFreqFactor = 4;
  rope.originalContext = 8192;
  const std::vector<float> factors = llama3FrequencyFactors(rope);
  ASSERT_EQ(factors.size(), 64u);
  EXPECT_EQ(factors[0], 1.0f);
  EXPECT_EQ(factors[28], 1.0f); // a wave of 1956 positions: under 8192 / 4
  EXPECT_EQ(factors[63], 8.0f);
  EXPECT_EQ(factors[35], 8.0f); // a wave of 8219 positions: over 8192
  // Between: Hugging Face's formula, written as it is there.
  for (int i = 29; i < 35; ++i) {
    const double frequency = std::pow(500000.0, -2.0 * i / 128);
    const double wave = 2 * M_PI / frequency;
    const double smooth = (8192 / wave - 1) / (4 - 1);
    const double scaled = (1 - smooth) * frequency / 8 + smooth * frequency;
    EXPECT_NEAR(factors[i], frequency / scaled, 1e-5) << i;
  }
  // No frequencies between.
  rope.highFreqFactor = 1;
  const std::vector<float> steps = llama3FrequencyFactors(rope);
  EXPECT_EQ(steps[34], 1.0f);
  EXPECT_EQ(steps[35], 8.0f);
  TempFolder folder;
  auto gguf =
      convertFolder(folder, kGolden + "llama3-gqa-scaled", DataType::Q4_0);
  ASSERT_TRUE(gguf);
  EXPECT_EQ(gguf->find("rope_freqs.weight")->type, DataType::F32);
  const ModelConfig config = openSource(kGolden + "llama3-gqa-scaled").config;
  EXPECT_EQ(valuesOf(*gguf, "rope_freqs.weight"),
            llama3FrequencyFactors(*config.commonRope()));
}

//===----------------------------------------------------------------------===//
// From GGUF to GGUF
//===----------------------------------------------------------------------===//

TEST(Convert, RequantizesGguf) {
  TempFolder folder;
  auto source =
      Gguf::open(kModels + "kf-stories-gguf/kf-stories-Q8_0.gguf").take();
  Result<GgufPlan> plan = planFromGguf(*source, DataType::Q4_0);
  ASSERT_TRUE(plan.ok()) << plan.message();
  ASSERT_EQ(plan->notes.size(), 1u);
  EXPECT_TRUE(plan->notes[0].starts_with("57 tensors of the source are"));
  auto gguf = writeAndOpen(folder, *plan, *source);
  ASSERT_TRUE(gguf);
  EXPECT_EQ(*gguf->getUnsigned("general.file_type"), 2u);
  EXPECT_EQ(gguf->metadata().size(), source->metadata().size());
  EXPECT_EQ(gguf->lookUp("tokenizer.ggml.tokens")->bytes(),
            source->lookUp("tokenizer.ggml.tokens")->bytes());
  EXPECT_EQ(gguf->find("token_embd.weight")->type, DataType::Q6_K);
  // The values are those of the source, rounded again.
  const TensorView matrix = *gguf->find("blk.3.ffn_up.weight");
  const std::vector<float> values = valuesOf(*source, "blk.3.ffn_up.weight");
  std::vector<std::byte> expected(matrix.bytes);
  quantizeBlocks(DataType::Q4_0, values.data(), int64_t(values.size()) / 32,
                 expected.data());
  EXPECT_EQ(std::memcmp(expected.data(), matrix.data, matrix.bytes), 0);

  // A file that has the types already is the same.
  Result<GgufPlan> same = planFromGguf(*source, DataType::Q8_0);
  ASSERT_TRUE(same.ok()) << same.message();
  EXPECT_TRUE(same->notes.empty());
  auto copy = writeAndOpen(folder, *same, *source);
  ASSERT_TRUE(copy);
  for (const GgufTensor &tensor : source->tensors()) {
    const std::string name(tensor.name);
    EXPECT_TRUE(sameBytes(*copy->find(name), *source->find(name))) << name;
  }
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

TEST(TensorTypes, FollowTheRule) {
  auto typeOf = [](const TypeRule &rule, const char *name, int64_t columns) {
    const std::vector<int64_t> shape = {64, columns};
    return chooseType(rule, name, shape).type;
  };
  const TypeRule tied{DataType::Q4_0, 16, 4, true};
  EXPECT_EQ(typeOf(tied, "token_embd.weight", 256), DataType::Q6_K);
  EXPECT_EQ(typeOf(tied, "token_embd.weight", 96), DataType::Q8_0);
  EXPECT_EQ(typeOf(tied, "token_embd.weight", 100), DataType::F16);
  EXPECT_EQ(typeOf(tied, "blk.0.attn_v.weight", 256), DataType::Q4_0);
  EXPECT_EQ(typeOf(tied, "position_embd.weight", 256), DataType::F32);
  EXPECT_EQ(typeOf(tied, "blk.0.attn_q.bias", 256), DataType::F32);
  const TypeRule untied{DataType::Q4_K, 16, 1, false};
  EXPECT_EQ(typeOf(untied, "output.weight", 256), DataType::Q6_K);
  EXPECT_EQ(typeOf(untied, "token_embd.weight", 256), DataType::Q4_K);
  EXPECT_EQ(typeOf(untied, "blk.0.attn_qkv.weight", 256), DataType::Q5_K);
  std::string down;
  for (int i = 0; i < 16; ++i)
    down += typeOf(untied,
                   ("blk." + std::to_string(i) + ".ffn_down.weight").c_str(),
                   256) == DataType::Q6_K
                ? '6'
                : '4';
  EXPECT_EQ(down, "6644644644644666");
  const TypeRule two{DataType::Q2_K, 16, 4, false};
  EXPECT_EQ(typeOf(two, "blk.5.attn_v.weight", 256), DataType::Q4_K);
  EXPECT_EQ(typeOf(two, "blk.5.attn_output.weight", 256), DataType::Q3_K);
  EXPECT_EQ(typeOf(two, "blk.5.ffn_up.weight", 256), DataType::Q2_K);
  EXPECT_EQ(typeOf(two, "blk.5.ffn_up.weight", 160), DataType::IQ4_NL);
  const TypeRule four{DataType::IQ4_XS, 16, 4, false};
  EXPECT_EQ(typeOf(four, "blk.5.attn_v.weight", 256), DataType::Q5_K);
  EXPECT_EQ(typeOf(four, "blk.1.ffn_down.weight", 256), DataType::Q5_K);
  EXPECT_EQ(typeOf(four, "blk.2.ffn_down.weight", 256), DataType::IQ4_XS);
  EXPECT_EQ(typeOf(four, "blk.2.ffn_down.weight", 160), DataType::IQ4_NL);
  EXPECT_EQ(typeOf(four, "output.weight", 256), DataType::Q6_K);
  EXPECT_EQ(fileTypeNumber(DataType::IQ4_XS), 30u);
  const TypeRule three{DataType::Q3_K, 32, 1, false};
  EXPECT_EQ(typeOf(three, "blk.1.attn_v.weight", 256), DataType::Q5_K);
  EXPECT_EQ(typeOf(three, "blk.2.attn_v.weight", 256), DataType::Q4_K);
  EXPECT_EQ(typeOf(three, "blk.1.ffn_down.weight", 256), DataType::Q5_K);
  EXPECT_EQ(typeOf(three, "blk.2.ffn_down.weight", 256), DataType::Q4_K);
  // Of experts: stacks, one in older files, shared ones and what routes.
  const TypeRule many{DataType::Q4_K, 16, 1, false, 60};
  for (const char *part : {"ffn_down_exps", "ffn_down_shexp", "ffn_down.3"}) {
    const std::string in = std::string(part) + ".weight";
    EXPECT_EQ(typeOf(many, ("blk.0." + in).c_str(), 256), DataType::Q6_K);
    EXPECT_EQ(typeOf(many, ("blk.2." + in).c_str(), 256), DataType::Q4_K);
    EXPECT_EQ(typeOf(many, ("blk.2." + in).c_str(), 96), DataType::Q5_0);
    EXPECT_EQ(typeOf(many, ("blk.2." + in).c_str(), 24), DataType::F16);
  }
  const TypeRule floats{DataType::MXFP4, 16, 1, false, 60};
  for (const char *part : {"ffn_down_exps", "ffn_down.3", "ffn_gate.12"})
    EXPECT_EQ(
        typeOf(floats, ("blk.2." + std::string(part) + ".weight").c_str(), 256),
        DataType::MXFP4);
  for (const char *part : {"ffn_down_shexp", "ffn_down", "attn_v"})
    EXPECT_EQ(
        typeOf(floats, ("blk.2." + std::string(part) + ".weight").c_str(), 256),
        DataType::Q8_0);
  for (const char *part : {"ffn_gate_inp", "ffn_gate_inp_shexp"})
    for (DataType type : {DataType::Q8_0, DataType::BF16})
      EXPECT_EQ(typeOf({type, 16, 1, false, 60},
                       ("blk.1." + std::string(part) + ".weight").c_str(), 256),
                DataType::F32);
  EXPECT_EQ(typeOf(many, "blk.2.attn_v.weight", 256), DataType::Q4_K);
  for (auto [type, output] : {std::pair(DataType::Q4_K, DataType::Q5_K),
                              std::pair(DataType::IQ4_NL, DataType::Q5_K),
                              std::pair(DataType::IQ4_XS, DataType::Q5_K),
                              std::pair(DataType::Q5_K, DataType::Q5_K),
                              std::pair(DataType::Q6_K, DataType::Q6_K),
                              std::pair(DataType::Q4_0, DataType::Q4_0)}) {
    const TypeRule eight{type, 16, 4, false, 8};
    EXPECT_EQ(typeOf(eight, "blk.2.attn_v.weight", 256), DataType::Q8_0);
    EXPECT_EQ(typeOf(eight, "blk.2.attn_k.weight", 256), DataType::Q8_0);
    EXPECT_EQ(typeOf(eight, "blk.2.attn_output.weight", 256), output);
    EXPECT_EQ(typeOf(eight, "blk.2.ffn_up_exps.weight", 256), type);
  }
  const TypeRule half{DataType::BF16, 16, 1, true};
  EXPECT_EQ(typeOf(half, "token_embd.weight", 100), DataType::BF16);
  const std::vector<int64_t> vector = {256};
  EXPECT_EQ(chooseType(half, "output_norm.weight", vector).type, DataType::F32);
  EXPECT_FALSE(isFileType(DataType::I32));
  EXPECT_TRUE(isFileType(DataType::IQ4_NL));
}

TEST(Convert, WritesEveryType) {
  TempFolder folder;
  std::vector<DataType> types = {DataType::F32, DataType::F16, DataType::BF16};
  for (const BlockFormat &format : kBlockFormats)
    types.push_back(format.type);
  for (DataType type : types) {
    auto gguf = convertFolder(folder, kGolden + "llama3-gqa-scaled", type);
    ASSERT_TRUE(gguf) << nameOf(type);
    EXPECT_EQ(*gguf->getUnsigned("general.file_type"), fileTypeNumber(type));
    const std::vector<float> norm = valuesOf(*gguf, "output_norm.weight");
    EXPECT_EQ(norm.size(), 128u);
    auto experts = convertFolder(folder, kGolden + "mixtral", type);
    ASSERT_TRUE(experts) << nameOf(type);
    // Rows of 32 and 24 elements.
    EXPECT_EQ(experts->find("blk.0.ffn_up_exps.weight")->type,
              chooseType({.type = type, .layers = 3, .experts = 4},
                         "blk.0.ffn_up_exps.weight",
                         std::vector<int64_t>{4, 24, 32})
                  .type);
    EXPECT_EQ(experts->find("blk.0.ffn_down_exps.weight")->type,
              isBlock(type) ? DataType::F16 : type);
  }
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// The error of converting one tensor of `values` to `type`.
std::string convertError(std::vector<float> values, DataType type) {
  MapWeights weights;
  weights.add("x", {int64_t(values.size()) / 32, 32}, values);
  ConvertedTensor tensor;
  tensor.name = "y";
  tensor.source = "x";
  tensor.shape = {int64_t(values.size()) / 32, 32};
  const TensorView view = *weights.find("x");
  auto pool = makePool();
  return TensorRows(*pool)
      .convert(tensor, &view, type,
               [](std::span<const std::byte>) { return Status(); })
      .message();
}

TEST(Convert, NamesValuesThatNoTypeHas) {
  for (DataType type : {DataType::Q8_0, DataType::F16, DataType::F32}) {
    for (float odd : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      std::vector<float> values(320000, 1.0f);
      values[250000] = values[250001] = values[310000] = odd;
      EXPECT_EQ(convertError(values, type),
                "tensor 'x' has a NaN or an infinity in row 7812");
    }
  }
  std::vector<float> values(320, 1.0f);
  values[40] = 1e8f;
  EXPECT_EQ(convertError(values, DataType::F32), "");
  EXPECT_EQ(convertError(values, DataType::BF16), "");
  EXPECT_EQ(convertError(values, DataType::F16),
            "tensor 'x' has a value in row 1 that is too large for f16");
  EXPECT_EQ(convertError(values, DataType::Q8_0),
            "tensor 'x' has a value in row 1 that is too large for q8_0");
  values[40] = 3.4e38f;
  EXPECT_EQ(convertError(values, DataType::BF16),
            "tensor 'x' has a value in row 1 that is too large for bf16");
}

TEST(Convert, NamesWhatIsWrongWithAModel) {
  auto errorOf = [](auto change) {
    Source source = openSource(kGolden + "llama2-mha");
    MapWeights weights;
    for (const std::string &name : source.weights->names())
      weights.add(name, source.weights->find(name)->shape,
                  valuesOf(*source.weights, name));
    change(source.config, weights);
    return planFromModel(source.config, weights, {}, "x", DataType::Q8_0)
        .message();
  };
  EXPECT_EQ(errorOf([](ModelConfig &, MapWeights &) {}), "");
  EXPECT_EQ(errorOf([](ModelConfig &, MapWeights &weights) {
              weights.add("extra", {1}, {0});
            }),
            "checkpoint tensor 'extra' is not part of the model that the "
            "configuration describes");
  EXPECT_EQ(errorOf([](ModelConfig &, MapWeights &weights) {
              weights.add("model.norm.weight", {2}, {0, 0});
            }),
            "checkpoint tensor 'model.norm.weight' has shape [2], but the "
            "configuration implies "
            "[64]");
  EXPECT_EQ(errorOf([](ModelConfig &, MapWeights &weights) {
              weights.tensors.erase("model.norm.weight");
            }),
            "no tensor model.norm.weight");
  EXPECT_EQ(errorOf([](ModelConfig &, MapWeights &weights) {
              weights.tensors["model.norm.weight"] =
                  *HostTensor::zeros(DataType::U8, {64});
            }),
            "checkpoint tensor 'model.norm.weight' has elements of ui8, where "
            "floats or blocks are expected");
  EXPECT_EQ(errorOf([](ModelConfig &config, MapWeights &) {
              config.activation = Activation::Gelu;
            }),
            "a GGUF file cannot say that the model's activation is not silu");
  EXPECT_EQ(errorOf([](ModelConfig &config, MapWeights &) {
              config.layerConfigs.front().window = 8;
            }),
            "a GGUF file cannot say that some layers have a sliding window and "
            "others have none");
  EXPECT_EQ(errorOf([](ModelConfig &config, MapWeights &) {
              config.attentionScale = 1;
            }),
            "a GGUF file cannot say that attention is not scaled by the head "
            "dimension");
  EXPECT_EQ(errorOf([](ModelConfig &config, MapWeights &) {
              config.layerConfigs.front().rope->theta = 500;
            }),
            "a GGUF file cannot say that layer 1 has another RoPE than the "
            "architecture's");
  EXPECT_EQ(errorOf([](ModelConfig &config, MapWeights &) {
              setScaling(config, RopeConfig::Scaling::Yarn);
              changeRope(config,
                         [](RopeConfig &rope) { rope.truncate = false; });
            }),
            "a GGUF file cannot say that yarn's bounds are no whole numbers "
            "('truncate')");
  EXPECT_EQ(errorOf([](ModelConfig &config, MapWeights &) {
              config.attentionCap = 50;
            }),
            "a GGUF file cannot say that attention's scores have a cap");
  EXPECT_EQ(errorOf([](ModelConfig &config, MapWeights &) {
              setScaling(config, RopeConfig::Scaling::LongRope);
            }),
            "a GGUF file cannot say that RoPE is scaled by longrope");
  EXPECT_EQ(errorOf([](ModelConfig &config, MapWeights &) {
              setScaling(config, RopeConfig::Scaling::Proportional);
            }),
            "a GGUF file cannot say that RoPE is scaled by proportional");
  EXPECT_EQ(errorOf([](ModelConfig &config, MapWeights &) {
              changeRope(config, [](RopeConfig &rope) { rope.theta = 1e39; });
            }),
            "a GGUF file cannot say that the RoPE's theta is a number beyond "
            "the range of F32");
  EXPECT_EQ(errorOf([](ModelConfig &config, MapWeights &) {
              changeRope(config, [](RopeConfig &rope) { rope.factor = 1e-50; });
            }),
            "a GGUF file cannot say that the RoPE's factor is a number beyond "
            "the range of F32");
}

TEST(Convert, NamesWhatIsWrongWithLayersThatDiffer) {
  auto errorOf = [](const char *name, auto change) {
    Source source = openSource(kGolden + name);
    change(source.config);
    return planFromModel(source.config, *source.weights, {}, "x", DataType::F32)
        .message();
  };
  EXPECT_EQ(
      errorOf("gemma2", [](ModelConfig &config) { config.attentionCap = 0; }),
      "a GGUF file cannot say that attention's scores have no cap");
  EXPECT_EQ(errorOf("gemma2", [](ModelConfig &config) { config.logitCap = 0; }),
            "a GGUF file cannot say that logits have no cap");
  EXPECT_EQ(errorOf("gemma3",
                    [](ModelConfig &config) {
                      for (LayerConfig &layer : config.layerConfigs)
                        layer.rope->scaling = RopeConfig::Scaling::Linear;
                    }),
            "a GGUF file cannot say that layers with a window scale RoPE, or "
            "turn another part of heads");
  EXPECT_EQ(errorOf("gemma3",
                    [](ModelConfig &config) {
                      config.layerConfigs.front().rope->theta = 1e39;
                      config.layerConfigs[1].rope->theta = 1e39;
                      config.layerConfigs[3].rope->theta = 1e39;
                    }),
            "a GGUF file cannot say that the RoPE's theta is a number beyond "
            "the range of F32");
  EXPECT_EQ(errorOf("cohere2",
                    [](ModelConfig &config) {
                      config.layerConfigs.back().rope.reset();
                    }),
            "a GGUF file cannot say that layer 3 has another RoPE than the "
            "architecture's");
}

/// Without any window, which readers take for granted there.
TEST(Convert, SaysThatNoLayerHasAWindow) {
  TempFolder folder;
  for (const char *name : {"gemma2", "gemma3", "cohere2", "olmo3"}) {
    SCOPED_TRACE(name);
    Source source = openSource(kGolden + name);
    const RopeConfig *rope = ggufRopes(source.config).full;
    const bool turns = source.config.layerConfigs[2].rope.has_value();
    const std::optional<RopeConfig> full =
        turns ? std::optional(*rope) : std::nullopt;
    for (LayerConfig &layer : source.config.layerConfigs)
      layer = {.window = 0, .rope = full};
    Result<GgufPlan> plan =
        planFromModel(source.config, *source.weights, {}, "x", DataType::F32);
    ASSERT_TRUE(plan.ok()) << plan.message();
    auto gguf = writeAndOpen(folder, *plan, *source.weights);
    Result<ModelConfig> read = readGgufConfig(*gguf);
    ASSERT_TRUE(read.ok()) << read.message();
    EXPECT_EQ(read->windows(), source.config.windows());
    const bool isImplied =
        std::string(name) == "gemma2" || std::string(name) == "cohere2";
    EXPECT_EQ(std::ranges::any_of(plan->warnings,
                                  [](const std::string &line) {
                                    return line.ends_with(
                                        "has always some layers with a window "
                                        "(attention.sliding_window_pattern)");
                                  }),
              isImplied);
    for (const LayerConfig &layer : read->layerConfigs)
      expectSameRope(layer.rope, full);
  }
}

/// As llama.cpp reads it: every so many-th layer sees everything. An array only
/// where that says nothing.
TEST(Convert, SaysWhichLayersHaveAWindowByAPeriod) {
  TempFolder folder;
  auto patternOf = [&](const Source &source) {
    Result<GgufPlan> plan =
        planFromModel(source.config, *source.weights, {}, "x", DataType::F32);
    EXPECT_TRUE(plan.ok()) << plan.message();
    auto gguf = writeAndOpen(folder, *plan, *source.weights);
    Result<ModelConfig> read = readGgufConfig(*gguf);
    EXPECT_TRUE(read.ok()) << read.message();
    EXPECT_EQ(read->windows(), source.config.windows());
    const GgufValue *value =
        gguf->lookUp(std::string(ggufNameOf(ggufArchitecture(source.config))) +
                     ".attention.sliding_window_pattern");
    EXPECT_TRUE(value);
    return value ? value->toUnsigned() : std::nullopt;
  };
  for (auto [name, period] :
       {std::pair("gemma2", 2U), std::pair("gemma3", 3U),
        std::pair("cohere2", 3U), std::pair("olmo3", 4U)}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(patternOf(openSource(kGolden + name)), period);
  }
  Source source = openSource(kGolden + "gemma2");
  std::vector<LayerConfig> &layers = source.config.layerConfigs;
  ASSERT_EQ(layers.size(), 4u);
  auto setWindows = [&](std::vector<int64_t> windows) {
    for (size_t i = 0; i < windows.size(); ++i)
      layers[i].window = windows[i];
    return patternOf(source);
  };
  const std::string unheeded =
      "llama.cpp will not heed gemma2.attention.sliding_window_pattern, since "
      "its layers with a window have no period: its results are not the "
      "model's";
  auto isWarnedOf = [&] {
    const std::vector<std::string> lines = listReaderProblems(source.config);
    return std::ranges::find(lines, unheeded) != lines.end();
  };
  EXPECT_EQ(setWindows({8, 8, 8, 8}), 5U); // no layer is the fifth
  EXPECT_FALSE(isWarnedOf());
  EXPECT_EQ(setWindows({0, 8, 8, 8}), std::nullopt);
  EXPECT_TRUE(isWarnedOf());
  EXPECT_EQ(setWindows({0, 0, 0, 0}), 1U);
  EXPECT_FALSE(isWarnedOf());
  // The usual period rather than a shorter one that fits as well.
  Source gemma3 = openSource(kGolden + "gemma3");
  for (LayerConfig &layer : gemma3.config.layerConfigs)
    layer.window = 8;
  EXPECT_EQ(slidingPeriod(gemma3.config), 6);
}

TEST(Convert, KeepsTheOldFileWhenItEndsEarly) {
  TempFolder folder;
  const std::string path = folder.write("out.gguf", "old");
  Source source = openSource(kGolden + "llama2-mha");
  GgufPlan plan =
      planFromModel(source.config, *source.weights, {}, "x", DataType::Q8_0)
          .take();
  auto pool = makePool();
  int64_t calls = 0;
  Result<WriteSummary> result =
      writeGguf(plan, *source.weights, path, *pool,
                {.replace = true, .progress = [&](int64_t done, int64_t all) {
                   EXPECT_LE(done, all);
                   return ++calls < 5;
                 }});
  EXPECT_EQ(result.message(), "interrupted");
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            1);
}

/// The source is cut off once the first piece is written; threads read on.
TEST(ConvertDeathTest, LeavesNothingWhereTheSourceIsCutOff) {
  TempFolder folder;
  std::filesystem::create_directory(folder.path("in"));
  for (const char *name : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(kModels + "kf-stories/" + name,
                               folder.path("in/") + name);
  const std::string weights = folder.path("in/model.safetensors");
  const std::string out = folder.write("out.gguf", "old");
  auto cutOff = [&] {
    exitOnReadFaults();
    Source source = openSource(folder.path("in"));
    GgufPlan plan =
        planFromModel(source.config, *source.weights, {}, "x", DataType::Q8_0)
            .take();
    auto pool = makePool();
    (void)writeGguf(plan, *source.weights, out, *pool,
                    {.replace = true, .progress = [&](int64_t, int64_t) {
                       std::filesystem::resize_file(weights, 4096);
                       return true;
                     }});
  };
  EXPECT_EXIT(cutOff(), testing::ExitedWithCode(1),
              "^error: cannot read '" + weights +
                  "': it became shorter while it was in use; run again with "
                  "the whole file\n$");
  EXPECT_EQ(std::filesystem::file_size(out), 3u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            2);
}

TEST(Convert, TakesRandomWeights) {
  TempFolder folder;
  const ModelConfig config = openSource(kModels + "kf-stories").config;
  auto weights = DummyWeights::create(config, DataType::Q4_0, 1);
  ASSERT_TRUE(weights.ok()) << weights.message();
  Result<GgufPlan> plan =
      planFromModel(config, **weights, {}, "dummy", DataType::Q4_0);
  ASSERT_TRUE(plan.ok()) << plan.message();
  EXPECT_EQ(plan->notes, std::vector<std::string>{
                             "the model has no tokenizer, nor will the file"});
  EXPECT_TRUE(writeAndOpen(folder, *plan, **weights));
}

} // namespace
