//===- EmbeddingsTest.cpp - Rows of the last layer on every device --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The embedding of a token is what the output matrix multiplies: its products
// have to be the logits that Hugging Face's transformers computes
// (test/golden/reference.json), on every device.
//
//===----------------------------------------------------------------------===//

#include "ModelUnderTest.h"
#include "test/runtime/TestFiles.h"

#include "runtime/model/TensorList.h"

#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

using namespace kf;
using namespace kf::test;

namespace {

const std::string goldenFolder = testFile(KF_SOURCE_DIR "/test/golden/");

class Embeddings : public testing::TestWithParam<ModelCase> {
protected:
  using Row = std::vector<float>;

  void SetUp() override {
    KF_REQUIRE_DEVICE(GetParam().device);
    std::ifstream file(goldenFolder + "reference.json");
    reference = nlohmann::json::parse(file).at(GetParam().model);
    ids = reference.at("ids").get<std::vector<int32_t>>();
    // As the golden models' logits, and what a few sums more add.
    tolerance = isGpu(GetParam().device) ? 1e-3 : 2e-4;
    if (GetParam().device == "cuda" && GetParam().model == "llama-float8")
      tolerance = 5e-3;
    model = open({.parallel = 4, .reusesPrefixes = false});
    ASSERT_TRUE(model);
  }

  static std::unique_ptr<ModelUnderTest> open(const EngineOptions &options) {
    return ModelUnderTest::open(goldenFolder + GetParam().model,
                                GetParam().device, GetParam().threads, "native",
                                options);
  }

  static Row embed(ModelUnderTest &model, std::span<const int32_t> text,
                   const EmbeddingOptions &options) {
    const auto sequence = model.sequence();
    Sampler sampler = Sampler::create({}).take();
    GenerationOptions wanted;
    wanted.embedding = options;
    auto result =
        generate(*sequence, sampler, nullptr, text, std::move(wanted));
    EXPECT_TRUE(result.ok()) << result.message();
    return result.ok() ? std::move(result->embedding) : Row();
  }
  Row embed(const EmbeddingOptions &options) {
    return embed(*model, ids, options);
  }

  size_t width() const {
    return static_cast<size_t>(model->config().hiddenSize);
  }

  /// The output matrix, or the table that is one, as float.
  Row outputMatrix() {
    const ModelConfig &config = model->config();
    const TensorNames &names = tensorNames(config);
    const std::string key =
        std::string(config.tiedEmbeddings ? names.embedding : names.head) +
        ".weight";
    auto tensors = findTensors(config, model->source());
    EXPECT_TRUE(tensors.ok()) << tensors.message();
    for (const ListedTensor &tensor : *tensors) {
      if (tensor.key != key)
        continue;
      const TensorView view = model->source().find(tensor.name).take();
      Row values(static_cast<size_t>(config.vocabSize) * width());
      EXPECT_TRUE(convertToFloat(view.type, view.data,
                                 static_cast<int64_t>(values.size()),
                                 values.data())
                      .ok());
      return values;
    }
    ADD_FAILURE() << "no " << key;
    return Row();
  }

  static void expectNear(const Row &got, std::span<const float> wanted,
                         double tolerance) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i],
                  tolerance * std::max(1.0, std::abs(double(wanted[i]))))
          << i;
  }

  nlohmann::json reference;
  std::vector<int32_t> ids;
  double tolerance = 0;
  std::unique_ptr<ModelUnderTest> model;
};

TEST_P(Embeddings, AreWhatTheOutputMatrixMultiplies) {
  const auto expected = reference.at("last_logits").get<std::vector<double>>();
  const Row row = embed({Pooling::Last, false}), matrix = outputMatrix();
  ASSERT_EQ(row.size(), width());
  ASSERT_EQ(matrix.size(), expected.size() * width());
  for (size_t v = 0; v < expected.size(); ++v) {
    double logit = 0;
    for (size_t i = 0; i < width(); ++i)
      logit += double(row[i]) * matrix[v * width() + i];
    ASSERT_NEAR(logit, expected[v], tolerance) << "logit " << v;
  }
}

/// Pooled rows are those of the tokens, computed plainly.
TEST_P(Embeddings, PoolTheRowsOfTokens) {
  const Row rows = embed({Pooling::None, false});
  const size_t tokens = ids.size();
  ASSERT_EQ(rows.size(), tokens * width());
  auto rowOf = [&](size_t token) {
    return std::span(rows).subspan(token * width(), width());
  };
  expectNear(embed({Pooling::Last, false}), rowOf(tokens - 1), tolerance);
  expectNear(embed({Pooling::Cls, false}), rowOf(0), tolerance);
  Row mean(width());
  for (size_t i = 0; i < width(); ++i) {
    double sum = 0;
    for (size_t token = 0; token < tokens; ++token)
      sum += rowOf(token)[i];
    mean[i] = static_cast<float>(sum / static_cast<double>(tokens));
  }
  expectNear(embed({Pooling::Mean, false}), mean, 1e-6);
  double squares = 0;
  for (float value : mean)
    squares += double(value) * value;
  for (float &value : mean)
    value = static_cast<float>(value / std::sqrt(squares));
  expectNear(embed({Pooling::Mean, true}), mean, 1e-6);
}

/// Steps of few rows give the same, and so do texts beside others that
/// generate.
TEST_P(Embeddings, DoNotDependOnSteps) {
  const Row whole = embed({Pooling::None, false});
  const double near = tolerance / 2;
  for (int64_t rows : {1, 7}) {
    const auto other = open({.rowsPerStep = rows});
    ASSERT_TRUE(other);
    expectNear(embed(*other, ids, {Pooling::None, false}), whole, near);
  }
  const auto greedy = reference.at("greedy_20").get<std::vector<int32_t>>();
  const auto text = model->sequence();
  Sampler sampler = Sampler::create({}).take();
  GenerationOptions options;
  options.maxTokens = static_cast<int64_t>(greedy.size());
  Generation generation(*text, sampler, nullptr, options);
  ASSERT_TRUE(generation.start(ids).ok());
  for (int i = 0; i < 3; ++i)
    model->engine().step();
  EXPECT_FALSE(generation.isDone());
  expectNear(embed({Pooling::None, false}), whole, near);
  expectNear(embed({Pooling::Last, false}), std::span(whole).last(width()),
             near);
  while (!generation.isDone())
    model->engine().step();
  auto result = generation.take();
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->ids, greedy);
}

INSTANTIATE_TEST_SUITE_P(
    All, Embeddings,
    testing::ValuesIn(casesOf(
        {"llama2-mha", "llama3-gqa-scaled", "llama-bias", "mistral-window",
         "qwen2-bias", "qwen3-qknorm", "gpt2-layernorm", "llama-own-head",
         "llama-head-alone", "gpt2-own-head", "llama-float8"})),
    caseName);

} // namespace
