//===- StepsTest.cpp - Steps of several sequences that choose tokens ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step that gives ids chooses what the sampler on the host chooses from the
// logits of the step that gives logits, for rows of several sequences with
// settings of their own. Greedy rows continue as Hugging Face's model does,
// whatever the other sequences do.
//
//===----------------------------------------------------------------------===//

#include "ModelUnderTest.h"
#include "test/runtime/TestFiles.h"

#include "runtime/engine/Sampler.h"
#include "runtime/engine/StepPlan.h"

#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <fstream>

using namespace kf;
using namespace kf::test;

namespace {

constexpr int64_t kPoolPages = 12;

struct History {
  explicit History(std::vector<int32_t> prompt, SamplerOptions options = {})
      : ids(std::move(prompt)), prompt(ids.size()),
        sampler(Sampler::create(options).take()) {
    for (int32_t id : ids)
      sampler.accept(id);
  }

  std::vector<int32_t> generated() const {
    return {ids.begin() + prompt, ids.end()};
  }

  std::vector<int32_t> ids;
  size_t prompt, read = 0; ///< tokens of the prompt, and in the cache
  Sampler sampler;
  std::vector<int32_t> pages; ///< of the pool
};

/// The next `count` tokens of a sequence.
struct Part {
  History *sequence;
  size_t count;
};

/// Runs steps of a model's sequences on one cache.
class Stepper {
public:
  explicit Stepper(ModelUnderTest &model)
      : model(model), weights(model.runsOn(), &model.source()),
        cache(model.runsOn(), kPoolPages, kPoolPages * kCachePage) {
    for (int32_t page = 0; page < kPoolPages; ++page)
      free.push_back(page * 5 % kPoolPages);
  }

  /// Reads `parts` in programs for so many rows, and the next token of each
  /// whose end is reached, which is checked against the sampler's choice from
  /// the logits.
  void step(int64_t tokens, int64_t wanted, const std::vector<Part> &parts) {
    const StepPlan plan = planOf(parts);
    ASSERT_TRUE(wanted > 1 || plan.wanted() == 1);
    const HostTensor hidden = run({StepPart::Body, tokens}, plan, {});
    if (plan.wanted() == 0)
      return advance(parts, nullptr, nullptr);
    const HostTensor logits = run({StepPart::Head, wanted}, plan, hidden);
    const HostTensor ids = run({StepPart::Choose, wanted}, plan, logits);
    ASSERT_EQ(logits.elementCount(), plan.wanted() * model.config().vocabSize);
    ASSERT_EQ(ids.elementCount(), plan.wanted());
    advance(parts, logits.data<float>(), ids.data<int32_t>());
  }

private:
  void advance(const std::vector<Part> &parts, const float *logits,
               const int32_t *ids) {
    const size_t vocab = model.config().vocabSize;
    for (const Part &part : parts) {
      History &own = *part.sequence;
      own.read += part.count;
      if (own.read != own.ids.size())
        continue;
      const auto expected =
          own.sampler.sample(std::span<const float>(logits, vocab));
      ASSERT_TRUE(expected.ok()) << expected.message();
      ASSERT_EQ(*ids++, *expected);
      logits += vocab;
      own.ids.push_back(*expected);
      own.sampler.accept(*expected);
    }
  }

  StepPlan planOf(const std::vector<Part> &parts) {
    StepPlan plan;
    for (const Part &part : parts) {
      History &own = *part.sequence;
      const size_t end = own.read + part.count;
      while (static_cast<int64_t>(own.pages.size()) < cachePagesOf(end)) {
        own.pages.push_back(free.back());
        free.pop_back();
      }
      plan.pages.push_back(own.pages);
      for (size_t i = own.read; i < end; ++i)
        plan.addRow(own.ids[i], static_cast<int64_t>(i));
      if (end == own.ids.size()) {
        plan.want();
        plan.choose(own.sampler.settings(), own.sampler.penalties(),
                    own.sampler.adjustments());
      }
    }
    return plan;
  }

  /// What a program of `shape` gives; `before` is what the part in front of it
  /// gave.
  HostTensor run(const StepShape &shape, const StepPlan &plan,
                 const HostTensor &before) {
    const StepSignature signature = stepSignature(shape, model.config());
    const auto scalars = stepScalars(shape, plan.counts());
    std::vector<HostTensor> inputs;
    for (size_t i = firstInput(shape.part); i < endOfInputs(shape.part); ++i) {
      if (!hasInput(model.config(), static_cast<StepInput>(i)))
        continue;
      const TensorSpec &spec = signature.inputs[inputs.size()];
      HostTensor &input = inputs.emplace_back(
          HostTensor::zeros(spec.type, resolveShape(spec.shape, scalars))
              .take());
      if (i == kStepHidden || i == kStepLogits) {
        input = before;
      } else if (i == kStepPageTable) {
        std::fill_n(input.data<int32_t>(), input.elementCount(), -1);
        for (size_t row = 0; row < plan.pages.size(); ++row)
          std::ranges::copy(plan.pages[row],
                            input.data<int32_t>() + row * spec.shape[1]);
      } else {
        EXPECT_EQ(plan.columns[i].size(), input.bytes.size());
        std::ranges::copy(plan.columns[i], input.bytes.begin());
      }
    }
    ProgramRunner *runner = runnerOf(shape, signature);
    if (!runner)
      return {};
    auto results = runner->run(inputs, scalars[KF_SCALAR_N_TOKENS]);
    EXPECT_TRUE(results.ok()) << results.message();
    return results.ok() ? std::move(results->front()) : HostTensor();
  }

  ProgramRunner *runnerOf(const StepShape &shape,
                          const StepSignature &signature) {
    std::unique_ptr<ProgramRunner> &runner = runners[shape];
    if (runner)
      return runner.get();
    auto executable = model.compileStep(shape);
    EXPECT_TRUE(executable.ok()) << executable.message();
    if (!executable.ok())
      return nullptr;
    EXPECT_EQ(executable->inputs, signature.inputs);
    EXPECT_EQ(executable->outputs, signature.outputs);
    EXPECT_EQ(executable->namedSizes, signature.sizes);
    auto loaded = ProgramRunner::create(executable.take(), model.runsOn(),
                                        weights, cache);
    EXPECT_TRUE(loaded.ok()) << loaded.message();
    if (loaded.ok())
      runner = loaded.take();
    return runner.get();
  }

  ModelUnderTest &model;
  WeightStore weights;
  KVCache cache;
  std::vector<int32_t> free; ///< pages
  std::map<StepShape, std::unique_ptr<ProgramRunner>> runners;
};

class Steps : public testing::TestWithParam<ModelCase> {
protected:
  void SetUp() override {
    KF_REQUIRE_DEVICE(GetParam().device);
    const std::string golden = testFile(KF_SOURCE_DIR "/test/golden/");
    std::ifstream file(golden + "reference.json");
    reference = nlohmann::json::parse(file).at(GetParam().model);
    model = ModelUnderTest::open(golden + GetParam().model, GetParam().device,
                                 GetParam().threads);
    ASSERT_TRUE(model);
  }

  std::vector<int32_t> prompt(size_t most) const {
    auto ids = reference.at("ids").get<std::vector<int32_t>>();
    ids.resize(std::min(ids.size(), most));
    return ids;
  }

  nlohmann::json reference;
  std::unique_ptr<ModelUnderTest> model;
};

TEST_P(Steps, ChooseAsTheHostDoes) {
  SamplerOptions warm, nucleus, biased;
  warm.temperature = 0.8;
  warm.topK = 40;
  warm.repetitionPenalty = 1.3;
  warm.seed = 7;
  nucleus.temperature = 1.4;
  nucleus.topP = 0.9;
  nucleus.presencePenalty = 0.5;
  nucleus.frequencyPenalty = 0.25;
  nucleus.penaltyWindow = 6;
  nucleus.seed = uint64_t(-3);
  biased.repetitionPenalty = 1.1;
  biased.logitBias = {{3, 4.0}, {17, -std::numeric_limits<double>::infinity()}};
  History greedy(prompt(100)), second(prompt(5), warm),
      third(prompt(9), nucleus), fourth(prompt(2), biased);
  Stepper steps(*model);
  // A prompt in pieces beside others; nothing is wanted of the first step.
  ASSERT_NO_FATAL_FAILURE(steps.step(16, 16, {{&greedy, 10}}));
  ASSERT_NO_FATAL_FAILURE(steps.step(16, 16, {{&second, 5}, {&greedy, 8}}));
  const size_t rest = greedy.ids.size() - greedy.read;
  ASSERT_LE(rest + 5, 16u);
  ASSERT_NO_FATAL_FAILURE(
      steps.step(16, 16, {{&third, 4}, {&greedy, rest}, {&second, 1}}));
  ASSERT_NO_FATAL_FAILURE(steps.step(
      16, 16, {{&fourth, 2}, {&greedy, 1}, {&third, 5}, {&second, 1}}));
  while (greedy.generated().size() < 18)
    ASSERT_NO_FATAL_FAILURE(steps.step(
        16, 16, {{&second, 1}, {&greedy, 1}, {&fourth, 1}, {&third, 1}}));
  // Programs of other sizes go on with the same cache.
  ASSERT_NO_FATAL_FAILURE(steps.step(16, 1, {{&greedy, 1}}));
  ASSERT_NO_FATAL_FAILURE(steps.step(1, 1, {{&greedy, 1}}));
  for (History *sequence : {&second, &third, &fourth})
    ASSERT_NO_FATAL_FAILURE(steps.step(1, 1, {{sequence, 1}}));
  EXPECT_EQ(greedy.generated(),
            reference.at("greedy_20").get<std::vector<int32_t>>());
  for (const History *sequence : {&second, &third, &fourth})
    EXPECT_GT(sequence->generated().size(), 12u);
}

INSTANTIATE_TEST_SUITE_P(All, Steps,
                         testing::ValuesIn(casesOf({"llama3-gqa-scaled",
                                                    "mistral-window",
                                                    "gpt2-layernorm"})),
                         caseName);

} // namespace
