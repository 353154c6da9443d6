//===- StoredTensorsTest.cpp - How checkpoints hold a model's tensors -----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/StoredTensors.h"

#include "ConfigTesting.h"
#include "test/runtime/io/MemoryTensors.h"

#include "runtime/io/Safetensors.h"
#include "runtime/io/ScaledWeights.h"
#include "runtime/model/TensorList.h"
#include "runtime/weights/RowScales.h"

using namespace kf;
using namespace kf::test;

namespace {

/// Phi-3 with two layers of 2 query heads, 1 of keys, and 4 elements each.
ModelConfig smallPhi3() {
  return parse({{"model_type", "phi3"},
                {"hidden_size", 8},
                {"num_hidden_layers", 2},
                {"num_attention_heads", 2},
                {"num_key_value_heads", 1},
                {"intermediate_size", 6},
                {"vocab_size", 10}})
      .take();
}

/// Its checkpoint, with matrices of layers in 8 bits: row i of one counts i.
MemoryTensors phi3Tensors(const std::string &prefix) {
  MemoryTensors tensors;
  auto add = [&](const std::string &name, int64_t rows, int64_t columns) {
    std::vector<float> scales;
    for (int64_t i = 0; i < rows; ++i)
      scales.push_back(static_cast<float>(i));
    tensors.add(name, DataType::F8E4M3, {rows, columns},
                std::string(static_cast<size_t>(rows * columns), '\x38'));
    tensors.add(scaleName(name), {rows, 1}, scales);
  };
  auto addPlain = [&](const std::string &name, std::vector<int64_t> shape) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    tensors.add(name, std::move(shape),
                std::vector<float>(static_cast<size_t>(count), 1));
  };
  addPlain(prefix + "embed_tokens.weight", {10, 8});
  for (const char *layer : {"layers.0.", "layers.1."}) {
    const std::string at = prefix + layer;
    addPlain(at + "input_layernorm.weight", {8});
    addPlain(at + "post_attention_layernorm.weight", {8});
    add(at + "self_attn.qkv_proj.weight", 16, 8);
    add(at + "self_attn.o_proj.weight", 8, 8);
    add(at + "mlp.gate_up_proj.weight", 12, 8);
    add(at + "mlp.down_proj.weight", 8, 6);
  }
  addPlain(prefix + "norm.weight", {8});
  addPlain("lm_head.weight", {10, 8});
  return tensors;
}

std::unique_ptr<WeightSource> scaled(const MemoryTensors &tensors) {
  return ScaledWeights::create(std::make_unique<MemoryTensors>(tensors)).take();
}

/// The first element of a tensor of f32.
float firstOf(const WeightSource &source, const std::string &name) {
  auto view = source.find(name);
  EXPECT_TRUE(view.ok()) << view.message();
  return view.ok() ? *static_cast<const float *>(view->data) : -1;
}

/// With the prefix and, as checkpoints of the bare model have them, without.
TEST(StoredTensors, JoinedRows) {
  const ModelConfig config = smallPhi3();
  for (const std::string prefix : {"model.", ""}) {
    SCOPED_TRACE(prefix);
    std::unique_ptr<WeightSource> weights = scaled(phi3Tensors(prefix));
    Status status = adaptStoredTensors(config, weights);
    ASSERT_TRUE(status.ok()) << status.message();
    auto found = findTensors(config, *weights);
    ASSERT_TRUE(found.ok()) << found.message();
    const std::string layer = prefix + "layers.1.";
    auto key = weights->find(layer + "self_attn.k_proj.weight");
    ASSERT_TRUE(key.ok()) << key.message();
    EXPECT_EQ(key->shape, (std::vector<int64_t>{4, 8}));
    EXPECT_EQ(*static_cast<const uint16_t *>(key->data), 0x4100); // 8 of bf16
  }
}

/// Scales of a cache, under the names of modelopt and of compressed-tensors,
/// are passed over where the configuration speaks of one.
TEST(StoredTensors, ScalesOfCaches) {
  ModelConfig config = parse(smallLlama()).take();
  for (const char *name : {"k_proj.k_scale", "v_proj.v_scale", "k_scale",
                           "v_scale", "q_scale", "k_proj.k_zero_point"}) {
    MemoryTensors tensors;
    for (const ListedTensor &tensor : listTensors(config))
      tensors.add(
          tensor.name, DataType::F32, tensor.shape,
          std::string(*checkedByteCount(DataType::F32, tensor.shape), '\0'));
    const std::string scale = "model.layers.3.self_attn." + std::string(name);
    tensors.add(scale, {1}, {0.5f});
    const std::string error =
        "checkpoint tensor '" + scale +
        "' is not part of the model that the configuration describes";
    config.hasCacheScales = false;
    EXPECT_EQ(findTensors(config, tensors).status().message(), error);
    config.hasCacheScales = true;
    EXPECT_EQ(findTensors(config, tensors).status().message(),
              scale.ends_with("q_scale") || scale.ends_with("point") ? error
                                                                     : "");
  }
}

/// Those that are stored in 8 bits stay so, each with the factors of its rows.
TEST(StoredTensors, JoinedRowsInEightBits) {
  const ModelConfig config = smallPhi3();
  std::unique_ptr<WeightSource> weights = scaled(phi3Tensors("model."));
  ASSERT_TRUE(adaptStoredTensors(config, weights).ok());
  auto kept = keepFloat8(config, *weights);
  ASSERT_TRUE(kept.ok()) << kept.message();
  EXPECT_EQ(*kept, 2 * 7);
  const std::string layer = "model.layers.1.";
  for (const auto &[name, firstRow] :
       std::initializer_list<std::pair<const char *, float>>{
           {"self_attn.q_proj.weight", 0},
           {"self_attn.k_proj.weight", 8},
           {"self_attn.v_proj.weight", 12},
           {"mlp.gate_proj.weight", 0},
           {"mlp.up_proj.weight", 6},
           {"mlp.down_proj.weight", 0}}) {
    EXPECT_EQ(weights->describe(layer + name)->type, DataType::F8E4M3) << name;
    EXPECT_EQ(firstOf(*weights, scaleName(layer + name)), firstRow) << name;
  }
  EXPECT_TRUE(findTensors(config, *weights).ok());
}

TEST(StoredTensors, JoinedRowsOfAnotherModel) {
  ModelConfig config = smallPhi3();
  config.intermediateSize = 7;
  std::unique_ptr<WeightSource> weights = scaled(phi3Tensors("model."));
  EXPECT_EQ(adaptStoredTensors(config, weights).message(),
            "checkpoint tensor 'model.layers.0.mlp.gate_up_proj.weight' has 12 "
            "rows, but the configuration implies 14");
  config = smallPhi3();
  config.layers = 3;
  weights = scaled(phi3Tensors("model."));
  EXPECT_EQ(adaptStoredTensors(config, weights).message(),
            "no tensor 'model.layers.2.self_attn.qkv_proj.weight'");
}

/// Layers that keep states, of a language model in another one's checkpoint,
/// beside layers that predict several tokens.
TEST(StoredTensors, States) {
  for (const char *model : {"qwen3-next", "qwen3-5"}) {
    SCOPED_TRACE(model);
    const ModelConfig config = golden(model).take();
    auto file =
        openSafetensors(KF_SOURCE_DIR "/test/golden/" + std::string(model));
    ASSERT_TRUE(file.ok()) << file.message();
    std::unique_ptr<WeightSource> weights = file.take();
    ASSERT_TRUE(adaptStoredTensors(config, weights).ok());
    EXPECT_EQ(findTensors(config, *weights).status().message(), "");
  }
  const ModelConfig config = golden("qwen3-5").take();
  ModelConfig withoutStates = config;
  withoutStates.linear = {};
  for (LayerConfig &layer : withoutStates.layerConfigs)
    layer.isLinear = false;
  for (const ModelConfig &each : {config, withoutStates}) {
    auto tensors = std::make_unique<MemoryTensors>();
    for (const ListedTensor &tensor : listTensors(each)) {
      std::string name = tensor.name;
      if (name.starts_with("model."))
        name = "model.language_model." + name.substr(6);
      tensors->add(name, tensor.shape,
                   std::vector<float>(static_cast<size_t>(
                       *checkedElementCount(tensor.shape))));
    }
    tensors->add("mtp.fc.weight", {1}, {1.0f});
    tensors->add("model.visual.patch_embed.proj.weight", {1}, {1.0f});
    std::unique_ptr<WeightSource> weights = std::move(tensors);
    ASSERT_TRUE(adaptStoredTensors(each, weights).ok());
    EXPECT_EQ(findTensors(each, *weights).status().message(), "");
  }
}

/// Gemma 4's experts are in two stacks, whose names say nothing behind them,
/// and so are the other tensors of its routers. Files have keys of layers that
/// attend to others'. Llama 4's stacks are transposed.
TEST(StoredTensors, StacksAndSharedKeys) {
  for (const char *model :
       {"gemma3n", "gemma4-moe", "gemma4-shared-kv", "llama4", "deepseek-v3"}) {
    SCOPED_TRACE(model);
    const ModelConfig config = golden(model).take();
    auto file =
        openSafetensors(KF_SOURCE_DIR "/test/golden/" + std::string(model));
    ASSERT_TRUE(file.ok()) << file.message();
    std::unique_ptr<WeightSource> weights = file.take();
    ASSERT_TRUE(adaptStoredTensors(config, weights).ok());
    EXPECT_EQ(findTensors(config, *weights).status().message(), "");
  }
  const ModelConfig config = golden("gemma4-shared-kv").take();
  MemoryTensors tensors;
  for (const ListedTensor &tensor : listTensors(config))
    tensors.add(tensor.name, tensor.shape,
                std::vector<float>(
                    static_cast<size_t>(*checkedElementCount(tensor.shape))));
  for (const char *part : {"k_proj", "v_proj", "k_norm"})
    tensors.add("model.layers.3.self_attn." + std::string(part) + ".weight",
                {8}, std::vector<float>(8));
  EXPECT_EQ(findTensors(config, tensors).status().message(), "");
  MemoryTensors others = tensors;
  others.add("model.layers.3.self_attn.k_proj.other", {1}, {1.0f});
  EXPECT_NE(findTensors(config, others).status().message().find("k_proj.other"),
            std::string::npos);
  tensors.add("model.layers.3.self_attn.z_proj.weight", {1}, {1.0f});
  EXPECT_NE(findTensors(config, tensors).message().find("z_proj"),
            std::string::npos);
}

/// DeepSeek's files have layers behind the last one, as many as they say.
TEST(StoredTensors, LayersThatGuessTokens) {
  ModelConfig config = golden("deepseek-v3").take();
  MemoryTensors tensors;
  for (const ListedTensor &tensor : listTensors(config))
    tensors.add(tensor.name, tensor.storedShape(),
                std::vector<float>(
                    static_cast<size_t>(*checkedElementCount(tensor.shape))));
  tensors.add("model.layers.3.eh_proj.weight", {1}, {1.0f});
  EXPECT_NE(findTensors(config, tensors).message().find("eh_proj"),
            std::string::npos);
  config.guessingLayers = 1;
  EXPECT_EQ(findTensors(config, tensors).status().message(), "");
  tensors.add("model.layers.4.eh_proj.weight", {1}, {1.0f});
  EXPECT_NE(findTensors(config, tensors).message().find("layers.4"),
            std::string::npos);
}

/// GraniteMoe's experts are in two stacks: byte for byte, with the prefix and
/// without.
TEST(StoredTensors, StackedExperts) {
  ModelConfig config = golden("granitemoe").take();
  for (const std::string prefix : {"model.", ""}) {
    SCOPED_TRACE(prefix);
    auto stacks = openSafetensors(KF_SOURCE_DIR "/test/golden/granitemoe");
    ASSERT_TRUE(stacks.ok()) << stacks.message();
    MemoryTensors tensors;
    for (const std::string &name : (*stacks)->names()) {
      const TensorView view = *(*stacks)->find(name);
      tensors.add(
          prefix + name.substr(std::string("model.").size()), view.type,
          view.shape,
          std::string(static_cast<const char *>(view.data), view.bytes));
    }
    std::unique_ptr<WeightSource> weights =
        std::make_unique<MemoryTensors>(tensors);
    const Status status = adaptStoredTensors(config, weights);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(findTensors(config, *weights).ok());
    const std::string layer = prefix + "layers.2.block_sparse_moe.";
    auto bytesOf = [](const TensorView &view) {
      return std::string(static_cast<const char *>(view.data), view.bytes);
    };
    std::string inputs, outputs;
    for (int64_t i = 0; i < config.experts.count; ++i) {
      const std::string expert = layer + "experts." + std::to_string(i) + ".";
      for (const char *part : {"w1", "w3"}) {
        auto view = weights->find(expert + part + ".weight");
        ASSERT_TRUE(view.ok()) << view.message();
        EXPECT_EQ(view->shape, (std::vector<int64_t>{20, 32}));
        inputs += bytesOf(*view);
      }
      auto down = weights->find(expert + "w2.weight");
      ASSERT_TRUE(down.ok()) << down.message();
      EXPECT_EQ(down->shape, (std::vector<int64_t>{32, 20}));
      outputs += bytesOf(*down);
    }
    EXPECT_EQ(inputs, bytesOf(*tensors.find(layer + "input_linear.weight")));
    EXPECT_EQ(outputs, bytesOf(*tensors.find(layer + "output_linear.weight")));

    ModelConfig wider = config;
    wider.experts.width = 21;
    weights = std::make_unique<MemoryTensors>(tensors);
    EXPECT_EQ(adaptStoredTensors(wider, weights).message(),
              "checkpoint tensor '" + prefix +
                  "layers.0.block_sparse_moe.input_linear.weight' has shape "
                  "[4, 40, 32], but the configuration implies [4, 42, 32]");
  }
}

/// Qwen2-MoE of one layer, 2 of 3 experts and a shared one, in a GGUF file.
ModelConfig ggufExperts() {
  ModelConfig config = golden("qwen2-moe").take();
  config.naming = TensorNaming::Gguf;
  config.layers = 1;
  config.layerConfigs.resize(1);
  config.hiddenSize = 8;
  config.headDim = 2;
  config.experts.count = 3;
  config.experts.width = 4;
  config.experts.sharedWidth = 6;
  return config;
}

/// The tensors that such files have; `isOlder`: an expert's apart.
MemoryTensors ggufExpertTensors(bool isOlder) {
  MemoryTensors tensors;
  auto add = [&](const std::string &name, std::vector<int64_t> shape,
                 float first = 0) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values)
      value = first++;
    tensors.add("blk.0." + name + ".weight", std::move(shape), values);
  };
  for (auto [part, rows, columns] :
       {std::tuple("ffn_gate", 4, 8), std::tuple("ffn_up", 4, 8),
        std::tuple("ffn_down", 8, 4)}) {
    if (!isOlder)
      add(std::string(part) + "_exps", {3, rows, columns});
    for (int i = 0; isOlder && i < 3; ++i)
      add(std::string(part) + "." + std::to_string(i), {rows, columns},
          static_cast<float>(i * rows * columns));
    add(std::string(part) + "_shexp",
        rows == 4 ? std::vector<int64_t>{6, 8} : std::vector<int64_t>{8, 6});
  }
  add("ffn_gate_inp", {3, 8});
  add("ffn_gate_inp_shexp",
      isOlder ? std::vector<int64_t>{8} : std::vector<int64_t>{1, 8});
  return tensors;
}

/// Experts of GGUF files are in stacks, in older ones apart: the same either
/// way, as the weight of the shared expert is that may be a vector.
TEST(StoredTensors, GgufExperts) {
  for (const bool isOlder : {false, true}) {
    SCOPED_TRACE(isOlder);
    std::unique_ptr<WeightSource> weights =
        std::make_unique<MemoryTensors>(ggufExpertTensors(isOlder));
    const Status status = adaptStoredTensors(ggufExperts(), weights);
    ASSERT_TRUE(status.ok()) << status.message();
    int found = 0;
    for (const ListedTensor &tensor : listTensors(ggufExperts())) {
      if (tensor.name.find(".ffn_") == std::string::npos ||
          tensor.role == ListedTensor::Role::NormWeight)
        continue;
      auto view = weights->find(tensor.name);
      ASSERT_TRUE(view.ok()) << view.message();
      EXPECT_EQ(view->shape, tensor.shape) << tensor.name;
      ++found;
    }
    EXPECT_EQ(found, 3 * 3 + 3 + 2);
    for (auto [name, first] :
         {std::pair("ffn_gate.0", 0), std::pair("ffn_up.2", 64),
          std::pair("ffn_down.1", 32)})
      EXPECT_EQ(
          *static_cast<const float *>(
              weights->find("blk.0." + std::string(name) + ".weight")->data),
          static_cast<float>(first))
          << name;
  }
}

TEST(StoredTensors, GgufExpertsThatAreOthers) {
  auto errorOf = [](const std::string &name, std::vector<int64_t> shape,
                    size_t count) {
    MemoryTensors tensors = ggufExpertTensors(/*isOlder=*/false);
    tensors.add(name, std::move(shape), std::vector<float>(count));
    std::unique_ptr<WeightSource> weights =
        std::make_unique<MemoryTensors>(std::move(tensors));
    return adaptStoredTensors(ggufExperts(), weights).message();
  };
  // As many rows as there should be, of other matrices.
  EXPECT_EQ(errorOf("blk.0.ffn_up_exps.weight", {4, 3, 8}, 96),
            "checkpoint tensor 'blk.0.ffn_up_exps.weight' has shape "
            "[4, 3, 8], but the configuration implies [3, 4, 8]");
  EXPECT_EQ(errorOf("blk.0.ffn_down_exps.weight", {24, 4}, 96),
            "checkpoint tensor 'blk.0.ffn_down_exps.weight' has shape "
            "[24, 4], but the configuration implies [3, 8, 4]");
  ModelConfig two = ggufExperts();
  two.layers = 2;
  two.layerConfigs.resize(2, two.layerConfigs[0]);
  std::unique_ptr<WeightSource> weights =
      std::make_unique<MemoryTensors>(ggufExpertTensors(/*isOlder=*/false));
  EXPECT_EQ(adaptStoredTensors(two, weights).message(),
            "no tensor 'blk.1.ffn_gate_exps.weight'");
}

/// gpt-oss' experts are in stacks of rows in turns, of floats and of blocks:
/// with the prefix and without.
TEST(StoredTensors, ExpertsInTurns) {
  for (const char *model : {"gpt-oss", "gpt-oss-mxfp4"})
    for (const std::string prefix : {"model.", ""}) {
      SCOPED_TRACE(prefix + model);
      ModelConfig config = golden(model).take();
      auto stored =
          openSafetensors(std::string(KF_SOURCE_DIR "/test/golden/") + model);
      ASSERT_TRUE(stored.ok()) << stored.message();
      MemoryTensors tensors;
      for (const std::string &name : (*stored)->names()) {
        const TensorView view = *(*stored)->find(name);
        const bool isInside = name.starts_with("model.");
        tensors.add(
            isInside ? prefix + name.substr(6) : name, view.type, view.shape,
            std::string(static_cast<const char *>(view.data), view.bytes));
      }
      std::unique_ptr<WeightSource> weights =
          std::make_unique<MemoryTensors>(tensors);
      const Status status = adaptStoredTensors(config, weights);
      ASSERT_TRUE(status.ok()) << status.message();
      auto found = findTensors(config, *weights);
      ASSERT_TRUE(found.ok()) << found.message();
      const std::string at = prefix + "layers.2.mlp.experts.3.";
      EXPECT_EQ(weights->describe(at + "up_proj.weight")->type,
                model == std::string("gpt-oss") ? DataType::BF16
                                                : DataType::MXFP4);
      EXPECT_EQ(weights->describe(at + "down_proj.bias")->shape,
                std::vector<int64_t>{32});

      config.experts.count = 5;
      weights = std::make_unique<MemoryTensors>(tensors);
      expectContains(adaptStoredTensors(config, weights).message(),
                     "but the configuration implies [5, ");
    }
}

/// Llama 4's, whose experts are in stacks, beside what reads images.
TEST(StoredTensors, Llama4InsideAnother) {
  const ModelConfig config = golden("llama4").take();
  auto file = openSafetensors(KF_SOURCE_DIR "/test/golden/llama4");
  ASSERT_TRUE(file.ok()) << file.message();
  MemoryTensors tensors;
  for (const std::string &name : (*file)->names()) {
    const TensorView view = *(*file)->find(name);
    tensors.add("language_model." + name, view.type, view.shape,
                std::string(static_cast<const char *>(view.data), view.bytes));
  }
  tensors.add("vision_model.class_embedding", {1}, {1.0f});
  tensors.add("multi_modal_projector.linear_1.weight", {1}, {1.0f});
  std::unique_ptr<WeightSource> weights =
      std::make_unique<MemoryTensors>(tensors);
  EXPECT_EQ(adaptStoredTensors(config, weights).message(), "");
  EXPECT_EQ(findTensors(config, *weights).status().message(), "");
}

/// The language model of one that reads images, in 8 bits.
TEST(StoredTensors, LanguageModelInEightBits) {
  ModelConfig config = golden("gemma3").take();
  MemoryTensors tensors;
  for (const ListedTensor &tensor : listTensors(config)) {
    // Of transformers 4: "language_model.model.layers...".
    size_t count = 1;
    for (int64_t size : tensor.shape)
      count *= static_cast<size_t>(size);
    const std::string name = "language_model." + tensor.name;
    if (!isFactor(tensor)) {
      tensors.add(name, tensor.shape, std::vector<float>(count, 1));
      continue;
    }
    tensors.add(name, DataType::F8E4M3, tensor.shape,
                std::string(count, '\x38'));
    tensors.add(scaleName(name), {}, {2});
  }
  tensors.add("vision_tower.weight", {1}, {1});
  std::unique_ptr<WeightSource> weights = scaled(tensors);
  ASSERT_TRUE(adaptStoredTensors(config, weights).ok());
  auto kept = keepFloat8(config, *weights);
  ASSERT_TRUE(kept.ok()) << kept.message();
  EXPECT_EQ(*kept, 7 * config.layers);
  EXPECT_EQ(firstOf(*weights, scaleName("model.layers.0.mlp.up_proj.weight")),
            2);
}

/// Of latent attention, the matrix of all heads' keys and values is in 8 bits,
/// and what each head has of it is not: heads' rows are multiplied like those
/// of experts.
TEST(StoredTensors, LatentAttentionInEightBits) {
  const ModelConfig config = golden("deepseek-v3").take();
  MemoryTensors tensors;
  for (const ListedTensor &tensor : listTensors(config)) {
    const size_t count =
        static_cast<size_t>(*checkedElementCount(tensor.shape));
    if (tensor.ofHead)
      continue;
    if (!isFactor(tensor)) {
      tensors.add(tensor.name, tensor.storedShape(), std::vector<float>(count));
      continue;
    }
    tensors.add(tensor.name, DataType::F8E4M3, tensor.shape,
                std::string(count, '\x38'));
    tensors.add(scaleName(tensor.name), {}, {2});
  }
  auto inLayer = [](int64_t layer, const std::string &name) {
    return "model.layers." + std::to_string(layer) + ".self_attn." + name;
  };
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string name = inLayer(i, "kv_b_proj.weight");
    tensors.add(name, DataType::F8E4M3, {4 * (8 + 12), 12},
                std::string(4 * (8 + 12) * 12, '\x38'));
    tensors.add(scaleName(name), {}, {2});
  }
  std::unique_ptr<WeightSource> weights = scaled(tensors);
  ASSERT_TRUE(adaptStoredTensors(config, weights).ok());
  auto kept = keepFloat8(config, *weights);
  ASSERT_TRUE(kept.ok()) << kept.message();
  // Four of attention; the block of the first layer, or the expert that all
  // rows of the others go through; and the output's.
  EXPECT_EQ(*kept, 3 * (4 + 3) + 1);
  auto typeOf = [&](const std::string &name) {
    auto view = weights->describe(inLayer(1, name));
    EXPECT_TRUE(view.ok()) << view.message();
    return view.ok() ? view->type : DataType::I32;
  };
  EXPECT_EQ(typeOf("q_b_proj.weight"), DataType::F8E4M3);
  EXPECT_EQ(typeOf("kv_b_proj.3.keys.weight"), DataType::BF16);
  EXPECT_EQ(typeOf("kv_b_proj.3.values.weight"), DataType::BF16);
}

} // namespace
