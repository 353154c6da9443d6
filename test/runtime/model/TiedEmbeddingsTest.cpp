//===- TiedEmbeddingsTest.cpp - Output matrices, shared and not -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/TiedEmbeddings.h"

#include "runtime/model/TensorList.h"

#include <gtest/gtest.h>

#include <map>

using namespace kf;

namespace {

constexpr int64_t rows = 5, columns = 4;

/// Tensors in memory, in the types that they were given in.
class MemoryWeights : public WeightSource {
public:
  void add(const std::string &name, HostTensor tensor) {
    tensors[name] = std::move(tensor);
  }
  void remove(const std::string &name) { tensors.erase(name); }

  Result<TensorView> find(const std::string &name) const override {
    auto found = tensors.find(name);
    if (found == tensors.end())
      return Status::error("no tensor '" + name + "'");
    const HostTensor &tensor = found->second;
    return TensorView{tensor.type, tensor.shape, tensor.bytes.data(),
                      tensor.bytes.size()};
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto &[name, tensor] : tensors)
      names.push_back(name);
    return names;
  }

private:
  std::map<std::string, HostTensor> tensors;
};

/// Numbers that all types have, the last one plus `change`.
HostTensor matrix(DataType type, float change = 0, int64_t count = rows) {
  HostTensor tensor = HostTensor::zeros(type, {count, columns}).take();
  std::vector<float> values(count * columns);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i) - 3;
  values.back() += change;
  EXPECT_TRUE(convertFromFloat(type, values.data(),
                               static_cast<int64_t>(values.size()),
                               tensor.bytes.data())
                  .ok());
  return tensor;
}

ModelConfig configOf(Architecture architecture) {
  ModelConfig config;
  config.architecture = architecture;
  config.tiedEmbeddings = true;
  return config;
}

struct Names {
  Architecture architecture;
  const char *table;
};
class TiedEmbeddings : public testing::TestWithParam<Names> {
protected:
  TiedEmbeddings() : config(configOf(GetParam().architecture)) {
    weights.add(GetParam().table, matrix(DataType::F32));
  }

  void settle() {
    Status status = settleTiedEmbeddings(config, weights);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  ModelConfig config;
  MemoryWeights weights;
};

TEST_P(TiedEmbeddings, StayWithoutAnOutputMatrix) {
  settle();
  EXPECT_TRUE(config.tiedEmbeddings && config.warnings.empty());
}

TEST_P(TiedEmbeddings, StayWhereBothAreEqual) {
  for (DataType type : {DataType::F32, DataType::BF16, DataType::F16}) {
    weights.add("lm_head.weight", matrix(type));
    settle();
    EXPECT_TRUE(config.tiedEmbeddings && config.warnings.empty());
  }
}

TEST_P(TiedEmbeddings, EndWhereOneNumberDiffers) {
  for (DataType type : {DataType::F32, DataType::BF16}) {
    config = configOf(GetParam().architecture);
    weights.add("lm_head.weight", matrix(type, 1));
    settle();
    EXPECT_FALSE(config.tiedEmbeddings);
    ASSERT_EQ(config.warnings.size(), 1u);
    EXPECT_NE(config.warnings[0].find("'lm_head.weight' differs from '" +
                                      std::string(GetParam().table) + "'"),
              std::string::npos)
        << config.warnings[0];
    // Once is enough.
    settle();
    EXPECT_EQ(config.warnings.size(), 1u);
  }
}

/// Zeros have two signs, and one value.
TEST_P(TiedEmbeddings, CompareNumbersNotBytes) {
  HostTensor head = matrix(DataType::F32);
  ASSERT_EQ(head.data<float>()[3], 0.0f);
  head.data<float>()[3] = -0.0f;
  weights.add("lm_head.weight", head);
  settle();
  EXPECT_TRUE(config.tiedEmbeddings);
}

TEST_P(TiedEmbeddings, EndWhereShapesDiffer) {
  weights.add("lm_head.weight", matrix(DataType::F32, 0, rows + 1));
  settle();
  EXPECT_FALSE(config.tiedEmbeddings);
}

TEST_P(TiedEmbeddings, AreNotMadeOfUntiedOnes) {
  config.tiedEmbeddings = false;
  weights.add("lm_head.weight", matrix(DataType::F32));
  settle();
  EXPECT_FALSE(config.tiedEmbeddings);
  EXPECT_TRUE(config.warnings.empty());
}

/// findTensors takes the one matrix that there is, under either name.
TEST_P(TiedEmbeddings, MayHaveTheHeadsNameAlone) {
  config.hiddenSize = columns;
  config.vocabSize = rows;
  weights.remove(GetParam().table);
  weights.add("lm_head.weight", matrix(DataType::F32));
  for (const ListedTensor &tensor : listTensors(config))
    if (tensor.name != GetParam().table)
      weights.add(tensor.name,
                  HostTensor::zeros(DataType::F32, tensor.shape).take());
  settle();
  EXPECT_TRUE(config.tiedEmbeddings);
  auto found = findTensors(config, weights);
  ASSERT_TRUE(found.ok()) << found.message();
  EXPECT_EQ(found->front().name, "lm_head.weight");
  weights.remove("lm_head.weight");
  EXPECT_EQ(findTensors(config, weights).message(),
            "no tensor '" + std::string(GetParam().table) + "'");
}

INSTANTIATE_TEST_SUITE_P(
    All, TiedEmbeddings,
    testing::Values(Names{Architecture::Llama, "model.embed_tokens.weight"},
                    Names{Architecture::Gpt2, "transformer.wte.weight"}),
    [](const testing::TestParamInfo<Names> &info) {
      return std::string(nameOf(info.param.architecture));
    });

/// Checkpoints of the bare model lack the prefix.
TEST(TiedEmbeddingsOfBareModels, AreFound) {
  ModelConfig config = configOf(Architecture::Gpt2);
  MemoryWeights weights;
  weights.add("wte.weight", matrix(DataType::F32));
  weights.add("lm_head.weight", matrix(DataType::F32, 1));
  ASSERT_TRUE(settleTiedEmbeddings(config, weights).ok());
  EXPECT_FALSE(config.tiedEmbeddings);
}

} // namespace
