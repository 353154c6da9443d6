//===- AdapterWeightsTest.cpp - A model's tensors and its adapters' -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/adapter/AdapterWeights.h"

#include "AdapterFiles.h"

#include "runtime/model/DummyWeights.h"
#include "runtime/model/TensorList.h"

#include <cstring>

using namespace kf;
using namespace kf::test;

namespace {

/// The values of a tensor of f32 or bf16.
std::vector<float> valuesOf(const WeightSource &weights,
                            const std::string &name) {
  const auto view = weights.find(name);
  EXPECT_TRUE(view.ok()) << view.message();
  if (!view.ok())
    return {};
  std::vector<float> values(
      static_cast<size_t>(view->shape[0] * view->shape[1]));
  EXPECT_TRUE(convertToFloat(view->type, view->data,
                             static_cast<int64_t>(values.size()), values.data())
                  .ok());
  return values;
}

/// A model that is opened with adapters of these configurations, which count
/// from 1, 1001 ... on.
struct Adapted {
  explicit Adapted(ModelConfig model, const std::vector<json> &configs,
                   DataType type = DataType::F32)
      : config(std::move(model)) {
    std::vector<PeftAdapter> adapters;
    float first = 1;
    for (const json &adapter : configs) {
      folders.push_back(std::make_unique<TempFolder>());
      auto opened =
          PeftAdapter::open(writeAdapter(*folders.back(), adapter,
                                         tensorsFor(adapter, config, first)),
                            config);
      EXPECT_TRUE(opened.ok()) << opened.message();
      adapters.push_back(opened.take());
      first += 1000;
    }
    std::unique_ptr<WeightSource> source =
        DummyWeights::create(config, type, /*seed=*/1).take();
    auto made =
        AdapterWeights::create(config, std::move(source), std::move(adapters));
    EXPECT_TRUE(made.ok()) << made.message();
    weights = made.take();
  }

  std::vector<std::unique_ptr<TempFolder>> folders;
  ModelConfig config;
  std::unique_ptr<AdapterWeights> weights;
};

TEST(AdapterWeights, AreWhatTheModelImplies) {
  const Adapted adapted(smallModel(), {smallConfig({"q_proj", "v_proj"}, 2),
                                       smallConfig({"v_proj", "up_proj"}, 3)});
  EXPECT_EQ(adapted.config.adapters.count, 2);
  EXPECT_EQ(adapted.config.adapters.rankOf("layers.1.self_attn.q_proj"), 2);
  EXPECT_EQ(adapted.config.adapters.rankOf("layers.1.self_attn.v_proj"), 3);
  EXPECT_EQ(adapted.config.adapters.rankOf("layers.1.self_attn.k_proj"), 0);
  const auto found = findTensors(adapted.config, *adapted.weights);
  ASSERT_TRUE(found.ok()) << found.message();
  int64_t count = 0;
  for (const ListedTensor &tensor : *found)
    count += tensor.role == ListedTensor::Role::Adapter;
  // A of q and v together, and of up; B of each; three adapters, two layers.
  EXPECT_EQ(count, 2 * 3 * (2 + 3));
}

TEST(AdapterWeights, FillUpWithZeros) {
  const Adapted adapted(smallModel(), {smallConfig({"q_proj", "v_proj"}, 2),
                                       smallConfig({"v_proj"}, 3)});
  const std::string group = "layers.0.self_attn.q_proj";
  const std::string value = "layers.0.self_attn.v_proj";
  const WeightSource &weights = *adapted.weights;
  // Lines of q and of v, [2 + 3, 8].
  const std::vector<float> none = valuesOf(weights, adapterKeyOfA(group, 0));
  EXPECT_EQ(none, std::vector<float>(40, 0));
  const std::vector<float> first = valuesOf(weights, adapterKeyOfA(group, 1));
  EXPECT_EQ(first[0], 1);
  EXPECT_EQ(first[15], 16);
  EXPECT_EQ(first[16], 1); // v's own
  EXPECT_EQ(first[31], 16);
  EXPECT_EQ(first[32], 0);
  const std::vector<float> second = valuesOf(weights, adapterKeyOfA(group, 2));
  EXPECT_EQ(second[0], 0);
  EXPECT_EQ(second[15], 0);
  EXPECT_EQ(second[16], 1001);
  EXPECT_EQ(second[39], 1024);
  // B with its factor, 2: [4, 3] of v, and of q, [8, 2].
  const std::vector<float> b = valuesOf(weights, adapterKeyOfB(value, 1));
  EXPECT_EQ(std::vector<float>(b.begin(), b.begin() + 6),
            std::vector<float>({202, 204, 0, 206, 208, 0}));
  EXPECT_EQ(valuesOf(weights, adapterKeyOfB(group, 2)),
            std::vector<float>(16, 0));
  // What was given back is made again.
  weights.release(adapterKeyOfB(value, 1));
  EXPECT_EQ(valuesOf(weights, adapterKeyOfB(value, 1)), b);
}

TEST(AdapterWeights, AreRoundedWhereTheModelIs) {
  const json config = smallConfig({"q_proj"});
  for (DataType type : {DataType::F32, DataType::F16, DataType::BF16}) {
    const Adapted adapted(smallModel(), {config}, type);
    const auto view = adapted.weights->describe(
        adapterKeyOfA("layers.0.self_attn.q_proj", 1));
    ASSERT_TRUE(view.ok());
    EXPECT_EQ(view->type,
              type == DataType::F32 ? DataType::F32 : DataType::BF16);
  }
}

TEST(AdapterWeights, TakeTheOrderOfGgufsRows) {
  ModelConfig model = smallModel();
  model.naming = TensorNaming::Gguf;
  const Adapted adapted(model, {smallConfig({"q_proj", "v_proj"}, 1)});
  // Heads of four rows: halves are taken in turns. The factor is 2.
  const std::vector<float> b =
      valuesOf(*adapted.weights, adapterKeyOfB("blk.0.attn_q", 1));
  EXPECT_EQ(b, std::vector<float>({202, 206, 204, 208, 210, 214, 212, 216}));
  EXPECT_EQ(valuesOf(*adapted.weights, adapterKeyOfB("blk.0.attn_v", 1)),
            std::vector<float>({202, 204, 206, 208}));
}

TEST(AdapterWeights, SplitWhatPhi3Joins) {
  const Adapted adapted(smallModel("phi3"), {smallConfig({"qkv_proj"}, 1)});
  const WeightSource &weights = *adapted.weights;
  // The module's A for each of its parts.
  const std::vector<float> a =
      valuesOf(weights, adapterKeyOfA("layers.0.self_attn.q_proj", 1));
  ASSERT_EQ(a.size(), 24u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(a[i], a[8 + i]);
    EXPECT_EQ(a[i], a[16 + i]);
  }
  EXPECT_EQ(valuesOf(weights, adapterKeyOfB("layers.0.self_attn.k_proj", 1)),
            std::vector<float>({2 * 109, 2 * 110, 2 * 111, 2 * 112}));
}

TEST(AdapterWeights, RefuseFactorsThatAreTooLarge) {
  json config = smallConfig({"q_proj"});
  config["lora_alpha"] = 3e38; // of B's 101 and more
  const Adapted adapted(smallModel(), {config});
  const auto b =
      adapted.weights->find(adapterKeyOfB("layers.0.self_attn.q_proj", 1));
  EXPECT_NE(b.message().find("q_proj.lora_B.weight' times its factor, 1.5e+38, "
                             "exceeds f32"),
            std::string::npos)
      << b.message();
}

} // namespace
