//===- AdaptersTest.cpp - Logits with adapters equal to PEFT's ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The adapters of test/golden/adapters, on every device: the logits that PEFT
// computes with them in float64 (test/golden/generate_adapters.py), and those
// of sequences with several adapters that are read together.
//
//===----------------------------------------------------------------------===//

#include "ModelUnderTest.h"
#include "test/runtime/TestFiles.h"
#include "test/runtime/io/MemoryTensors.h"

#include "runtime/core/BlockFormat.h"

#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <fstream>

using namespace kf;
using namespace kf::test;

namespace {

const std::string goldenFolder = testFile(KF_SOURCE_DIR "/test/golden/");

nlohmann::json references() {
  std::ifstream file(goldenFolder + "adapters/reference.json");
  return nlohmann::json::parse(file);
}

std::string folderOf(const std::string &adapter) {
  return goldenFolder + "adapters/" + adapter;
}

/// Rounds matrices to blocks of `type`, where rows are whole blocks, and has
/// them as these or as the numbers that they stand for.
void quantize(std::unique_ptr<WeightSource> &weights, DataType type,
              bool asBlocks) {
  auto blocks = std::make_unique<MemoryTensors>();
  for (const std::string &name : weights->names()) {
    auto view = weights->find(name).take();
    auto *values = static_cast<const float *>(view.data);
    const int64_t count = checkedElementCount(view.shape).take();
    const bool isMatrix = view.shape.size() == 2 &&
                          view.shape[1] % elementsPerBlock(type) == 0 &&
                          name.find("_proj") != std::string::npos;
    if (!isMatrix) {
      blocks->add(name, view.shape, {values, values + count});
      continue;
    }
    std::string bytes(
        static_cast<size_t>(checkedByteCount(type, view.shape).take()), '\0');
    const int64_t blockCount = count / elementsPerBlock(type);
    quantizeBlocks(type, values, blockCount, bytes.data());
    if (asBlocks) {
      blocks->add(name, type, view.shape, std::move(bytes));
      continue;
    }
    std::vector<float> numbers(static_cast<size_t>(count));
    dequantizeBlocks(type, bytes.data(), blockCount, numbers.data());
    blocks->add(name, view.shape, std::move(numbers));
  }
  weights = std::move(blocks);
}

class Adapters : public testing::TestWithParam<ModelCase> {
protected:
  void SetUp() override { KF_REQUIRE_DEVICE(GetParam().device); }

  std::unique_ptr<ModelUnderTest> open(
      const std::string &model, const std::vector<std::string> &adapters,
      const std::function<void(std::unique_ptr<WeightSource> &)> &change = {}) {
    std::vector<std::string> folders;
    for (const std::string &adapter : adapters)
      folders.push_back(folderOf(adapter));
    return ModelUnderTest::openAdapted(goldenFolder + model, folders,
                                       GetParam().device, GetParam().threads,
                                       change);
  }
  double tolerance() const { return isGpu(GetParam().device) ? 2e-3 : 1e-4; }
};

void expectNear(std::span<const float> found, std::span<const double> expected,
                double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], tolerance) << "logit " << i;
}

TEST_P(Adapters, LogitsAreThoseOfPeft) {
  const std::string name = GetParam().model;
  const nlohmann::json reference = references().at(name);
  const auto ids = reference.at("ids").get<std::vector<int32_t>>();
  const auto last = reference.at("last_logits").get<std::vector<double>>();
  const auto sums = reference.at("logsumexp").get<std::vector<double>>();
  auto model = open(reference.at("model"), {name});
  ASSERT_TRUE(model);
  const Status status = readLogits(
      *model->sequence(1), ids,
      [&](size_t position, std::span<const float> logits) {
        EXPECT_NEAR(logSumExp(logits), sums.at(position), tolerance());
        if (position + 1 == ids.size())
          expectNear(logits, last, tolerance());
        return Status();
      });
  EXPECT_TRUE(status.ok()) << status.message();
  // One row at a time.
  auto sequence = model->sequence(1);
  std::vector<float> found;
  for (int32_t id : ids)
    found = lastLogits(*sequence, {&id, 1}).take();
  expectNear(found, last, tolerance());
}

TEST_P(Adapters, ASequenceWithoutOneIsTheModels) {
  const std::string name = GetParam().model;
  const nlohmann::json reference = references().at(name);
  const std::string base = reference.at("model");
  const auto ids = reference.at("ids").get<std::vector<int32_t>>();
  auto adapted = open(base, {name});
  auto plain = ModelUnderTest::open(goldenFolder + base, GetParam().device,
                                    GetParam().threads);
  ASSERT_TRUE(adapted && plain);
  const auto found = lastLogits(*adapted->sequence(0), ids).take();
  const auto own = lastLogits(*plain->sequence(), ids).take();
  expectNear(found, std::vector<double>(own.begin(), own.end()), tolerance());
}

const auto models = casesOf(
    {"llama-two-targets", "llama-all-linear", "phi3-fused", "gpt2-transposed"},
    {});
INSTANTIATE_TEST_SUITE_P(All, Adapters, testing::ValuesIn(models), caseName);

//===----------------------------------------------------------------------===//
// Several
//===----------------------------------------------------------------------===//

class SeveralAdapters : public Adapters {
protected:
  /// The last logits of texts of other lengths, one of the model's own and one
  /// of each adapter, that are read in the same steps.
  std::vector<std::vector<float>> readTogether(ModelUnderTest &model) {
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<std::vector<float>> logits(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      sequences.push_back(model.sequence(numbers[i]));
      Reading reading;
      reading.ids = textOf(i);
      reading.firstLogits = reading.ids.size() - 1;
      reading.onLogits = [&logits, i](size_t, std::span<const float> row) {
        logits[i].assign(row.begin(), row.end());
        return Status();
      };
      reading.done = [](const Reading::Outcome &outcome) {
        EXPECT_TRUE(outcome.ok()) << outcome.message();
      };
      EXPECT_TRUE(sequences.back()->read(std::move(reading)).ok());
    }
    while (model.engine().step()) {
    }
    return logits;
  }
  std::vector<int32_t> textOf(size_t i) const {
    std::vector<int32_t> ids;
    for (size_t k = 0; k < 5 + 9 * i; ++k)
      ids.push_back(static_cast<int32_t>(3 + (7 * k + 11 * i) % 90));
    return ids;
  }

  const std::vector<int64_t> numbers = {2, 0, 1, 2};
  const std::vector<std::string> both = {"llama-two-targets",
                                         "llama-all-linear"};
};

TEST_P(SeveralAdapters, EachIsAsIfItWereAlone) {
  auto model = open("llama3-gqa-scaled", both);
  ASSERT_TRUE(model);
  const auto together = readTogether(*model);
  for (size_t i = 0; i < numbers.size(); ++i) {
    SCOPED_TRACE(i);
    auto alone =
        numbers[i] == 0
            ? ModelUnderTest::open(goldenFolder + "llama3-gqa-scaled",
                                   GetParam().device, GetParam().threads)
            : open("llama3-gqa-scaled",
                   {both[static_cast<size_t>(numbers[i] - 1)]});
    ASSERT_TRUE(alone);
    const auto own =
        lastLogits(*alone->sequence(numbers[i] ? 1 : 0), textOf(i)).take();
    expectNear(together[i], std::vector<double>(own.begin(), own.end()),
               tolerance());
  }
}

/// Beside blocks they add what they add beside the numbers that these stand
/// for, which LogitsAreThoseOfPeft is of.
TEST_P(SeveralAdapters, AddToBlocks) {
  for (DataType type : {DataType::Q8_0, DataType::Q4_0}) {
    SCOPED_TRACE(std::string(nameOf(type)));
    auto rounded = [&](bool asBlocks) {
      return [=](std::unique_ptr<WeightSource> &weights) {
        quantize(weights, type, asBlocks);
      };
    };
    std::vector<std::string> folders;
    for (const std::string &adapter : both)
      folders.push_back(folderOf(adapter));
    const std::string changed(nameOf(type));
    const bool isRounded =
        GetParam().device != "reference" && GetParam().device != "vulkan";
    auto model = ModelUnderTest::openAdapted(
        goldenFolder + "llama3-gqa-scaled", folders, GetParam().device,
        GetParam().threads, rounded(true), changed);
    auto exact = ModelUnderTest::openAdapted(
        goldenFolder + "llama3-gqa-scaled", folders, "reference",
        /*threads=*/1, rounded(false), changed + " as f32");
    ASSERT_TRUE(model && exact);
    const auto found = readTogether(*model), expected = readTogether(*exact);
    for (size_t i = 0; i < numbers.size(); ++i) {
      SCOPED_TRACE(i);
      // Adapters are of bf16 there, and rows of products with blocks are
      // rounded to 8 bits on the CPU. What adapters add is 3 to 5.
      expectNear(found[i],
                 std::vector<double>(expected[i].begin(), expected[i].end()),
                 isRounded ? 0.1 : 0.04);
    }
  }
}

const auto devices = casesOf({"llama"}, {});
INSTANTIATE_TEST_SUITE_P(All, SeveralAdapters, testing::ValuesIn(devices),
                         caseName);

} // namespace
