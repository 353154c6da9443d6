//===- PeftAdapterTest.cpp - Adapters in PEFT's format --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AdapterFiles.h"

#include <cmath>
#include <filesystem>

using namespace kf;
using namespace kf::test;

namespace {

const std::string kQuery = "model.layers.0.self_attn.q_proj";

/// The modules of `changes` to a small configuration: name, rank, scale.
std::vector<AdaptedModule> modulesOf(const json &changes) {
  json config = smallConfig({"q_proj"});
  config.update(changes);
  auto modules = parsePeftConfig(config.dump(), smallModel());
  EXPECT_TRUE(modules.ok()) << modules.message();
  return modules.ok() ? modules.take() : std::vector<AdaptedModule>();
}

std::string errorOf(const json &changes,
                    const ModelConfig &model = smallModel()) {
  json config = smallConfig({"q_proj"});
  config.update(changes);
  const auto modules = parsePeftConfig(config.dump(), model);
  EXPECT_FALSE(modules.ok()) << changes;
  EXPECT_EQ(modules.message().find('\n'), std::string::npos);
  return modules.message();
}

void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "in: " << text;
}

TEST(PeftConfig, NamesModules) {
  EXPECT_EQ(modulesOf(json::object()).size(), 2u);
  EXPECT_EQ(modulesOf(json::object()).front().module.name, kQuery);
  EXPECT_EQ(modulesOf(json::object()).front().rank, 2);
  EXPECT_EQ(modulesOf(json::object()).front().scale, 2);
  EXPECT_EQ(modulesOf({{"target_modules", "all-linear"}}).size(), 14u);
  // A regular expression is of the whole name.
  EXPECT_EQ(modulesOf({{"target_modules", ".*\\.(q|v)_proj"}}).size(), 4u);
  EXPECT_EQ(modulesOf({{"target_modules", ".*layers\\.1\\..*proj"}}).size(),
            7u);
  EXPECT_EQ(modulesOf({{"target_modules", ".*\\b[qv]_proj\\b"}}).size(), 4u);
  EXPECT_EQ(modulesOf({{"target_modules", ".*(?:q\\b|q)_proj"}}).size(), 2u);
  expectContains(errorOf({{"target_modules", ".*q_proj)|(?:.*v_proj"}}),
                 "unmatched closing parenthesis");
  expectContains(errorOf({{"target_modules", "(?P<a>q).*"}}),
                 "regular expression '(?P<a>q).*': group '(?P<' at byte 0 is "
                 "not supported");
  expectContains(errorOf({{"target_modules", "q_proj"}}),
                 "'target_modules' is \"q_proj\", which names no module");
  EXPECT_EQ(modulesOf({{"target_modules", {"q_proj", "down_proj"}},
                       {"exclude_modules", {"layers.0.self_attn.q_proj"}}})
                .size(),
            3u);
}

TEST(PeftConfig, HasRanksAndScalesOfItsOwn) {
  const auto stabilized = modulesOf({{"use_rslora", true}});
  EXPECT_DOUBLE_EQ(stabilized.front().scale, 4 / std::sqrt(2.0));
  const auto modules =
      modulesOf({{"target_modules", {"q_proj", "k_proj", "v_proj"}},
                 {"rank_pattern", {{"k_proj", 8}, {"layers.1.*q_proj", 1}}},
                 {"alpha_pattern", {{"self_attn.v_proj", 12}}}});
  ASSERT_EQ(modules.size(), 6u);
  EXPECT_EQ(modules[0].rank, 2);
  EXPECT_EQ(modules[1].rank, 8);
  EXPECT_DOUBLE_EQ(modules[1].scale, 0.5);
  EXPECT_EQ(modules[2].rank, 2);
  EXPECT_DOUBLE_EQ(modules[2].scale, 6);
  EXPECT_EQ(modules[3].rank, 1);
  EXPECT_DOUBLE_EQ(modules[3].scale, 4);
}

TEST(PeftConfig, HasOneValueForAModule) {
  EXPECT_EQ(
      modulesOf({{"rank_pattern", {{"q_proj", 4}, {"self_attn.q_proj", 4}}}})
          .front()
          .rank,
      4);
  EXPECT_EQ(
      errorOf({{"rank_pattern", {{"q_proj", 4}, {"layers.1.*q_proj", 8}}}}),
      "'rank_pattern' has 'layers.1.*q_proj' and 'q_proj' for "
      "'model.layers.1.self_attn.q_proj' with different values; one of them is "
      "to match");
  expectContains(
      errorOf({{"alpha_pattern", {{"q_proj", 4}, {"layers.1.*q_proj", 8}}}}),
      "'alpha_pattern' has ");
}

TEST(PeftConfig, TakesWhatChangesNothing) {
  for (const json &changes :
       {json{{"modules_to_save", nullptr}},
        json{{"modules_to_save", json::array()}},
        json{{"init_lora_weights", true}},
        json{{"init_lora_weights", "gaussian"}}, json{{"lora_dropout", 0.1}},
        json{{"loftq_config", json::object()}},
        json{{"task_type", "CAUSAL_LM"}}, json{{"fan_in_fan_out", false}},
        json{{"unheard_of", 3}}})
    EXPECT_EQ(modulesOf(changes).size(), 2u) << changes;
}

TEST(PeftConfig, RefusesWhatItDoesNotDo) {
  expectContains(errorOf({{"peft_type", "IA3"}}), "'peft_type' is \"IA3\"");
  expectContains(errorOf({{"peft_type", nullptr}}), "'peft_type'");
  expectContains(errorOf({{"bias", "all"}}), "'bias' is \"all\"");
  expectContains(errorOf({{"use_dora", true}}), "'use_dora' is true");
  expectContains(errorOf({{"modules_to_save", {"lm_head"}}}),
                 "'modules_to_save'");
  expectContains(errorOf({{"layers_to_transform", {0}}}),
                 "'layers_to_transform'");
  expectContains(errorOf({{"init_lora_weights", "pissa"}}),
                 "'init_lora_weights' is \"pissa\"");
  expectContains(errorOf({{"fan_in_fan_out", true}}), "'fan_in_fan_out'");
  expectContains(errorOf({{"r", 0}}), "'r' is 0");
  expectContains(errorOf({{"r", 1 << 20}}), "'r' is 1048576");
  expectContains(errorOf({{"lora_alpha", -1}}), "'lora_alpha' is -1");
  expectContains(errorOf({{"lora_alpha", nullptr}}), "'lora_alpha'");
  expectContains(errorOf({{"lora_alpha", 1e300}}), "'lora_alpha' is 1e+300");
  expectContains(errorOf({{"alpha_pattern", {{"q_proj", 1e39}}}}),
                 "'alpha_pattern.q_proj' is 1e+39");
  expectContains(errorOf({{"target_modules", nullptr}}), "'target_modules'");
  expectContains(errorOf({{"target_modules", 3}}), "'target_modules' is 3");
  expectContains(errorOf({{"target_modules", {3}}}), "'target_modules'");
  expectContains(errorOf({{"target_modules", "(q"}}), "'target_modules'");
  expectContains(errorOf({{"target_modules", {"lm_head"}}}),
                 "'target_modules'");
  expectContains(errorOf({{"rank_pattern", {{"q_proj", 0}}}}),
                 "'rank_pattern.q_proj' is 0");
  expectContains(errorOf({{"rank_pattern", {"q_proj"}}}), "'rank_pattern'");
  // Keys are a file's, too.
  expectContains(errorOf({{"rank_pattern", {{"q\n\x1b[1m", 0}}}}),
                 "'rank_pattern.q??[1m' is 0");
  expectContains(errorOf({{"alpha_pattern", {{"(\n", 1}}}}),
                 "'alpha_pattern.(?' is 1");
  EXPECT_FALSE(parsePeftConfig("[]", smallModel()).ok());
  EXPECT_FALSE(parsePeftConfig("{", smallModel()).ok());
  EXPECT_FALSE(parsePeftConfig("", smallModel()).ok());
}

TEST(PeftAdapter, IsRead) {
  TempFolder folder;
  const ModelConfig model = smallModel();
  const json config = smallConfig({"q_proj"});
  const auto adapter = PeftAdapter::open(
      writeAdapter(folder, config, tensorsFor(config, model)), model);
  ASSERT_TRUE(adapter.ok()) << adapter.message();
  const AdaptedModule &first = adapter->modules().front();
  EXPECT_EQ(adapter->a(first)->size(), 16u);
  EXPECT_EQ((*adapter->a(first))[3], 4);
  EXPECT_EQ((*adapter->b(first))[2], 103);
  EXPECT_EQ(adapter->bytes(), 2u * 2 * 16 * 4);
}

/// What is said of an adapter with other tensors.
std::string errorOfTensors(const std::function<void(Tensors &)> &change) {
  TempFolder folder;
  const ModelConfig model = smallModel();
  const json config = smallConfig({"q_proj"});
  Tensors tensors = tensorsFor(config, model);
  change(tensors);
  const auto adapter =
      PeftAdapter::open(writeAdapter(folder, config, tensors), model);
  EXPECT_FALSE(adapter.ok());
  EXPECT_EQ(adapter.message().find('\n'), std::string::npos);
  expectContains(adapter.message(), "adapter_model.safetensors");
  return adapter.message();
}

TEST(PeftAdapter, ChecksItsTensors) {
  const std::string a = "base_model.model." + kQuery + ".lora_A.weight";
  expectContains(errorOfTensors([&](Tensors &tensors) { tensors.erase(a); }),
                 "q_proj.lora_A.weight");
  expectContains(
      errorOfTensors([&](Tensors &tensors) { tensors[a] = counting(8, 2, 0); }),
      "has shape [8, 2], but the configuration and the model imply "
      "[2, 8]");
  expectContains(errorOfTensors([&](Tensors &tensors) {
                   tensors["base_model.model.lm_head.lora_A.weight"] =
                       counting(2, 8, 0);
                 }),
                 "'base_model.model.lm_head.lora_A.weight' is of no module");
  expectContains(errorOfTensors([&](Tensors &tensors) {
                   tensors[a] = HostTensor::zeros(DataType::U8, {2, 8}).take();
                 }),
                 "has type ui8; f32, f16 and bf16 are read");
}

TEST(PeftAdapter, RefusesNumbersThatAreNotFinite) {
  TempFolder folder;
  const ModelConfig model = smallModel();
  const json config = smallConfig({"q_proj"});
  Tensors tensors = tensorsFor(config, model);
  tensors.begin()->second.data<float>()[1] = INFINITY;
  const auto adapter =
      PeftAdapter::open(writeAdapter(folder, config, tensors), model);
  ASSERT_TRUE(adapter.ok()) << adapter.message();
  const std::string error = adapter->a(adapter->modules().front()).message();
  expectContains(error, "not finite");
  expectContains(error, folder.path("adapter_model.safetensors"));
}

TEST(PeftAdapter, NamesFoldersThatAreNone) {
  TempFolder folder;
  const ModelConfig model = smallModel();
  expectContains(PeftAdapter::open(folder.path("no"), model).message(),
                 "it is no folder; one with adapter_config.json and "
                 "adapter_model.safetensors");
  const auto message = [&] {
    return PeftAdapter::open(folder.path(), model).message();
  };
  expectContains(message(),
                 "it holds no adapter_config.json, which PEFT writes");
  folder.write("checkpoint.json", "{}");
  expectContains(message(), "but is a checkpoint, which --resume reads");
  folder.write("config.json", "{}");
  expectContains(message(), "but is a model's folder");
  folder.write("adapter_config.json", smallConfig({"q_proj"}).dump());
  expectContains(PeftAdapter::open(folder.path(), model).message(),
                 "adapter_model.safetensors");
  folder.write("adapter_model.safetensors", "short");
  expectContains(PeftAdapter::open(folder.path(), model).message(),
                 "adapter_model.safetensors");
}

TEST(PeftAdapter, IsWrittenAsItIsRead) {
  TempFolder folder;
  const ModelConfig model = smallModel();
  const LoraConfig config{.rank = 3,
                          .alpha = 6,
                          .rankStabilized = true,
                          .targets = {"k_proj", "down_proj"},
                          .dropout = 0.05};
  const Tensors tensors =
      tensorsFor(smallConfig({"k_proj", "down_proj"}, /*rank=*/3), model);
  const std::string path = folder.path("new");
  ASSERT_EQ(writePeftAdapter(path, config, model, "base", tensors).message(),
            "");
  const auto adapter = PeftAdapter::open(path, model);
  ASSERT_TRUE(adapter.ok()) << adapter.message();
  ASSERT_EQ(adapter->modules().size(), 4u);
  for (const AdaptedModule &each : adapter->modules()) {
    EXPECT_EQ(each.rank, 3);
    EXPECT_DOUBLE_EQ(each.scale, config.scale());
    EXPECT_EQ((*adapter->a(each))[0], 1);
    EXPECT_EQ((*adapter->b(each))[0], 101);
  }
  // Over one whose tensors cannot be replaced, nothing opens that is of both.
  const std::string old = folder.path("new/adapter_model.safetensors");
  std::filesystem::remove(old);
  std::filesystem::create_directories(old + "/in the way");
  EXPECT_FALSE(writePeftAdapter(path, config, model, "base", tensors).ok());
  EXPECT_FALSE(std::filesystem::exists(folder.path("new/adapter_config.json")));
  Tensors fewer = tensors;
  fewer.erase(fewer.begin());
  expectContains(
      writePeftAdapter(path, config, model, "base", fewer).message(),
      "the adapter lacks tensor 'base_model.model.model.layers.0.mlp.");
  fewer[tensors.begin()->first] = counting(1, 1, 0);
  expectContains(writePeftAdapter(path, config, model, "base", fewer).message(),
                 "has shape [1, 1]");
}

} // namespace
