//===- ConvertExpertsTest.cpp - Models of experts as GGUF files -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvertTesting.h"

#include "runtime/convert/ModelMetadata.h"
#include "runtime/convert/ReaderProblems.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/TensorList.h"

using namespace kf;
using namespace kf::test;

namespace {

/// The matrices of a layer's experts are in stacks, in the order of experts;
/// what routes stays f32. Readers see them apart again.
TEST(ConvertExperts, StacksExperts) {
  TempFolder folder;
  for (auto [name, inLayer, gate, up, down] : std::initializer_list<
           std::tuple<const char *, const char *, const char *, const char *,
                      const char *>>{
           {"mixtral", "block_sparse_moe.", "w1", "w3", "w2"},
           {"granitemoe", "block_sparse_moe.", "w1", "w3", "w2"},
           {"qwen2-moe", "mlp.", "gate_proj", "up_proj", "down_proj"},
           {"qwen3-moe", "mlp.", "gate_proj", "up_proj", "down_proj"},
           {"olmoe", "mlp.", "gate_proj", "up_proj", "down_proj"},
           {"gpt-oss", "mlp.", "gate_proj", "up_proj", "down_proj"}}) {
    SCOPED_TRACE(name);
    const std::string model = writableGolden(folder, name);
    Source source = openSource(model);
    const ExpertsConfig &experts = source.config.experts;
    auto gguf = convertFolder(folder, model, DataType::BF16);
    ASSERT_TRUE(gguf);
    EXPECT_EQ(gguf->find("blk.2.ffn_gate_inp.weight")->type, DataType::F32);
    for (auto [to, from] :
         {std::pair("ffn_gate", gate), std::pair("ffn_up", up),
          std::pair("ffn_down", down)}) {
      Result<TensorView> stack =
          gguf->find("blk.2." + std::string(to) + "_exps.weight");
      ASSERT_TRUE(stack.ok()) << stack.message();
      std::vector<int64_t> shape = {experts.count, experts.width,
                                    source.config.hiddenSize};
      if (from == down)
        std::swap(shape[1], shape[2]);
      EXPECT_EQ(stack->shape, shape);
      const auto *bytes = static_cast<const std::byte *>(stack->data);
      for (int64_t i = 0; i < experts.count; ++i) {
        const TensorView one = *source.weights->find(
            "model.layers.2." + std::string(inLayer) + "experts." +
            std::to_string(i) + "." + from + ".weight");
        EXPECT_EQ(std::memcmp(bytes, one.data, one.bytes), 0) << to << i;
        bytes += one.bytes;
      }
    }
    if (experts.sharedGate) {
      const TensorView share = *gguf->find("blk.2.ffn_gate_inp_shexp.weight");
      EXPECT_EQ(share.type, DataType::F32);
      EXPECT_EQ(share.shape, std::vector<int64_t>{source.config.hiddenSize});
      EXPECT_EQ(gguf->find("blk.2.ffn_down_shexp.weight")->shape,
                (std::vector<int64_t>{source.config.hiddenSize,
                                      experts.sharedWidth}));
    }
    // The same file of it is the same.
    Result<GgufPlan> again = planFromGguf(*gguf, DataType::BF16);
    ASSERT_TRUE(again.ok()) << again.message();
    for (const GgufPlan::Tensor &planned : again->tensors)
      EXPECT_EQ(planned.type, gguf->find(planned.tensor.name)->type)
          << planned.tensor.name;

    const ModelConfig config = readGgufConfig(*gguf).take();
    std::unique_ptr<WeightSource> weights = std::move(gguf);
    ASSERT_TRUE(adaptStoredTensors(config, weights).ok());
    Result<std::vector<ListedTensor>> found = findTensors(config, *weights);
    ASSERT_TRUE(found.ok()) << found.message();
    EXPECT_EQ(valuesOf(*weights, "blk.1.ffn_up.1.weight"),
              valuesOf(*source.weights, "model.layers.1." +
                                            std::string(inLayer) +
                                            "experts.1." + up + ".weight"));
  }
}

/// Experts that are blocks of mxfp4 stay those blocks where a file is of mxfp4,
/// and what rows all go through has more bits; biases, sinks and what routes
/// are f32.
TEST(ConvertExperts, KeepsBlocksAndBiases) {
  TempFolder folder;
  const std::string model = writableGolden(folder, "gpt-oss-mxfp4");
  Source source = openSource(model);
  auto gguf = convertFolder(folder, model, DataType::MXFP4);
  ASSERT_TRUE(gguf);
  const ExpertsConfig &experts = source.config.experts;
  EXPECT_EQ(gguf->find("token_embd.weight")->type, DataType::Q8_0);
  EXPECT_EQ(gguf->find("output.weight")->type, DataType::Q8_0);
  EXPECT_EQ(gguf->find("blk.0.attn_q.weight")->type, DataType::Q8_0);
  const TensorView biases = *gguf->find("blk.0.ffn_down_exps.bias");
  EXPECT_EQ(biases.type, DataType::F32);
  EXPECT_EQ(biases.shape,
            (std::vector<int64_t>{experts.count, source.config.hiddenSize}));
  const ModelConfig config = readGgufConfig(*gguf).take();
  std::unique_ptr<WeightSource> weights = std::move(gguf);
  ASSERT_TRUE(adaptStoredTensors(config, weights).ok());
  Result<std::vector<ListedTensor>> found = findTensors(config, *weights);
  ASSERT_TRUE(found.ok()) << found.message();
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string to = "blk." + std::to_string(layer) + ".";
    const std::string from = "model.layers." + std::to_string(layer) + ".";
    auto expectEqual = [&](const std::string &a, const std::string &b) {
      EXPECT_EQ(valuesOf(*weights, to + a), valuesOf(*source.weights, from + b))
          << to << a;
    };
    expectEqual("attn_sinks.weight", "self_attn.sinks");
    expectEqual("attn_q.bias", "self_attn.q_proj.bias");
    expectEqual("attn_output.bias", "self_attn.o_proj.bias");
    expectEqual("ffn_gate_inp.weight", "mlp.router.weight");
    expectEqual("ffn_gate_inp.bias", "mlp.router.bias");
    expectEqual("post_attention_norm.weight",
                "post_attention_layernorm.weight");
    for (int64_t i = 0; i < experts.count; ++i)
      for (const std::string part : {"gate", "up", "down"}) {
        const std::string one = "ffn_" + part + "." + std::to_string(i);
        const std::string other =
            "mlp.experts." + std::to_string(i) + "." + part + "_proj";
        const TensorView blocks = *weights->find(to + one + ".weight");
        EXPECT_EQ(blocks.type, DataType::MXFP4);
        EXPECT_TRUE(
            sameBytes(blocks, *source.weights->find(from + other + ".weight")))
            << to << one;
        EXPECT_EQ(weights->find(to + one + ".bias")->shape.size(), 1u);
        expectEqual(one + ".bias", other + ".bias");
      }
  }
}

/// What files of an architecture cannot say of experts is an error that names
/// the field.
TEST(ConvertExperts, NamesWhatFilesCannotSayOfExperts) {
  auto errorOf = [](const char *name, auto change) {
    Source source = openSource(kGolden + name);
    change(source.config);
    GgufMetadata metadata;
    return addModelMetadata(source.config, "x", metadata).message();
  };
  auto turn = [](ModelConfig &config) {
    config.experts.normalized = !config.experts.normalized;
  };
  for (const char *name : {"qwen2-moe", "olmoe"})
    EXPECT_EQ(errorOf(name, turn),
              "a GGUF file cannot say that the probabilities of the experts "
              "that are chosen are divided by their sum ('norm_topk_prob')");
  EXPECT_EQ(errorOf("qwen3-moe", turn),
            "a GGUF file cannot say that the probabilities of the experts that "
            "are chosen are not divided by their sum ('norm_topk_prob')");
  for (const char *name : {"qwen2-moe", "qwen3-moe"})
    EXPECT_EQ(errorOf(name,
                      [](ModelConfig &config) {
                        config.layerConfigs[1].hasExperts = false;
                      }),
              "a GGUF file cannot say that layer 1 has no experts "
              "('mlp_only_layers' or 'decoder_sparse_step')");
}

/// What goes without saying of gpt-oss has to be so.
TEST(ConvertExperts, NamesWhatFilesOfGptOssCannotSay) {
  auto errorOf = [](auto change) {
    TempFolder folder;
    Source source = openSource(writableGolden(folder, "gpt-oss"));
    change(source.config);
    GgufMetadata metadata;
    return addModelMetadata(source.config, "x", metadata).message();
  };
  EXPECT_EQ(
      errorOf([](ModelConfig &config) { config.experts.clamp->limit = 1.5; }),
      "a GGUF file cannot say that 'swiglu_limit' is 1.5 rather than 7");
  EXPECT_EQ(
      errorOf([](ModelConfig &config) { config.experts.clamp->alpha = 1; }),
      "a GGUF file cannot say that 'swiglu_alpha' is 1 rather than 1.702");
  EXPECT_EQ(errorOf([](ModelConfig &config) {
              for (LayerConfig &layer : config.layerConfigs)
                layer.rope->truncate = true;
            }),
            "a GGUF file cannot say that yarn's bounds are whole numbers "
            "('truncate')");
}

TEST(ConvertExperts, WarnsOfExpertsThatOtherReadersDoNotRead) {
  auto problemsOf = [](const char *name, auto change) {
    ModelConfig config = openSource(kGolden + name).config;
    change(config);
    return listReaderProblems(config);
  };
  using Lines = std::vector<std::string>;
  for (const char *name :
       {"mixtral", "qwen2-moe", "qwen3-moe", "granitemoe", "olmoe"})
    EXPECT_EQ(problemsOf(name, [](ModelConfig &) {}), Lines()) << name;
  EXPECT_EQ(
      problemsOf("mixtral",
                 [](ModelConfig &config) { config.experts.count = 1025; }),
      Lines{"llama.cpp will not load the file: llama.expert_count is "
            "1025, of which it takes 1024"});
  // That of yarn_beta_fast is the golden model's own.
  const Lines lines = problemsOf("gpt-oss", [](ModelConfig &config) {
    config.attentionOutputBias = false;
  });
  EXPECT_EQ(
      lines,
      (Lines{"llama.cpp will not load the file: its gpt-oss has always "
             "biases of the attention's output (such as "
             "blk.0.attn_output.bias)",
             "llama.cpp will not heed gpt-oss.rope.scaling.yarn_beta_fast "
             "and yarn_beta_slow: its results are not the model's",
             "llama.cpp rounds yarn's bounds to whole numbers: its "
             "results are not quite the model's"}));
  for (const char *name : {"qwen2-moe", "olmoe"}) {
    const Lines lines = problemsOf(
        name, [](ModelConfig &config) { config.tiedEmbeddings = true; });
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_TRUE(lines[0].ends_with(
        "has always an output matrix of its own (output.weight)"));
  }
}

} // namespace
