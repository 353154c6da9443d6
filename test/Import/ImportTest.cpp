//===- ImportTest.cpp - Steps of every architecture -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Import/Import.h"

#include "kf/Dialect/KF/IR/KF.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "runtime/io/Gguf.h"
#include "runtime/io/Safetensors.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/LoraConfig.h"
#include "runtime/model/TensorList.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <tuple>

using namespace mlir;
using namespace mlir::kf;
using ::kf::DataType;
using ::kf::ModelConfig;
using ::kf::StepPart;
using ::kf::StepShape;

namespace {

/// Tensors by name, without data.
class FakeSource : public ::kf::WeightSource {
public:
  ::kf::Result<::kf::TensorView> find(const std::string &name) const override {
    auto it = tensors.find(name);
    if (it == tensors.end())
      return ::kf::Status::error("there is no tensor '" + name + "'");
    return it->second;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto &[name, view] : tensors)
      result.push_back(name);
    return result;
  }

  std::map<std::string, ::kf::TensorView> tensors;
};

struct Model {
  ModelConfig config;
  FakeSource source;
};

/// The configuration and the tensors' shapes of a folder of the checkout.
Model load(const std::string &folder) {
  const std::string path = KF_SOURCE_DIR "/" + folder;
  auto config = ::kf::loadModelConfig(path);
  auto file = ::kf::openSafetensors(path);
  EXPECT_TRUE(config.ok() && file.ok()) << config.message() << file.message();
  Model model;
  if (!config.ok() || !file.ok())
    return model;
  model.config = *config;
  for (const std::string &name : (*file)->names()) {
    ::kf::TensorView view = *(*file)->find(name);
    view.data = nullptr;
    model.source.tensors[name] = view;
  }
  return model;
}

Model golden(const std::string &name) { return load("test/golden/" + name); }

/// The module's text, or the error.
std::string import(const Model &model, const StepShape &shape,
                   ImportOptions options = {}) {
  options.shape = shape;
  MLIRContext context;
  auto module = importStep(context, model.config, model.source, options);
  if (!module)
    return llvm::toString(module.takeError());
  EXPECT_TRUE(succeeded(verify(**module)));
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream);
  return text;
}

/// The body and the head of a step of one token, or the error.
std::string decode(const Model &model) {
  const std::string body = import(model, {StepPart::Body, 1});
  return body.find("func.func") == std::string::npos
             ? body
             : body + import(model, {StepPart::Head, 1});
}

size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++count;
  return count;
}

void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "no '" << part << "' in: " << text;
}

/// The configuration and the tensors' shapes of a GGUF file of the checkout.
Model loadGguf(const std::string &file) {
  auto gguf = ::kf::Gguf::open(KF_SOURCE_DIR "/" + file);
  EXPECT_TRUE(gguf.ok()) << gguf.message();
  Model model;
  auto config = ::kf::readGgufConfig(**gguf);
  EXPECT_TRUE(config.ok()) << config.message();
  model.config = *config;
  for (const std::string &name : (*gguf)->names()) {
    ::kf::TensorView view = *(*gguf)->find(name);
    view.data = nullptr;
    model.source.tensors[name] = view;
  }
  return model;
}

//===----------------------------------------------------------------------===//
// Shape of a step
//===----------------------------------------------------------------------===//

TEST(Import, EveryModelAndStepVerifies) {
  for (const char *folder :
       {"test/golden/llama2-mha", "test/golden/llama3-gqa-scaled",
        "test/golden/llama-wide-head", "test/golden/llama-bias",
        "test/golden/mistral-window", "test/golden/qwen2-bias",
        "test/golden/qwen3-qknorm", "test/golden/gpt2-layernorm",
        "models/kf-stories"}) {
    SCOPED_TRACE(folder);
    Model model = load(folder);
    const std::string layers = std::to_string(model.config.layers);
    std::string step = decode(model);
    expectContains(step, "func.func @body_1(");
    expectContains(step, "func.func @head_1(");
    EXPECT_EQ(countOf(step, "kf.attention"),
              static_cast<size_t>(model.config.layers));
    for (int64_t rows : {1, 16, 512}) {
      const std::string body = import(model, {StepPart::Body, rows}),
                        head = import(model, {StepPart::Head, rows}),
                        choose = import(model, {StepPart::Choose, rows});
      for (const std::string &part : {body, head, choose})
        expectContains(part,
                       "kf.max_tokens = " + std::to_string(rows) + " : i64");
      EXPECT_EQ(countOf(body, "kf.matmul") + 1, countOf(step, "kf.matmul"));
      EXPECT_EQ(countOf(head, "kf.matmul"), 1u);
      EXPECT_EQ(countOf(choose, "kf.sample"), 1u);
      EXPECT_EQ(countOf(head + choose, "kv_cache"), 0u);
    }
  }
}

// Products read weights in 8 bits with a factor for each row.
TEST(Import, MatricesInEightBits) {
  Model model = golden("llama2-mha");
  const std::string key = "model.layers.1.mlp.up_proj.weight";
  model.source.tensors.at(key).type = DataType::F8E4M3;
  model.source.tensors.at("lm_head.weight").type = DataType::F8E4M3;
  const std::string step = decode(model);
  EXPECT_EQ(countOf(step, "f8E4M3FN"), 4u) << step;
  EXPECT_EQ(countOf(step, "weight_scales("), 2u);
  expectContains(step, "kf.weight [\"" + key + "_scale\"] : tensor<172xf32>");
  expectContains(step, "kf.weight [\"lm_head.weight_scale\"]");
  // The other layer's is as before.
  EXPECT_EQ(countOf(step, "kf.mlp"), 1u);
  EXPECT_EQ(countOf(step, "kf.activation(silu)"), 1u);
  const std::string table = "model.embed_tokens.weight";
  model.source.tensors.at(table).type = DataType::F8E4M3;
  EXPECT_EQ(decode(model), "checkpoint tensor '" + table +
                               "' has type f8E4M3FN; f32, f16 and "
                               "bf16 are supported and block formats");
}

TEST(Import, SignaturesAreWhatStepSays) {
  Model model = load("models/kf-stories");
  ImportOptions options;
  options.keyBlock = 16;
  const std::string cache = "!kf.kv_cache<layers = 8, kv_heads = 2, "
                            "head_dim = 64, type = f32, key_block = 16>";
  expectContains(
      import(model, {StepPart::Body, 1}, options),
      "@body_1(%arg0: tensor<1xi32>, %arg1: tensor<1xi32>, %arg2: "
      "tensor<1xi32>, %arg3: tensor<1x16xi32>, %arg4: " +
          cache +
          ") -> tensor<1x256xf32> attributes {kf.max_tokens = 1 : i64}");
  expectContains(
      import(model, {StepPart::Body, 512}, options),
      "@body_512(%arg0: tensor<?xi32>, %arg1: tensor<?xi32>, %arg2: "
      "tensor<?xi32>, %arg3: tensor<?x16xi32, #kf.size<sequences>>, %arg4: " +
          cache +
          ") -> tensor<?x256xf32> attributes {kf.max_tokens = 512 : i64, "
          "kf.size_ranges = "
          "[#kf.size_range<sequences, least = 1, most = 512>]}");
  const std::string hidden = "tensor<?x256xf32, #kf.size<rows>>",
                    rows = "kf.size_ranges = [#kf.size_range<rows, least = 1, "
                           "most = 8192>]}";
  expectContains(import(model, {StepPart::Head, 1}, options),
                 "@head_1(%arg0: " + hidden +
                     ", %arg1: tensor<1xi32>) -> tensor<1x1477xf32> attributes "
                     "{kf.max_tokens = 1 : i64, " +
                     rows);
  expectContains(import(model, {StepPart::Head, 16}, options),
                 "@head_16(%arg0: " + hidden +
                     ", %arg1: tensor<?xi32>) -> tensor<?x1477xf32> attributes "
                     "{kf.max_tokens = 16 : i64, " +
                     rows);
  const std::string embed = import(model, {StepPart::Embed, 16}, options);
  expectContains(embed, "@embed_16(%arg0: " + hidden +
                            ", %arg1: tensor<?xi32>) -> tensor<?x256xf32> "
                            "attributes {kf.max_tokens = 16 : i64, " +
                            rows);
  expectContains(embed, "kf.rms_norm");
  EXPECT_EQ(countOf(embed, "kf.matmul"), 0);
  const std::string ints = "tensor<?xi32>", reals = "tensor<?xf32>",
                    lists = "tensor<?xi32, #kf.size<adjustments>>";
  expectContains(
      import(model, {StepPart::Choose, 16}, options),
      "@choose_16(%arg0: tensor<?x1477xf32>, %arg1: " + reals +
          ", %arg2: " + ints + ", %arg3: " + reals + ", %arg4: " + reals +
          ", %arg5: tensor<?xi64>, %arg6: " + ints + ", %arg7: " + ints +
          ", %arg8: " + ints + ", %arg9: " + lists + ", %arg10: " + lists +
          ", %arg11: tensor<?xf32, #kf.size<adjustments>>, %arg12: " + reals +
          ", %arg13: " + reals + ", %arg14: " + reals + ", %arg15: " + ints +
          ", %arg16: tensor<?x47xi32, #kf.size<masks>>) -> " + ints +
          " attributes {kf.max_tokens = 16 : i64, kf.size_ranges = "
          "[#kf.size_range<adjustments, most = 23632>, "
          "#kf.size_range<masks, most = 16>]}");
  options.cacheType = DataType::BF16;
  expectContains(import(model, {}, options), "type = bf16");
}

TEST(Import, ActivationsHaveATypeOfTheirOwn) {
  ImportOptions options;
  options.activationType = DataType::F16;
  for (const char *name : {"llama2-mha", "gpt2-layernorm"}) {
    std::string step = import(golden(name), {StepPart::Body, 16}, options);
    expectContains(step, "f32> to tensor<?x64xf16>");
    expectContains(step, "x16xf16>");
    // What the body gives, and what follows, is f32 again.
    expectContains(step, "arith.extf");
    expectContains(step, "-> tensor<?x64xf32> attributes");
    const std::string head = import(golden(name), {StepPart::Head, 4}, options);
    expectContains(head, ": tensor<?x64xf32>, tensor<307x64");
    EXPECT_EQ(countOf(head, "f16"), 0u);
    EXPECT_EQ(countOf(step, "kf.kv_append"), countOf(step, "kf.attention"));
  }
}

/// Of what a block gives, the product with the scale is rounded, and not the
/// scale: 0.22 is none of bf16, and 1e-8 would be 0 of f16.
TEST(Import, ScalesMultiplyInF32) {
  Model model = golden("granite");
  ImportOptions options;
  for (auto [type, name, scale, spelled] : std::initializer_list<
           std::tuple<DataType, const char *, double, const char *>>{
           {DataType::BF16, "bf16", 0.22, "2.200000e-01"},
           {DataType::F16, "f16", 1e-8, "9.99999993E-9"}}) {
    options.activationType = type;
    model.config.residualScale = scale;
    const std::string step = import(model, {StepPart::Body, 16}, options);
    EXPECT_EQ(
        countOf(step, "dense<" + std::string(spelled) + "> : tensor<1x1xf32>"),
        2u * static_cast<size_t>(model.config.layers))
        << step;
    EXPECT_EQ(countOf(step, std::string("x1x") + name), 0u);
  }
}

TEST(Import, OneTokenMakesEveryShapeStatic) {
  for (const char *name : {"llama2-mha", "gpt2-layernorm"}) {
    std::string step = import(golden(name), {StepPart::Body, 1});
    EXPECT_EQ(countOf(step, "?"), 0u);
    EXPECT_EQ(countOf(step, "tensor.dim"), 0u);
    EXPECT_EQ(countOf(import(golden(name), {StepPart::Body, 16}), "tensor.dim"),
              1u);
    // Of the head, all but how many rows there are.
    EXPECT_EQ(countOf(import(golden(name), {StepPart::Head, 1}), "?"),
              countOf(import(golden(name), {StepPart::Head, 1}),
                      "tensor<?x64xf32, #kf.size<rows>>"));
  }
}

TEST(Import, WeightsKeepTheirType) {
  std::string step = decode(load("models/kf-stories"));
  expectContains(step, "kf.weight [\"model.layers.7.self_attn.k_proj.weight\"] "
                       ": tensor<128x256xbf16>");
  // Tied: the table is also the output matrix.
  EXPECT_EQ(countOf(step, "kf.weight [\"model.embed_tokens.weight\"] : "
                          "tensor<1477x256xbf16>"),
            2u);
  EXPECT_EQ(countOf(step, "lm_head"), 0u);
}

//===----------------------------------------------------------------------===//
// Architectures
//===----------------------------------------------------------------------===//

TEST(Import, Llama2) {
  std::string step = decode(golden("llama2-mha"));
  EXPECT_EQ(countOf(step, "kf.matmul"), 4u * 2 + 1);
  EXPECT_EQ(countOf(step, "kf.mlp"), 2u);
  EXPECT_EQ(countOf(step, "kf.rms_norm"), 5u);
  EXPECT_EQ(countOf(step, "kf.rope"), 4u);
  EXPECT_EQ(countOf(step, "arith.addf"), 4u);
  EXPECT_EQ(countOf(step, "scaling"), 0u);
  expectContains(step, "scale = 2.500000e-01 : f32");
  expectContains(step, "kf.weight [\"lm_head.weight\"] : tensor<307x64xf32>");
}

TEST(Import, RopeScaling) {
  expectContains(
      decode(golden("llama3-gqa-scaled")),
      "#kf.rope_scaling<llama3, factor = 8.0, low_freq_factor = 1.0, "
      "high_freq_factor = 4.0, original_context = 64>");
  expectContains(decode(golden("llama-wide-head")),
                 "#kf.rope_scaling<linear, factor = 2.0>");
}

TEST(Import, HeadDimensionOfItsOwn) {
  std::string step = decode(golden("llama-wide-head"));
  expectContains(step, "tensor<1x160xf32> into tensor<1x4x40xf32>");
  expectContains(step, "tensor<1x4x40xf32> into tensor<1x160xf32>");
}

TEST(Import, Biases) {
  std::string step = decode(golden("llama-bias"));
  EXPECT_EQ(countOf(step, " bias("), 4u * 2);
  EXPECT_EQ(countOf(step, "gate_bias("), 2u);
  std::string qwen = decode(golden("qwen2-bias"));
  EXPECT_EQ(countOf(qwen, " bias("), 3u * 2);
  EXPECT_EQ(countOf(qwen, "gate_bias("), 0u);
}

/// x + attention(norm(x)) + mlp(norm(x)), by one norm a layer.
TEST(Import, StableLmsParallelResidual) {
  Model model = golden("stablelm");
  const std::string apart = import(model, {StepPart::Body, 1});
  const auto layers = static_cast<size_t>(model.config.layers);
  EXPECT_EQ(countOf(apart, "kf.layer_norm"), 2 * layers);
  model.config.parallelBlocks = true;
  expectContains(decode(model), "post_attention_layernorm.bias' is not part");
  std::erase_if(model.source.tensors, [](const auto &tensor) {
    return tensor.first.find("post_attention_layernorm") != std::string::npos;
  });
  const std::string step = import(model, {StepPart::Body, 1});
  EXPECT_EQ(countOf(step, "kf.layer_norm"), layers) << step;
  EXPECT_EQ(countOf(step, "arith.addf"), 2 * layers);
  // Products of queries, keys and values read the row that the MLP reads.
  const size_t at = step.find(" = kf.layer_norm");
  ASSERT_NE(at, std::string::npos);
  const size_t start = step.rfind('%', at);
  const std::string row = step.substr(start, at - start);
  EXPECT_EQ(countOf(step, "kf.matmul " + row + ","), 3u) << step;
  EXPECT_EQ(countOf(step, "kf.mlp " + row + " "), 1u) << step;
}

TEST(Import, SlidingWindow) {
  EXPECT_EQ(countOf(decode(golden("mistral-window")), "window = 8 : i64"), 2u);
  Model model = golden("mistral-window");
  model.config.layerConfigs[0].window = 0;
  EXPECT_EQ(countOf(decode(model), "window = 8 : i64"), 1u);
}

/// Layers whose heads have other sizes, and that attend to another one's keys.
TEST(Import, CachesByLayer) {
  Model model;
  model.config = golden("llama3-gqa-scaled").config;
  model.config.layers = 4;
  model.config.layerConfigs.resize(4, model.config.layerConfigs.front());
  for (size_t layer : {1, 3}) {
    model.config.layerConfigs[layer].headDim = 2 * model.config.headDim;
    model.config.layerConfigs[layer].kvHeads = 1;
    model.config.layerConfigs[layer].intermediateSize = 40;
  }
  model.config.layerConfigs[1].valuesAreKeys = true;
  model.config.layerConfigs[3].keysOf = 1;
  for (const ::kf::ListedTensor &tensor : ::kf::listTensors(model.config))
    model.source.tensors[tensor.name] = {DataType::F32, tensor.shape, nullptr,
                                         0};
  const std::string step = decode(model);
  EXPECT_EQ(countOf(step, "kf.kv_append"), 3u) << step;
  EXPECT_EQ(countOf(step, "kf.attention "), 4u);
  // The second cache has one layer, which two of the model's attend to.
  const std::string small = "layers = 2, kv_heads = 2, head_dim = 16";
  const std::string large = "layers = 1, kv_heads = 1, head_dim = 32";
  expectContains(step, small);
  EXPECT_EQ(countOf(step, large), 4u); // the argument and three ops
  EXPECT_EQ(countOf(step, "layers.1.self_attn.v_proj"), 0u);
  EXPECT_EQ(countOf(step, "layers.3.self_attn.k_proj"), 0u);
  EXPECT_EQ(countOf(step, "layers.3.self_attn.q_proj"), 1u);
  expectContains(step, "layers.3.mlp.up_proj.weight\"] : tensor<40x");
}

TEST(Import, QueryAndKeyNorm) {
  std::string step = decode(golden("qwen3-qknorm"));
  EXPECT_EQ(countOf(step, ": tensor<1x4x32xf32>, tensor<32xf32>"), 2u);
  EXPECT_EQ(countOf(step, ": tensor<1x2x32xf32>, tensor<32xf32>"), 2u);
}

/// The product with the router chooses; of the experts' results, the weighted
/// sum is one of f32, whatever activations are.
TEST(Import, Experts) {
  Model model = golden("qwen3-moe");
  const auto layers = static_cast<size_t>(model.config.layers);
  ImportOptions options;
  options.activationType = DataType::F16;
  const std::string step = import(model, {StepPart::Body, 16}, options);
  EXPECT_EQ(countOf(step, "kf.mlp"), 0u);
  EXPECT_EQ(countOf(step, "kf.matmul"), 5 * layers); // q, k, v, output, router
  EXPECT_EQ(countOf(step, "top(2) normalized : tensor<?x8xf16>"), layers);
  EXPECT_EQ(countOf(step, "glu(silu) : tensor<?x32xf16>, tensor<?x2xi32>, "
                          "tensor<2x8x12x32xbf16>"),
            layers);
  EXPECT_EQ(countOf(step, ": tensor<?x2x12xf16>, tensor<?x2xi32>, "
                          "tensor<1x8x32x12xbf16>"),
            layers);
  EXPECT_EQ(countOf(step, "kf.broadcast %expanded"), layers) << step;
  EXPECT_EQ(countOf(step, "kf.reduce(sum)"), layers);
  EXPECT_EQ(countOf(step, "dims = [1] : tensor<?x2x32xf32>"), layers);
  // All experts' gates, then all of what they multiply.
  std::string names = "kf.weight [";
  for (const char *part : {"gate_proj", "up_proj"})
    for (int i = 0; i < 8; ++i)
      names += std::string(names.ends_with('[') ? "" : ", ") +
               "\"model.layers.1.mlp.experts." + std::to_string(i) + "." +
               part + ".weight\"";
  expectContains(step, names + "] {stacked} : tensor<2x8x12x32xbf16>");
  const std::string one = import(model, {StepPart::Body, 1}, options);
  EXPECT_EQ(countOf(one, "?"), 0u);
  // Softmax over all of them.
  EXPECT_EQ(countOf(decode(golden("olmoe")), "top(2) : tensor<1x6xf32>"), 3u);
}

TEST(Import, SharedExpert) {
  Model model = golden("qwen2-moe");
  const auto layers = static_cast<size_t>(model.config.layers);
  const std::string step = decode(model);
  EXPECT_EQ(countOf(step, "kf.mlp"), layers);
  expectContains(step, "\"model.layers.0.mlp.shared_expert_gate.weight\"] : "
                       "tensor<1x32xbf16>");
  EXPECT_EQ(countOf(step, "math.exp"), layers);
  EXPECT_EQ(countOf(step, "arith.divf"), layers);
  // Layers without experts have a block of their own.
  model.config.layerConfigs[1].hasExperts = false;
  expectContains(decode(model), "model.layers.1.mlp.gate_proj.weight");
}

/// The tensors that `name`'s configuration implies, of bf16.
Model implied(const std::string &name) {
  Model model;
  model.config = *::kf::loadModelConfig(KF_SOURCE_DIR "/test/golden/" + name);
  for (const ::kf::ListedTensor &tensor : ::kf::listTensors(model.config))
    model.source.tensors[tensor.name] = {DataType::BF16, tensor.storedShape(),
                                         nullptr, 0};
  return model;
}

/// Experts beside a block, whose router has a norm of its own.
TEST(Import, ExpertsBesideABlock) {
  const Model model = implied("gemma4-moe");
  const std::string step = decode(model);
  EXPECT_EQ(countOf(step, "kf.mlp"), 3u) << step;
  EXPECT_EQ(countOf(step, "top(2) normalized scales(%"), 3u);
  // Four norms of a layer, three of experts and the router's; of heads, those
  // of queries, keys and values; and the last one.
  EXPECT_EQ(countOf(step, "kf.rms_norm"), 3u * (4 + 4 + 3) + 1u);
  expectContains(step, "\"model.layers.1.router.scale\"] : tensor<32xbf16>");
  expectContains(
      step, "\"model.layers.1.router.per_expert_scale\"] : tensor<4xbf16>");
  // Values of the last layer are its keys.
  EXPECT_EQ(countOf(step, "self_attn.v_proj"), 2u);
}

/// What layers read of the token, of a table of fewer rows than ids.
TEST(Import, InputsOfTokens) {
  Model model = implied("gemma4-shared-kv");
  std::string step = decode(model);
  EXPECT_EQ(countOf(step, "embed_tokens_per_layer"), 1u) << step;
  EXPECT_EQ(countOf(step, "arith.cmpi"), 0u);
  EXPECT_EQ(countOf(step, "per_layer_input_gate"), 5u);
  EXPECT_EQ(countOf(step, "tensor<1x40xf32> to tensor<1x8xf32>"), 5u);
  EXPECT_EQ(countOf(step, "layer_scalar"), 5u);
  // Of 8 pairs of queries and keys, 6 are not turned.
  EXPECT_EQ(countOf(step, "1.000000e+30"), 3u * 6u);
  model.config.tokenInputVocab = 60;
  model.source.tensors["model.embed_tokens_per_layer.weight"].shape[0] = 60;
  step = decode(model);
  EXPECT_EQ(countOf(step, "arith.cmpi ult"), 1u);
  EXPECT_EQ(countOf(step, "arith.select"), 1u);
}

/// Layers with windows find their keys by a page table of their own, in the
/// places that the others have by theirs.
TEST(Import, WindowsHavePageTables) {
  Model model = implied("gemma2");
  std::string step = import(model, {StepPart::Body, 1});
  EXPECT_EQ(countOf(step, "%arg4: tensor<1x4xi32>, %arg5: !kf.kv_cache<layers "
                          "= 2,"),
            1u)
      << step;
  EXPECT_EQ(countOf(step, "%arg1, %arg2, %arg4"), 2u * 2u);
  EXPECT_EQ(countOf(step, "%arg1, %arg2, %arg3"), 2u * 2u);
  EXPECT_EQ(countOf(step, "layer = 1 : i64"), 2u * 2u);
  // A window as long as texts are keeps all pages.
  for (::kf::LayerConfig &layer : model.config.layerConfigs)
    if (layer.window > 0)
      layer.window = model.config.maxPositions;
  step = import(model, {StepPart::Body, 1});
  EXPECT_EQ(countOf(step, "%arg4: !kf.kv_cache<layers = 4,"), 1u) << step;
}

/// Chunks of layers that turn queries and keys, whose lengths are theirs alone,
/// and queries that grow of others.
TEST(Import, ChunksAndGrowingQueries) {
  const Model model = implied("llama4");
  const std::string step = decode(model);
  EXPECT_EQ(countOf(step, "{chunked, "), 3u) << step;
  EXPECT_EQ(countOf(step, "window = 8 : i64"), 3u);
  // Two norms of a layer, and the last one; queries and keys of three layers.
  EXPECT_EQ(countOf(step, "kf.rms_norm"), 4u * 2u + 1u + 3u * 2u);
  EXPECT_EQ(countOf(step, "kf.rope "), 3u * 2u);
  EXPECT_EQ(countOf(step, "style = #kf.rope_style<interleaved>"), 3u * 2u);
  // For all layers once.
  EXPECT_EQ(countOf(step, "math.log"), 1u);
  EXPECT_EQ(countOf(step, "arith.divsi"), 1u);
  expectContains(step, "dense<6> : tensor<1xi32>");
}

/// Experts whose weights multiply what they read.
TEST(Import, ExpertsOfWeighedRows) {
  const Model model = implied("llama4");
  const std::string step = decode(model);
  EXPECT_EQ(countOf(step, "kf.route"), 4u) << step;
  EXPECT_EQ(countOf(step, "top(1) sigmoid :"), 4u);
  // A product of what each row's expert reads, and one of what that gives.
  EXPECT_EQ(countOf(step, "tensor<1x1x32xf32>, tensor<1x1xi32>, "
                          "tensor<2x4x16x32xbf16>"),
            4u);
  EXPECT_EQ(countOf(step, "kf.mlp"), 4u);
}

/// Attention to what keys and values are made of, which is key and value of the
/// cache at once.
TEST(Import, LatentAttention) {
  Model model = implied("deepseek-v3");
  std::string step = decode(model);
  expectContains(step, "\"model.layers.0.self_attn.kv_b_proj.3.keys.weight\"] "
                       "{stacked, transposed} : tensor<1x4x12x8xbf16>");
  expectContains(step,
                 "\"model.layers.0.self_attn.kv_b_proj.3.values.weight\"] "
                 "{stacked} : tensor<1x4x12x12xbf16>");
  expectContains(step, "!kf.kv_cache<layers = 3, kv_heads = 1, head_dim = 20");
  EXPECT_EQ(countOf(step, "scale = 2.500000e-01 : f32"), 3u);
  EXPECT_EQ(countOf(step, "rotary_dim = 8 : i64"), 3u * 2u);
  // Norms of both rows of a layer have an epsilon of their own.
  model.config.normEps = 1e-5;
  const std::string others = decode(model);
  EXPECT_EQ(countOf(others, "eps(9.99999974E-6)"), 3u * 2u + 1u) << others;
  EXPECT_EQ(countOf(others, "eps(9.99999997E-7)"), 3u * 2u);
  // The numbers of heads, for all layers once.
  EXPECT_EQ(countOf(step, "kf.iota"), 1u);
  EXPECT_EQ(countOf(step, "q_a_proj"), 3u);
  EXPECT_EQ(countOf(step, "q_b_proj"), 3u);
  expectContains(step, "top(2) sigmoid normalized bias(%");
  EXPECT_EQ(countOf(step, "groups(4, 2)"), 2u);
  EXPECT_EQ(countOf(step, "dense<2.500000e+00> : tensor<1x1xf32>"), 2u);
  // Queries of the hidden row itself.
  const std::string config = R"({"model_type": "deepseek_v3", "vocab_size": 80,
      "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
      "intermediate_size": 48, "q_lora_rank": null, "kv_lora_rank": 12,
      "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 6})";
  model.config = ::kf::parseModelConfig(config).take();
  model.source.tensors.clear();
  for (const ::kf::ListedTensor &tensor : ::kf::listTensors(model.config))
    model.source.tensors[tensor.name] = {DataType::BF16, tensor.storedShape(),
                                         nullptr, 0};
  step = decode(model);
  EXPECT_EQ(countOf(step, "self_attn.q_proj.weight"), 1u) << step;
  EXPECT_EQ(countOf(step, "q_a_proj"), 0u);
}

/// Three streams of a token, of which layers compute the first.
TEST(Import, Streams) {
  Model model = implied("gemma3n");
  std::string step = decode(model);
  EXPECT_EQ(countOf(step, "altup_projections"), 2u) << step;
  EXPECT_EQ(countOf(step, "altup_unembed_projections"), 2u);
  // Before a layer and behind it.
  EXPECT_EQ(countOf(step, "layers.1.altup.modality_router"), 2u);
  EXPECT_EQ(countOf(step, "altup.prediction_coefs"), 5u);
  EXPECT_EQ(countOf(step, "altup.correct_output_scale"), 5u);
  EXPECT_EQ(countOf(step, "laurel.linear_left"), 5u);
  // The gates of two layers are cut off.
  EXPECT_EQ(countOf(step, "kf.activation(relu)"), 2u);
  EXPECT_EQ(countOf(step, "kf.mlp"), 3u);
  EXPECT_EQ(countOf(step, "arith.cmpi ult"), 1u);
  model.config.streams.scaled = false;
  EXPECT_EQ(countOf(decode(model), "altup.correct_output_scale"), 0u);
}

/// Layers that keep states, and attention with gates.
TEST(Import, States) {
  Model model = implied("qwen3-next");
  std::string step = decode(model);
  EXPECT_EQ(countOf(step, "kf.gated_delta"), 3u) << step;
  EXPECT_EQ(countOf(step, "kf.attention "), 1u);
  EXPECT_EQ(countOf(step, "<layers = 3, heads = 4, elements = 136, slot_pages "
                          "= 4>"),
            4u);
  EXPECT_EQ(countOf(step, "{layer = 2 : i64}"), 1u);
  EXPECT_EQ(countOf(step, "linear_attn.in_proj_qkvz"), 3u);
  // Of linear attention, norms multiply by the weight itself.
  EXPECT_EQ(countOf(step, "linear_attn.norm"), 3u);
  EXPECT_EQ(countOf(step, "zero_centered"), 4u + 4u + 2u + 1u);
  EXPECT_EQ(countOf(step, "kf.rope"), 2u);
  step = decode(implied("qwen3-5"));
  EXPECT_EQ(countOf(step, "linear_attn.in_proj_qkv.weight"), 3u);
  EXPECT_EQ(countOf(step, "linear_attn.in_proj_a.weight"), 3u);
  EXPECT_EQ(countOf(step, "kf.gated_delta"), 3u);
}

/// Sides of a gate that are bounded, biases, and sinks of attention.
TEST(Import, ClampedExperts) {
  Model model;
  model.config =
      *::kf::loadModelConfig(KF_SOURCE_DIR "/test/golden/gpt-oss-mxfp4");
  for (const ::kf::ListedTensor &tensor : ::kf::listTensors(model.config))
    model.source.tensors[tensor.name] = {
        tensor.ofExpert && tensor.shape.size() > 1 ? ::kf::DataType::MXFP4
                                                   : ::kf::DataType::BF16,
        tensor.shape, nullptr, 0};
  const auto layers = static_cast<size_t>(model.config.layers);
  std::string step = decode(model);
  EXPECT_EQ(countOf(step, "glu(silu) clamped<limit = 1.5, alpha = 1.702> : "
                          "tensor<1x32xf32>, tensor<1x2xi32>, "
                          "tensor<2x4x32x32x!kf.quant<mxfp4>>, "
                          "tensor<2x4x32xbf16>"),
            layers)
      << step;
  EXPECT_EQ(countOf(step, "tensor<1x4x32x32x!kf.quant<mxfp4>>, "
                          "tensor<1x4x32xbf16>"),
            layers);
  EXPECT_EQ(countOf(step, "sinks(%"), layers);
  expectContains(step, "\"model.layers.2.self_attn.sinks\"] : tensor<4xbf16>");
  expectContains(step, "\"model.layers.0.mlp.router.bias\"] : tensor<4xbf16>");
  // Of two types, in products of their own.
  for (auto &[name, view] : model.source.tensors)
    if (name.find("layers.1.") != std::string::npos &&
        name.ends_with(".up_proj.weight"))
      view.type = ::kf::DataType::BF16;
  step = decode(model);
  EXPECT_EQ(countOf(step, "clamped<"), layers - 1) << step;
  EXPECT_EQ(countOf(step, "arith.minimumf"), 2u);
  EXPECT_EQ(countOf(step, "arith.maximumf"), 1u);
  EXPECT_EQ(countOf(step, "kf.activation(silu)"), 1u);
  // Biases of a layer have one type, too.
  model.source.tensors["model.layers.0.mlp.experts.2.down_proj.bias"].type =
      ::kf::DataType::F32;
  expectContains(decode(model), "experts.2.down_proj.bias' have different");
}

/// One weight has one type; gates and what they multiply may be two.
TEST(Import, TypesOfExperts) {
  Model model = golden("mixtral");
  auto setType = [&](const std::string &part, const std::string &only) {
    for (auto &[name, view] : model.source.tensors)
      if (name.find(part) != std::string::npos &&
          name.find(only) != std::string::npos)
        view.type = DataType::F32;
  };
  setType(".w1.", "layers.0.");
  const std::string step = decode(model);
  EXPECT_EQ(countOf(step, "tensor<1x4x24x32xf32>\n"), 2u) << step;
  EXPECT_EQ(countOf(step, "kf.activation(silu)"), 1u);
  EXPECT_EQ(countOf(step, "glu(silu)"), 2u);
  setType(".w2.", "layers.0.block_sparse_moe.experts.2.");
  EXPECT_EQ(decode(model),
            "checkpoint tensors "
            "'model.layers.0.block_sparse_moe.experts.0.w2.weight' and "
            "'model.layers.0.block_sparse_moe.experts.2.w2.weight' have "
            "different types; those of a layer's experts are expected to have "
            "one");
}

TEST(Import, Gpt2) {
  std::string step = decode(golden("gpt2-layernorm"));
  expectContains(step, "kf.weight [\"transformer.h.1.attn.c_attn.weight\"] "
                       "{transposed} : tensor<192x64xf32>");
  expectContains(step, "kf.weight [\"transformer.h.0.mlp.c_fc.weight\"] "
                       "{transposed} : tensor<256x64xf32>");
  expectContains(step, "kf.weight [\"transformer.wte.weight\"] : ");
  EXPECT_EQ(countOf(step, "tensor.extract_slice"), 3u * 2);
  // Of ids, of positions, and of the rows that are wanted.
  EXPECT_EQ(countOf(step, "kf.embedding"), 3u);
  EXPECT_EQ(countOf(step, "kf.layer_norm"), 5u);
  EXPECT_EQ(countOf(step, "kf.rope"), 0u);
  expectContains(step, "(gelu_tanh)");
}

TEST(Import, CheckpointOfTheBareModel) {
  Model model = golden("gpt2-layernorm");
  FakeSource bare;
  for (const auto &[name, view] : model.source.tensors)
    bare.tensors[name.substr(std::string("transformer.").size())] = view;
  model.source = bare;
  expectContains(decode(model), "kf.weight [\"h.0.ln_1.weight\"]");
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// GGUF's names, types of blocks, and llama's interleaved rotation.
TEST(Import, Gguf) {
  Model model = loadGguf("models/kf-stories-gguf/kf-stories-Q4_K_M.gguf");
  std::string text = decode(model);
  expectContains(text, "kf.weight [\"token_embd.weight\"] : "
                       "tensor<1477x256x!kf.quant<q6_k>>");
  expectContains(text, "kf.weight [\"blk.0.attn_q.weight\"] : "
                       "tensor<256x256x!kf.quant<q4_k>>");
  expectContains(text, "kf.weight [\"output_norm.weight\"]");
  EXPECT_EQ(countOf(text, "style = #kf.rope_style<interleaved>"),
            static_cast<size_t>(2 * model.config.layers));
}

TEST(Import, GgufNamesOfOtherArchitectures) {
  Model qwen3 = golden("qwen3-qknorm"), gpt2 = golden("gpt2-layernorm");
  qwen3.config.naming = gpt2.config.naming = ::kf::TensorNaming::Gguf;
  expectContains(decode(qwen3), "'token_embd.weight'");
  expectContains(decode(gpt2), "'token_embd.weight'");
  auto rename = [](Model &model, const std::string &from,
                   const std::string &to) {
    std::map<std::string, ::kf::TensorView> renamed;
    for (auto &[name, view] : model.source.tensors) {
      std::string changed = name;
      if (size_t at = changed.find(from); at != std::string::npos)
        changed.replace(at, from.size(), to);
      renamed[changed] = view;
    }
    model.source.tensors = renamed;
  };
  for (auto [from, to] : std::initializer_list<std::array<const char *, 2>>{
           {"model.layers.", "blk."},
           {"model.", ""},
           {"embed_tokens", "token_embd"},
           {"lm_head", "output"},
           {"post_attention_layernorm", "ffn_norm"},
           {"input_layernorm", "attn_norm"},
           {"self_attn.q_proj", "attn_q"},
           {"self_attn.k_proj", "attn_k"},
           {"self_attn.v_proj", "attn_v"},
           {"self_attn.o_proj", "attn_output"},
           {"self_attn.q_norm", "attn_q_norm"},
           {"self_attn.k_norm", "attn_k_norm"},
           {"mlp.gate_proj", "ffn_gate"},
           {"mlp.up_proj", "ffn_up"},
           {"mlp.down_proj", "ffn_down"}})
    rename(qwen3, from, to);
  auto norm = qwen3.source.tensors.extract("norm.weight");
  norm.key() = "output_norm.weight";
  qwen3.source.tensors.insert(std::move(norm));
  expectContains(decode(qwen3), "kf.weight [\"blk.0.attn_q_norm.weight\"]");
}

/// Llama 3.1's files hold a factor for each frequency.
TEST(Import, RopeFactors) {
  Model model = loadGguf("models/kf-stories-gguf/kf-stories-Q8_0.gguf");
  for (::kf::LayerConfig &layer : model.config.layerConfigs)
    layer.rope->frequencyFactors = true;
  expectContains(decode(model), "'rope_freqs.weight'");
  model.source.tensors["rope_freqs.weight"] = {
      DataType::F32, {model.config.headDim / 2}, nullptr, 0};
  std::string text = decode(model);
  expectContains(text, "kf.weight [\"rope_freqs.weight\"]");
  expectContains(text, " factors(");
}

/// Frequencies are divided by a constant, and what cosines and sines are
/// multiplied by is in attention's scale, for queries and for keys.
TEST(Import, Yarn) {
  Model model = golden("llama2-mha");
  for (::kf::LayerConfig &layer : model.config.layerConfigs) {
    layer.rope->scaling = ::kf::RopeConfig::Scaling::Yarn;
    layer.rope->factor = 4;
    layer.rope->originalContext = 64;
    layer.rope->magnitude = 1.5;
  }
  model.config.attentionScale = 0.25;
  const std::string step = decode(model);
  EXPECT_EQ(countOf(step, " factors("), 4u) << step;
  EXPECT_EQ(countOf(step, "scale = 5.625000e-01 : f32"), 2u);
  model.config.layerConfigs[1].rope->magnitude = 1;
  EXPECT_EQ(countOf(decode(model), "scale = 2.500000e-01 : f32"), 1u);
}

TEST(Import, BlocksOnlyInMatrices) {
  Model model = loadGguf("models/kf-stories-gguf/kf-stories-Q8_0.gguf");
  model.source.tensors["output_norm.weight"].type = DataType::Q8_0;
  expectContains(decode(model), "checkpoint tensor 'output_norm.weight' has "
                                "type q8_0; f32, f16 and bf16 are supported "
                                "here");
}

TEST(Import, MissingTensor) {
  Model model = golden("llama2-mha");
  model.source.tensors.erase("model.layers.1.mlp.up_proj.weight");
  EXPECT_EQ(decode(model),
            "there is no tensor 'model.layers.1.mlp.up_proj.weight'");
  // Untied, but without an output matrix.
  Model tied = golden("llama3-gqa-scaled");
  tied.config.tiedEmbeddings = false;
  EXPECT_EQ(decode(tied), "there is no tensor 'lm_head.weight'");
}

TEST(Import, WrongShape) {
  Model model = golden("llama2-mha");
  model.source.tensors["model.layers.0.self_attn.k_proj.weight"].shape = {32,
                                                                          64};
  EXPECT_EQ(decode(model),
            "checkpoint tensor 'model.layers.0.self_attn.k_proj.weight' has "
            "shape [32, 64], but the configuration implies [64, 64]");
  // A matrix that is not stored transposed.
  Model gpt2 = golden("gpt2-layernorm");
  gpt2.source.tensors["transformer.h.0.attn.c_attn.weight"].shape = {192, 64};
  expectContains(decode(gpt2), "but the configuration implies [64, 192]");
}

TEST(Import, WrongType) {
  Model model = golden("llama2-mha");
  model.source.tensors["model.norm.weight"].type = DataType::I8;
  EXPECT_EQ(decode(model), "checkpoint tensor 'model.norm.weight' has type i8; "
                           "f32, f16 and bf16 are supported here");
}

TEST(Import, TensorThatTheModelDoesNotUse) {
  Model model = golden("llama2-mha");
  model.source.tensors["model.layers.0.self_attn.q_proj.bias"] = {
      DataType::F32, {64}, nullptr, 256};
  EXPECT_EQ(decode(model),
            "checkpoint tensor 'model.layers.0.self_attn.q_proj.bias' is not "
            "part of the model that the configuration describes");
  // What Hugging Face's code stored once and never reads.
  Model old = golden("llama3-gqa-scaled");
  old.source.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
      DataType::F32, {8}, nullptr, 32};
  old.source.tensors["lm_head.weight"] =
      old.source.tensors["model.embed_tokens.weight"];
  expectContains(decode(old), "func.func @body_1");
}

//===----------------------------------------------------------------------===//
// Adapters
//===----------------------------------------------------------------------===//

/// A model of test/golden with an adapter of all modules that may have one.
Model adapted(const std::string &name) {
  Model model = implied(name);
  constexpr std::string_view suffix = ".weight";
  for (const ::kf::LoraModule &module : ::kf::loraModules(model.config))
    for (const ::kf::LoraModule::Part &part : module.parts)
      model.config.adapters
          .ranks[part.key.substr(0, part.key.size() - suffix.size())] = 2;
  model.config.adapters.count = 1;
  for (const ::kf::ListedTensor &tensor : ::kf::listTensors(model.config))
    if (tensor.role == ::kf::ListedTensor::Role::Adapter)
      model.source.tensors[tensor.name] = {
          DataType::F32, tensor.shape, nullptr,
          static_cast<uint64_t>(tensor.shape[0] * tensor.shape[1]) * 4};
  return model;
}

TEST(Import, AdaptersAddToWhateverModulesHaveThem) {
  for (const char *name : {"llama3-gqa-scaled", "llama-bias",
                           "gpt2-layernorm",    "phi3",
                           "stablelm",          "starcoder2",
                           "cohere2",           "olmo2",
                           "granite",           "gemma2",
                           "gemma3n",           "gemma4-shared-kv",
                           "gemma4-moe",        "mixtral",
                           "qwen2-moe",         "llama4",
                           "gpt-oss",           "deepseek-v3",
                           "qwen3-next",        "qwen3-5"}) {
    SCOPED_TRACE(name);
    const Model model = adapted(name);
    const Model plain = implied(name);
    const StepShape shape = {StepPart::Body, 4};
    const std::string text = import(model, shape);
    // One B of each product; the others are As.
    const size_t added = countOf(text, "kf.expert_matmul") -
                         countOf(import(plain, shape), "kf.expert_matmul");
    EXPECT_GT(added, model.config.adapters.ranks.size()) << text.substr(0, 200);
  }
  expectContains(import(adapted("deepseek-v3"), {StepPart::Body, 4}),
                 "layers.2.self_attn.o_proj");
}

TEST(Import, AdaptersOfNoProduct) {
  Model model = adapted("llama2-mha");
  model.config.adapters.ranks["layers.0.mlp.gone"] = 2;
  EXPECT_EQ(import(model, {StepPart::Body, 4}),
            "adapters cannot add to 'layers.0.mlp.gone', which is no product "
            "of the model's steps; leave its module out of 'target_modules'");
}

TEST(Import, Options) {
  Model model = golden("llama2-mha");
  for (int64_t rows : {0, 8193})
    EXPECT_EQ(import(model, {StepPart::Head, rows}),
              "a step of " + std::to_string(rows) +
                  " rows is not possible; 1 to 8192 are");
  Model wide = golden("llama2-mha");
  wide.config.hiddenSize = 5120;
  EXPECT_EQ(import(wide, {StepPart::Head, 4097}),
            "a step of 4097 rows is not possible; 1 to 4096 are");
  ImportOptions options;
  options.keyBlock = 0;
  expectContains(import(model, {}, options), "a key block of 0");
  options.keyBlock = 1;
  options.activationType = DataType::Q8_0;
  expectContains(import(model, {}, options),
                 "activations of q8_0 are not supported");
  options.activationType = DataType::F32;
  options.cacheType = DataType::I32;
  expectContains(import(model, {}, options), "a cache of i32 is not supported");
  options.cacheType = DataType::Q4_0;
  expectContains(import(model, {}, options),
                 "a cache of q4_0 is not supported");
  options.cacheType = DataType::Q8_0;
  expectContains(
      import(model, {}, options),
      "a cache of q8_0 needs heads of a multiple of 32 elements, and "
      "the model's have 16; use f32, f16 or bf16");
}

} // namespace
