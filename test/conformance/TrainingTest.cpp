//===- TrainingTest.cpp - Training against PyTorch, and itself ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Losses, gradients and updates of kf-stories are those that PyTorch has
// computed in float64 (training/torch.json, by torch_training.py); of a small
// model, what has to be the same is: batches that are added up and one of both,
// examples in one row and apart, adapters beside blocks and beside what these
// stand for.
//
//===----------------------------------------------------------------------===//

#include "kf/Driver/CompiledTraining.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/SafetensorsWriter.h"
#include "runtime/model/DummyWeights.h"
#include "test/runtime/CudaRequirement.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/TempFile.h"
#include "test/runtime/TestFiles.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

using namespace kf;
using namespace kf::test;

namespace {

using Model = std::unique_ptr<CompiledTrainingModel>;

/// As torch_training.py has it.
uint32_t mixed(uint32_t argument, uint32_t i) {
  uint32_t state = i * 2654435761u + argument * 974711u + 12345u;
  state ^= state >> 15;
  state *= 2246822519u;
  return state ^ (state >> 13);
}

/// A row of examples of `lengths` tokens, whose ids are those of the numbers
/// from `first` on.
void addRow(TrainingBatch &batch, const std::vector<int> &lengths,
            uint32_t number, uint32_t first, uint32_t vocabulary) {
  ++batch.rows;
  int64_t used = 0;
  for (size_t example = 0; example < lengths.size(); ++example)
    for (int i = 0; i < lengths[example]; ++i, ++used) {
      const auto token = first + static_cast<uint32_t>(used);
      batch.ids.push_back(
          static_cast<int32_t>(mixed(number, token) % vocabulary));
      batch.positions.push_back(i);
      batch.examples.push_back(static_cast<int32_t>(example));
      const bool isLabeled = i >= 2 && i + 1 < lengths[example];
      batch.labels.push_back(
          isLabeled
              ? static_cast<int32_t>(mixed(number, token + 1) % vocabulary)
              : kNoLabel);
    }
  for (; used < batch.length; ++used) {
    batch.ids.push_back(0);
    batch.positions.push_back(0);
    batch.examples.push_back(-1);
    batch.labels.push_back(kNoLabel);
  }
}

int64_t labelsOf(const TrainingBatch &batch) {
  return std::ranges::count_if(batch.labels, [](int32_t x) { return x >= 0; });
}

std::vector<float> toFloats(const HostTensor &tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.elementCount()};
}

double largest(const std::vector<float> &values) {
  double most = 0;
  for (float value : values)
    most = std::max<double>(most, std::fabs(value));
  return most;
}

void expectNear(const std::vector<float> &found,
                const std::vector<float> &expected, double tolerance,
                const std::string &what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  const double most = largest(expected) + 1e-6;
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], tolerance * most)
        << "element " << i << " of " << what;
}

/// Tensors in memory.
class HeldWeights : public WeightSource {
public:
  Result<TensorView> find(const std::string &name) const override {
    const auto found = tensors.find(name);
    if (found == tensors.end())
      return Status::error("there is no tensor '" + name + "'");
    const HostTensor &tensor = found->second;
    return TensorView{tensor.type, tensor.shape, tensor.bytes.data(),
                      tensor.bytes.size()};
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> list;
    for (const auto &[name, tensor] : tensors)
      list.push_back(name);
    return list;
  }

  std::map<std::string, HostTensor> tensors;
};

/// The tensors of `source` as f32.
std::unique_ptr<HeldWeights> widened(const WeightSource &source) {
  auto held = std::make_unique<HeldWeights>();
  for (const std::string &name : source.names()) {
    const TensorView view = source.find(name).take();
    HostTensor tensor = HostTensor::zeros(DataType::F32, view.shape).take();
    EXPECT_TRUE(succeeds(convertToFloat(
        view.type, view.data, tensor.elementCount(), tensor.data<float>())));
    held->tensors[name] = std::move(tensor);
  }
  return held;
}

//===----------------------------------------------------------------------===//
// kf-stories
//===----------------------------------------------------------------------===//

constexpr int64_t kRows = 2, kLength = 24, kKept = 12, kUpdates = 3;
constexpr uint32_t kVocabulary = 1477;
constexpr float kRate = 1e-3f;

TrainingBatch makeBatch(uint32_t number) {
  TrainingBatch batch;
  batch.length = kLength;
  addRow(batch, {9, 11}, number, 0, kVocabulary);
  addRow(batch, {24}, number, kLength, kVocabulary);
  return batch;
}

TrainingOptions storiesOptions(const std::string &device) {
  TrainingOptions options;
  options.model.path = testFile(KF_SOURCE_DIR "/models/kf-stories");
  options.withTokenizer = false;
  options.device = {.device = device, .threads = device == "cpu" ? 2 : 0};
  options.rows = kRows;
  options.length = kLength;
  options.optimizer.beta2 = 0.95;
  options.optimizer.weightDecay = 0.1;
  return options;
}

/// kf-stories in f32: beside weights of bf16, the CPU may round rows to that.
Result<ModelFiles> openWideStories(bool withTokenizer) {
  KF_ASSIGN_OR_RETURN(
      ModelFiles files,
      openModelFiles(testFile(KF_SOURCE_DIR "/models/kf-stories"),
                     withTokenizer));
  files.weights = widened(*files.weights);
  return files;
}

Model openOrFail(const TrainingOptions &options,
                 const OpenEmbedded &embedded = nullptr) {
  auto model = openTraining(options, {}, embedded);
  EXPECT_TRUE(model.ok()) << model.message();
  return model.ok() ? model.take() : nullptr;
}

std::vector<float> kept(const HostTensor &tensor) {
  const std::vector<float> all = toFloats(tensor);
  std::vector<float> some;
  for (size_t i = 0; i < all.size(); i += all.size() / kKept + 1)
    some.push_back(all[i]);
  return some;
}

class Stories : public testing::TestWithParam<const char *> {
protected:
  static bool isOnCuda() { return std::string_view(GetParam()) == "cuda"; }

  static nlohmann::json golden() {
    std::ifstream stream(
        testFile(KF_SOURCE_DIR "/test/conformance/training/torch.json"));
    return nlohmann::json::parse(stream);
  }

  /// Three updates, and before these the gradients of the first batch. Matrix
  /// units of a GPU multiply f32 as two numbers of bf16.
  static void expectTorchs(CompiledTrainingModel &model,
                           const nlohmann::json &golden) {
    const double looser = isOnCuda() ? 4 : 1;
    auto loss = model.accumulate(makeBatch(0), nullptr);
    ASSERT_TRUE(loss.ok()) << loss.message();
    EXPECT_NEAR(loss->sum, golden["loss"].get<double>(),
                looser * 1e-5 * golden["loss"].get<double>());
    for (size_t i = 0; i < model.trained().size(); ++i) {
      const std::string &name = model.trained()[i].name;
      auto gradient = model.readGradient(i);
      ASSERT_TRUE(gradient.ok()) << gradient.message();
      expectNear(kept(*gradient),
                 golden["gradients"][name].get<std::vector<float>>(),
                 looser * 1e-4, "the gradient of " + name);
    }
    // It is cleared without a trace.
    ASSERT_TRUE(
        succeeds(model.update({.learningRate = 0, .labels = 1}).status()));
    for (const std::string &name : model.stateNames())
      if (name.ends_with("_moment")) {
        const HostTensor zeros =
            HostTensor::zeros(DataType::F32, model.readState(name)->shape)
                .take();
        ASSERT_TRUE(succeeds(model.writeState(name, zeros)));
      }
    model.setUpdates(0);
    for (uint32_t update = 0; update < kUpdates; ++update) {
      const TrainingBatch batch = makeBatch(update);
      auto sum = model.accumulate(batch, nullptr);
      ASSERT_TRUE(sum.ok()) << sum.message();
      EXPECT_EQ(sum->labels, labelsOf(batch));
      const double expected = golden["losses"][update].get<double>();
      EXPECT_NEAR(sum->sum, expected, 1e-4 * expected) << "update " << update;
      auto norm = model.update({.learningRate = kRate, .labels = sum->labels});
      ASSERT_TRUE(norm.ok()) << norm.message();
      const double length = golden["norms"][update].get<double>();
      EXPECT_NEAR(*norm, length, looser * 1e-3 * length) << "update " << update;
    }
    for (const TrainedTensor &tensor : model.trained())
      expectNear(kept(*model.readState(tensor.name)),
                 golden["values"][tensor.name].get<std::vector<float>>(),
                 looser * 2e-3, tensor.name);
  }
};

TEST_P(Stories, FullTrainingIsPyTorchs) {
  if (isOnCuda())
    KF_REQUIRE_CUDA();
  Model model = openOrFail(storiesOptions(GetParam()));
  ASSERT_TRUE(model);
  expectTorchs(*model, golden()["full"]);
}

TEST_P(Stories, AdaptersArePyTorchs) {
  if (isOnCuda())
    KF_REQUIRE_CUDA();
  TrainingOptions options = storiesOptions(GetParam());
  options.lora =
      LoraConfig{.rank = 4,
                 .alpha = 8,
                 .targets = {"self_attn.q_proj", "v_proj", "down_proj"}};
  options.model.path.clear();
  Model model = openOrFail(options, openWideStories);
  ASSERT_TRUE(model);
  for (size_t i = 0; i < model->trained().size(); ++i) {
    const TrainedTensor &tensor = model->trained()[i];
    HostTensor value = HostTensor::zeros(DataType::F32, tensor.shape).take();
    for (int64_t k = 0; k < value.elementCount(); ++k) {
      const uint32_t number =
          mixed(static_cast<uint32_t>(i), static_cast<uint32_t>(k));
      value.data<float>()[k] =
          ((static_cast<float>(number % 48) + 0.5f) / 24.0f - 1.0f) / 16.0f;
    }
    ASSERT_TRUE(succeeds(model->writeState(tensor.name, value)));
  }
  expectTorchs(*model, golden()["lora"]);
}

INSTANTIATE_TEST_SUITE_P(Devices, Stories,
                         testing::Values("cpu", "reference", "cuda"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

//===----------------------------------------------------------------------===//
// A small model
//===----------------------------------------------------------------------===//

constexpr uint32_t kSmallVocabulary = 96;

constexpr char kSmallConfig[] = R"({
  "model_type": "llama", "hidden_size": 256, "intermediate_size": 256,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 64, "vocab_size": 96, "max_position_embeddings": 64,
  "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
  "tie_word_embeddings": false})";

/// Random weights, the matrices of its layers rounded to blocks of `type`, in
/// these blocks or as the numbers that they stand for.
std::unique_ptr<WeightSource> smallWeights(const ModelConfig &config,
                                           DataType type, bool asBlocks) {
  const auto random =
      DummyWeights::create(config, DataType::F32, /*seed=*/1).take();
  std::unique_ptr<HeldWeights> held = widened(*random);
  for (auto &[name, tensor] : held->tensors) {
    if (!isBlock(type) || name.find("_proj") == std::string::npos)
      continue;
    HostTensor blocks = HostTensor::zeros(type, tensor.shape).take();
    const int64_t count = tensor.elementCount() / elementsPerBlock(type);
    quantizeBlocks(type, tensor.data<float>(), count, blocks.bytes.data());
    dequantizeBlocks(type, blocks.bytes.data(), count, tensor.data<float>());
    if (asBlocks)
      tensor = std::move(blocks);
  }
  return held;
}

OpenEmbedded openSmall(DataType type = DataType::F32, bool asBlocks = false) {
  return [=](bool) -> Result<ModelFiles> {
    ModelFiles files;
    files.name = "small";
    KF_ASSIGN_OR_RETURN(files.config, parseModelConfig(kSmallConfig));
    files.configText = kSmallConfig;
    files.weights = smallWeights(files.config, type, asBlocks);
    return files;
  };
}

TrainingOptions smallOptions(int64_t rows, int64_t length) {
  TrainingOptions options;
  options.withTokenizer = false;
  options.device = {.device = "cpu", .threads = 2};
  options.rows = rows;
  options.length = length;
  return options;
}

LoraConfig allLinear() {
  return {.rank = 8, .alpha = 16, .targets = {std::string(kAllLinear)}};
}

using Gradients = std::vector<std::vector<float>>;

Gradients gradientsOf(CompiledTrainingModel &model) {
  Gradients all;
  for (size_t i = 0; i < model.trained().size(); ++i)
    all.push_back(toFloats(*model.readGradient(i)));
  return all;
}

void expectSame(const CompiledTrainingModel &model, const Gradients &found,
                const Gradients &expected, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i)
    expectNear(found[i], expected[i], tolerance, model.trained()[i].name);
}

TEST(Training, BatchesAddUp) {
  TrainingBatch both, first, second;
  both.length = first.length = second.length = 16;
  addRow(both, {16}, 1, 0, kSmallVocabulary);
  addRow(both, {7, 6}, 1, 40, kSmallVocabulary);
  addRow(first, {16}, 1, 0, kSmallVocabulary);
  addRow(second, {7, 6}, 1, 40, kSmallVocabulary);
  Model wide = openOrFail(smallOptions(2, 16), openSmall());
  Model narrow = openOrFail(smallOptions(1, 16), openSmall());
  ASSERT_TRUE(wide && narrow);
  const double sum = wide->accumulate(both, nullptr)->sum;
  TrainingLoss apart = narrow->accumulate(first, nullptr).take();
  apart += narrow->accumulate(second, nullptr).take();
  EXPECT_NEAR(apart.sum, sum, 1e-5 * sum);
  EXPECT_EQ(apart.labels, labelsOf(both));
  expectSame(*wide, gradientsOf(*narrow), gradientsOf(*wide), 1e-5);
  // What an update clears is not added to.
  ASSERT_TRUE(
      succeeds(narrow->update({.learningRate = 0, .labels = 1}).status()));
  ASSERT_TRUE(succeeds(narrow->accumulate(first, nullptr).status()));
  ASSERT_TRUE(succeeds(narrow->accumulate(second, nullptr).status()));
  expectSame(*wide, gradientsOf(*narrow), gradientsOf(*wide), 1e-5);
}

// What is computed again is made by the same ops of the same values. Dropout
// leaves the same out, too.
TEST(Training, LayersComputedAgainHaveTheSameBits) {
  TrainingBatch batch;
  batch.length = 48;
  for (uint32_t row = 0; row < 4; ++row)
    addRow(batch, {27, 21}, 6, 50 * row, kSmallVocabulary);
  for (const bool isFull : {false, true}) {
    SCOPED_TRACE(isFull ? "all weights" : "adapters");
    TrainingOptions options = smallOptions(4, 48);
    if (!isFull) {
      options.lora = allLinear();
      options.lora->dropout = 0.25;
    }
    Model stored = openOrFail(options, openSmall());
    options.recompute = Recompute::Layers;
    Model again = openOrFail(options, openSmall());
    ASSERT_TRUE(stored && again);
    // Adapters add nothing before the first update.
    for (int update = 0; update < 3; ++update) {
      const TrainingLoss expected = stored->accumulate(batch, nullptr).take();
      const TrainingLoss loss = again->accumulate(batch, nullptr).take();
      EXPECT_EQ(loss.sum, expected.sum) << "update " << update;
      EXPECT_EQ(gradientsOf(*again), gradientsOf(*stored))
          << "update " << update;
      for (Model *model : {&stored, &again})
        ASSERT_TRUE(succeeds(
            (*model)
                ->update({.learningRate = 1e-3f, .labels = loss.labels})
                .status()));
    }
    EXPECT_LT(again->arenaBytes(), stored->arenaBytes());
  }
}

TEST(Training, ExamplesOfARowDoNotSeeOneAnother) {
  TrainingBatch packed, apart;
  packed.length = apart.length = 16;
  addRow(packed, {9, 7}, 2, 0, kSmallVocabulary);
  addRow(packed, {5}, 2, 30, kSmallVocabulary);
  addRow(apart, {9}, 2, 0, kSmallVocabulary);
  addRow(apart, {7}, 2, 9, kSmallVocabulary);
  // The leftovers are other tokens, which nothing depends on.
  std::fill(apart.ids.begin() + 9, apart.ids.begin() + 16, 50);
  Model model = openOrFail(smallOptions(2, 16), openSmall());
  ASSERT_TRUE(model);
  // Without the labels of the third example.
  std::fill(packed.labels.begin() + 16, packed.labels.end(), kNoLabel);
  const double sum = model->accumulate(packed, nullptr)->sum;
  const Gradients expected = gradientsOf(*model);
  ASSERT_TRUE(
      succeeds(model->update({.learningRate = 0, .labels = 1}).status()));
  EXPECT_NEAR(model->accumulate(apart, nullptr)->sum, sum, 1e-5 * sum);
  expectSame(*model, gradientsOf(*model), expected, 1e-5);
}

TEST(Training, OverfitsOneBatch) {
  for (const auto kind :
       {OptimizerOptions::Kind::AdamW, OptimizerOptions::Kind::Sgd}) {
    TrainingOptions options = smallOptions(2, 16);
    options.optimizer.kind = kind;
    Model model = openOrFail(options, openSmall());
    ASSERT_TRUE(model);
    TrainingBatch batch;
    batch.length = 16;
    addRow(batch, {16}, 3, 0, kSmallVocabulary);
    addRow(batch, {16}, 3, 16, kSmallVocabulary);
    const double before = model->evaluate(batch, nullptr)->mean();
    const float rate = kind == OptimizerOptions::Kind::Sgd ? 0.1f : 2e-3f;
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(succeeds(model->accumulate(batch, nullptr).status()));
      ASSERT_TRUE(succeeds(
          model->update({.learningRate = rate, .labels = labelsOf(batch)})
              .status()));
    }
    const double after = model->evaluate(batch, nullptr)->mean();
    EXPECT_LT(after, before / 4) << "from " << before;
    EXPECT_EQ(model->updates(), 30);
  }
}

TEST(Training, GradientsWithoutAFiniteNormChangeNothing) {
  for (const auto kind :
       {OptimizerOptions::Kind::AdamW, OptimizerOptions::Kind::Sgd}) {
    TrainingOptions options = smallOptions(1, 16);
    options.optimizer.kind = kind;
    Model model = openOrFail(options, openSmall());
    ASSERT_TRUE(model);
    TrainingBatch batch;
    batch.length = 16;
    addRow(batch, {16}, 8, 0, kSmallVocabulary);
    const TrainingUpdate update = {.learningRate = 1e-2f,
                                   .labels = labelsOf(batch)};
    ASSERT_TRUE(succeeds(model->accumulate(batch, nullptr).status()));
    ASSERT_TRUE(succeeds(model->update(update).status()));
    // Losses and gradients are finite, the squares of these are not.
    auto head = model->readState("lm_head.weight");
    ASSERT_TRUE(head.ok()) << head.message();
    const HostTensor usual = *head;
    for (int64_t i = 0; i < head->elementCount(); ++i)
      head->data<float>()[i] *= 1e25f;
    ASSERT_TRUE(succeeds(model->writeState("lm_head.weight", *head)));
    auto states = [&] {
      std::map<std::string, std::vector<float>> all;
      for (const std::string &name : model->stateNames()) {
        auto state = model->readState(name);
        EXPECT_TRUE(state.ok()) << state.message();
        if (state.ok())
          all[name] = toFloats(*state);
      }
      return all;
    };
    const auto before = states();
    ASSERT_TRUE(succeeds(model->accumulate(batch, nullptr).status()));
    EXPECT_TRUE(failsWith(model->update(update).status(), "is not finite"));
    EXPECT_EQ(states(), before);
    EXPECT_EQ(model->updates(), 1);
    ASSERT_TRUE(succeeds(model->writeState("lm_head.weight", usual)));
    EXPECT_TRUE(
        failsWith(model->update({.learningRate = NAN, .labels = 1}).status(),
                  "an update with learning rate nan"));
    // What could not be used is gone.
    ASSERT_TRUE(succeeds(model->accumulate(batch, nullptr).status()));
    EXPECT_TRUE(succeeds(model->update(update).status()));
    EXPECT_EQ(model->updates(), 2);
  }
}

TEST(Training, AFailedBatchLeavesNoGradients) {
  Model model = openOrFail(smallOptions(1, 16), openSmall());
  ASSERT_TRUE(model);
  TrainingBatch batch;
  batch.length = 16;
  addRow(batch, {16}, 8, 0, kSmallVocabulary);
  ASSERT_TRUE(succeeds(model->accumulate(batch, nullptr).status()));
  const Gradients expected = gradientsOf(*model);
  // A batch that is refused changes nothing.
  TrainingBatch wrong = batch;
  wrong.ids[0] = -1;
  EXPECT_FALSE(model->accumulate(wrong, nullptr).ok());
  expectSame(*model, gradientsOf(*model), expected, 0);
  auto head = model->readState("lm_head.weight");
  ASSERT_TRUE(head.ok()) << head.message();
  const HostTensor usual = *head;
  head->data<float>()[3] = NAN;
  ASSERT_TRUE(succeeds(model->writeState("lm_head.weight", *head)));
  EXPECT_TRUE(failsWith(model->accumulate(batch, nullptr).status(),
                        "the loss is not finite"));
  ASSERT_TRUE(succeeds(model->writeState("lm_head.weight", usual)));
  ASSERT_TRUE(succeeds(model->accumulate(batch, nullptr).status()));
  expectSame(*model, gradientsOf(*model), expected, 1e-6);
  const std::atomic<bool> cancelled = true;
  EXPECT_TRUE(model->accumulate(batch, &cancelled).status().isCancelled());
  ASSERT_TRUE(succeeds(model->accumulate(batch, nullptr).status()));
  expectSame(*model, gradientsOf(*model), expected, 1e-6);
}

TEST(Training, NumbersThatNoUpdateCanBeMadeWith) {
  TrainingOptions options = smallOptions(1, 16);
  options.optimizer.beta1 = 1;
  EXPECT_TRUE(failsWith(openTraining(options, {}, openSmall()).status(),
                        "--beta1 is 1; a number from 0 to below 1 is"));
  options = smallOptions(int64_t(1) << 40, int64_t(1) << 40);
  EXPECT_TRUE(failsWith(openTraining(options, {}, openSmall()).status(),
                        "batches of 1099511627776 rows"));
  Model model = openOrFail(smallOptions(1, 16), openSmall());
  ASSERT_TRUE(model);
  EXPECT_TRUE(failsWith(
      model->update({.learningRate = -1e-3f, .labels = 1}).status(),
      "an update with learning rate -0.001; a finite number of at least 0"));
}

TEST(Training, AdaptersBesideBlocksAreThoseBesideTheirNumbers) {
  TrainingBatch batch;
  batch.length = 16;
  addRow(batch, {9, 7}, 4, 0, kSmallVocabulary);
  TrainingOptions options = smallOptions(1, 16);
  options.lora = allLinear();
  for (const DataType type : {DataType::Q8_0, DataType::Q4_0, DataType::Q4_K}) {
    SCOPED_TRACE(std::string(nameOf(type)));
    Model blocks = openOrFail(options, openSmall(type, /*asBlocks=*/true));
    Model floats = openOrFail(options, openSmall(type, /*asBlocks=*/false));
    ASSERT_TRUE(blocks && floats);
    auto found = blocks->accumulate(batch, nullptr);
    auto expected = floats->accumulate(batch, nullptr);
    ASSERT_TRUE(found.ok() && expected.ok());
    // Rows beside blocks are rounded to 8 bits.
    EXPECT_NEAR(found->sum, expected->sum, 5e-3 * expected->sum);
    expectSame(*blocks, gradientsOf(*blocks), gradientsOf(*floats), 5e-2);
  }
}

TEST(Training, DropoutFollowsFromTheSeedAndTheBatchsPlace) {
  TrainingBatch batch;
  batch.length = 16;
  addRow(batch, {9, 7}, 4, 0, kSmallVocabulary);
  TrainingOptions options = smallOptions(1, 16);
  options.lora = allLinear();
  options.lora->dropout = 0.5;
  options.seed = 3;
  Model model = openOrFail(options, openSmall()),
        other = openOrFail(options, openSmall());
  ASSERT_TRUE(model && other);
  auto gradientsFrom = [&](CompiledTrainingModel &from) {
    EXPECT_TRUE(succeeds(from.accumulate(batch, nullptr).status()));
    return gradientsOf(from);
  };
  auto update = [](CompiledTrainingModel &of) {
    EXPECT_TRUE(succeeds(of.update({.learningRate = 0, .labels = 1}).status()));
  };
  const Gradients first = gradientsFrom(*model), both = gradientsFrom(*model);
  Gradients twice = first;
  for (std::vector<float> &gradient : twice)
    for (float &value : gradient)
      value *= 2;
  EXPECT_NE(both, twice) << "the second batch of an update is drawn anew";
  update(*model);
  const Gradients next = gradientsFrom(*model);
  EXPECT_NE(next, first) << "and so is that of the next update";
  // The same to the last bit, also where it goes on behind an update.
  EXPECT_EQ(gradientsFrom(*other), first);
  EXPECT_EQ(gradientsFrom(*other), both);
  update(*other);
  other->setUpdates(1);
  EXPECT_EQ(gradientsFrom(*other), next);
  options.seed = 4;
  Model differs = openOrFail(options, openSmall());
  ASSERT_TRUE(differs);
  EXPECT_NE(gradientsFrom(*differs), first);
}

/// B is 0 at first: its gradient is that of what A reads, of which the mean
/// over many draws is what it is without dropout, as is the loss that is
/// measured.
TEST(Training, DropoutKeepsTheMean) {
  TrainingBatch batch;
  batch.length = 16;
  addRow(batch, {16}, 4, 0, kSmallVocabulary);
  TrainingOptions options = smallOptions(1, 16);
  options.lora = allLinear();
  Model plain = openOrFail(options, openSmall());
  options.lora->dropout = 0.25;
  Model model = openOrFail(options, openSmall());
  ASSERT_TRUE(model && plain);
  constexpr int kDraws = 100;
  for (int draw = 0; draw < kDraws; ++draw)
    ASSERT_TRUE(succeeds(model->accumulate(batch, nullptr).status()));
  ASSERT_TRUE(succeeds(plain->accumulate(batch, nullptr).status()));
  const Gradients found = gradientsOf(*model), expected = gradientsOf(*plain);
  for (size_t i = 0; i < expected.size(); ++i) {
    double length = 0, apart = 0;
    for (size_t k = 0; k < expected[i].size(); ++k) {
      length += std::pow(expected[i][k], 2);
      apart += std::pow(found[i][k] / kDraws - expected[i][k], 2);
    }
    EXPECT_LE(std::sqrt(apart), 0.15 * std::sqrt(length))
        << model->trained()[i].name;
  }
  const double loss = plain->evaluate(batch, nullptr)->sum;
  EXPECT_EQ(model->evaluate(batch, nullptr)->sum, loss);
}

/// They are rounded, and it is a small part of the loss and of each gradient.
TEST(Training, RoundedActivationsAreNear) {
  TrainingBatch batch;
  batch.length = 16;
  addRow(batch, {16}, 5, 0, kSmallVocabulary);
  for (const bool isLora : {false, true}) {
    TrainingOptions options = smallOptions(1, 16);
    if (isLora)
      options.lora = allLinear();
    Model exact = openOrFail(options, openSmall());
    auto rounded =
        openTraining(options, {.activationType = "bf16"}, openSmall());
    ASSERT_TRUE(exact && rounded.ok()) << rounded.message();
    const double sum = exact->accumulate(batch, nullptr)->sum;
    auto found = (*rounded)->accumulate(batch, nullptr);
    ASSERT_TRUE(found.ok()) << found.message();
    EXPECT_NE(found->sum, sum);
    EXPECT_NEAR(found->sum, sum, 1e-3 * sum);
    for (size_t i = 0; i < exact->trained().size(); ++i) {
      SCOPED_TRACE(exact->trained()[i].name);
      const std::vector<float> expected = toFloats(*exact->readGradient(i)),
                               gradient =
                                   toFloats(*(*rounded)->readGradient(i));
      double length = 0, apart = 0;
      for (size_t k = 0; k < expected.size(); ++k) {
        length += std::pow(expected[k], 2);
        apart += std::pow(gradient[k] - expected[k], 2);
      }
      EXPECT_LE(std::sqrt(apart), 0.03 * std::sqrt(length));
      // A's are 0 at first, as B is.
      EXPECT_EQ(apart > 0, length > 0);
    }
  }
}

TEST(Training, AdaptersBeginAsNothingAndAreSavedAsPeftsAre) {
  TrainingOptions options = smallOptions(1, 16);
  TrainingBatch batch;
  batch.length = 16;
  addRow(batch, {16}, 6, 0, kSmallVocabulary);
  Model full = openOrFail(options, openSmall());
  options.lora = allLinear();
  Model model = openOrFail(options, openSmall());
  ASSERT_TRUE(full && model);
  const double plain = full->evaluate(batch, nullptr)->sum;
  EXPECT_NEAR(model->evaluate(batch, nullptr)->sum, plain, 1e-5 * plain);
  ASSERT_TRUE(succeeds(model->accumulate(batch, nullptr).status()));
  ASSERT_TRUE(
      succeeds(model->update({.learningRate = 1e-2f, .labels = 13}).status()));
  const TempFolder folder;
  ASSERT_TRUE(succeeds(model->save(folder.path())));
  auto saved = openSafetensors(folder.path() + "/adapter_model.safetensors");
  ASSERT_TRUE(saved.ok()) << saved.message();
  for (const TrainedTensor &tensor : model->trained()) {
    auto view = (*saved)->find(tensor.name);
    ASSERT_TRUE(view.ok()) << view.message();
    EXPECT_EQ(view->shape, tensor.shape);
    const auto *data = static_cast<const float *>(view->data);
    EXPECT_EQ(std::vector<float>(data, data + view->bytes / sizeof(float)),
              toFloats(*model->readState(tensor.name)));
  }
}

TEST(Training, WeightsAreSavedAsAModel) {
  TrainingOptions options = storiesOptions("cpu");
  Model model = openOrFail(options);
  ASSERT_TRUE(model);
  const TrainingBatch batch = makeBatch(0);
  ASSERT_TRUE(succeeds(model->accumulate(batch, nullptr).status()));
  ASSERT_TRUE(
      succeeds(model->update({.learningRate = 1e-3f, .labels = labelsOf(batch)})
                   .status()));
  const TempFolder folder;
  ASSERT_TRUE(succeeds(model->save(folder.path())));
  options.model.path = folder.path();
  options.withTokenizer = true;
  Model again = openOrFail(options);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->files().tokenizer);
  EXPECT_EQ(again->evaluate(batch, nullptr)->sum,
            model->evaluate(batch, nullptr)->sum);
}

TEST(Training, TheConfigurationOfSavedWeightsIsTheirs) {
  const OpenEmbedded open = [](bool withTokenizer) -> Result<ModelFiles> {
    KF_ASSIGN_OR_RETURN(ModelFiles files, openSmall()(withTokenizer));
    auto config = nlohmann::ordered_json::parse(files.configText);
    config.erase("tie_word_embeddings");
    config["dtype"] = "bfloat16";
    config["quantization_config"] = {{"quant_method", "fp8"}};
    files.configText = config.dump();
    return files;
  };
  Model model = openOrFail(smallOptions(1, 16), open);
  ASSERT_TRUE(model);
  const TempFolder folder;
  ASSERT_TRUE(succeeds(model->save(folder.path())));
  std::ifstream stream(folder.path() + "/config.json");
  const auto config = nlohmann::json::parse(stream);
  EXPECT_EQ(config["torch_dtype"], "float32");
  EXPECT_EQ(config["tie_word_embeddings"], false);
  EXPECT_FALSE(config.contains("dtype"));
  EXPECT_FALSE(config.contains("quantization_config"));
  EXPECT_EQ(config["hidden_size"], 256);
}

TEST(Training, RefusesWeightsThatAreStoredInOthers) {
  auto config = nlohmann::json::parse(kSmallConfig);
  config["model_type"] = "phi3";
  config.erase("head_dim");
  auto parsed = parseModelConfig(config.dump());
  ASSERT_TRUE(parsed.ok()) << parsed.message();
  const auto random =
      DummyWeights::create(*parsed, DataType::F32, /*seed=*/1).take();
  std::map<std::string, HostTensor> stored = widened(*random)->tensors;
  // As Phi-3's checkpoints have them.
  auto join = [&](const std::string &layer, const std::string &whole,
                  const std::vector<std::string> &parts) {
    HostTensor &joined = stored[layer + whole];
    for (const std::string &part : parts) {
      const HostTensor own = stored.extract(layer + part).mapped();
      if (joined.shape.empty())
        joined = HostTensor{own.type, {0, own.shape[1]}, {}};
      joined.shape[0] += own.shape[0];
      joined.bytes.insert(joined.bytes.end(), own.bytes.begin(),
                          own.bytes.end());
    }
  };
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    join(layer, "self_attn.qkv_proj.weight",
         {"self_attn.q_proj.weight", "self_attn.k_proj.weight",
          "self_attn.v_proj.weight"});
    join(layer, "mlp.gate_up_proj.weight",
         {"mlp.gate_proj.weight", "mlp.up_proj.weight"});
  }
  const TempFolder folder;
  ASSERT_TRUE(succeeds(
      writeSafetensors(folder.path() + "/model.safetensors", stored, {})));
  std::ofstream(folder.path() + "/config.json") << config.dump();
  TrainingOptions options = smallOptions(1, 16);
  options.model.path = folder.path();
  EXPECT_TRUE(failsWith(openTraining(options, {}).status(),
                        "under another name or within another tensor"));
  options.lora = allLinear();
  EXPECT_TRUE(openOrFail(options));
}

TEST(Training, SaysWhatIsWrong) {
  TrainingOptions options = smallOptions(1, 16);
  auto expectError = [&](const std::string &text) {
    EXPECT_TRUE(
        failsWith(openTraining(options, {}, openSmall()).status(), text));
  };
  options.length = 65;
  expectError("a batch of 1 rows of 65 tokens is not possible");
  options.length = 16;
  options.lora = LoraConfig{.rank = 0, .alpha = 1, .targets = {"q_proj"}};
  expectError("an adapter of rank 0 cannot be trained");
  options.lora->rank = 8;
  options.lora->dropout = 1;
  expectError("--lora-dropout is 1; a number from 0 to below 1 is expected");
  options.lora->dropout = 0;
  options.lora->targets = {"x_proj"};
  expectError("'x_proj'");
  options.lora.reset();
  for (const auto kept : {Float8Weights::Kept, Float8Weights::KeptIfAny}) {
    options.model.float8 = kept;
    expectError("weights that are kept in 8 bits (--float8=f8) cannot be "
                "trained");
  }
  options.model.float8 = Float8Weights::Rounded;

  options.lora = LoraConfig{.rank = 8, .alpha = 1, .targets = {"q_proj"}};
  Model model = openOrFail(options, openSmall());
  ASSERT_TRUE(model);
  TrainingBatch batch;
  batch.length = 16;
  addRow(batch, {16}, 7, 0, kSmallVocabulary);
  auto expectBatchError = [&](const TrainingBatch &wrong,
                              const std::string &text) {
    EXPECT_TRUE(failsWith(model->accumulate(wrong, nullptr).status(), text));
    EXPECT_TRUE(failsWith(model->evaluate(wrong, nullptr).status(), text));
  };
  TrainingBatch wrong = batch;
  wrong.rows = 2;
  expectBatchError(wrong, "a batch of 2 rows of 16 tokens");
  wrong = batch;
  wrong.ids[3] = 96;
  expectBatchError(wrong, "id 96");
  wrong = batch;
  wrong.labels[3] = -1;
  expectBatchError(wrong, "label -1");
  wrong = batch;
  wrong.positions.pop_back();
  expectBatchError(wrong, "15 numbers for 16 tokens");
  EXPECT_FALSE(model->update({.learningRate = 1, .labels = 0}).ok());
  EXPECT_FALSE(model->readState("x").ok());
  EXPECT_FALSE(
      model->writeState(model->stateNames().front(), HostTensor()).ok());
}

} // namespace
