//===- GgufModelsTest.cpp - Quantized models against their references -----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// models/kf-stories-gguf: files that llama.cpp made of kf-stories, and what
// float32 arithmetic on their exactly dequantized weights gives. The reference
// device and CPU code without VNNI compute the same; CPU code with it rounds
// rows to 8 bits.
//
//===----------------------------------------------------------------------===//

#include "ModelUnderTest.h"
#include "test/runtime/TestFiles.h"

#include "kf/Pipelines/Compiler.h"
#include "runtime/io/Gguf.h"
#include "runtime/text/Tokenizer.h"

#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

using namespace kf;
using namespace kf::test;

namespace {

const std::string models = testFile(KF_SOURCE_DIR "/models/");

nlohmann::json readJson(const std::string &path) {
  std::ifstream file(models + path);
  return nlohmann::json::parse(file);
}

/// `device` as ModelUnderTest takes it; `cpu` is what code is made for.
struct Case {
  std::string file, device, cpu;
};

class GgufModels : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    const Case &test = GetParam();
    isExact = test.device == "reference" || test.cpu != "native";
    KF_REQUIRE_DEVICE(test.cpu == "native" ? test.device : test.cpu);
    std::string path = models + "kf-stories-gguf/" + test.file;
    auto file = Gguf::open(path);
    ASSERT_TRUE(file.ok()) << file.message();
    auto read = Tokenizer::fromGguf(**file);
    ASSERT_TRUE(read.ok()) << read.message();
    tokenizer = std::make_unique<Tokenizer>(read.take());
    model = ModelUnderTest::open(path, test.device, 1, test.cpu);
    ASSERT_TRUE(model);
    expected = readJson("kf-stories-gguf/reference.json").at(test.file);
  }

  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ModelUnderTest> model;
  nlohmann::json expected;
  bool isExact = false; ///< weights and rows are not rounded further
};

/// 60 tokens after "Once upon a time"; the logits behind them.
TEST_P(GgufModels, GreedyTokensMatch) {
  auto prompt = tokenizer->encode("Once upon a time", /*addSpecial=*/true);
  ASSERT_TRUE(prompt.ok()) << prompt.message();
  auto wanted = expected.at("greedy_60").get<std::vector<int32_t>>();
  if (isGpu(GetParam().device)) // which add up in another order
    wanted.resize(40);
  const std::vector<int32_t> ids =
      model->continueGreedily(*prompt, wanted.size());
  if (isExact || isGpu(GetParam().device))
    EXPECT_EQ(ids, wanted);
  else // the first words are sure enough for 8 bits
    EXPECT_TRUE(std::equal(ids.begin(), ids.begin() + 9, wanted.begin()));
}

/// Mean negative log-likelihood of held-out stories, each between the begin and
/// the end token, without the context of the others.
TEST_P(GgufModels, HeldOutLikelihoodMatches) {
  if (isSlow(GetParam().device))
    GTEST_SKIP() << "the device is too slow for 22959 tokens";
  if (GetParam().device == "reference") {
#ifdef KF_SANITIZERS
    GTEST_SKIP() << "minutes long with sanitizers";
#endif
    // Half a minute each. Op conformance compares it with code for CPUs in
    // every format, and that code passes with each file.
    if (!GetParam().file.ends_with("Q4_K_M.gguf"))
      GTEST_SKIP() << "one file is enough for the reference";
  }
  HeldOut found =
      measureHeldOut(*model, *tokenizer, models + "kf-stories/heldout.json");
  EXPECT_EQ(found.tokens, expected.at("tokens").get<int64_t>());
  EXPECT_NEAR(found.nllPerToken,
              expected.at("heldout_nll_per_token").get<double>(),
              isExact ? 1e-5 : 0.002);
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const char *file : {"kf-stories-Q4_0.gguf", "kf-stories-Q8_0.gguf",
                           "kf-stories-Q4_K_M.gguf"}) {
    list.push_back({file, "reference", "native"});
    list.push_back({file, "cpu", "native"});
    list.push_back({file, "cpu", "x86-64-v3-f32"});
    for (const char *gpu : gpuDevices)
      list.push_back({file, gpu, "native"});
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(All, GgufModels, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case> &info) {
                           std::string name = info.param.file.substr(11) + "_" +
                                              info.param.device + "_" +
                                              info.param.cpu;
                           std::ranges::replace_if(
                               name, [](char c) { return !std::isalnum(c); },
                               '_');
                           return name;
                         });

} // namespace
