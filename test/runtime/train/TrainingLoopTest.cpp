//===- TrainingLoopTest.cpp - Steps, evaluations, ends --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingLoop.h"

#include "../StatusAssertions.h"
#include "../TempFile.h"
#include "FakeTrainingModel.h"
#include "runtime/core/Json.h"
#include "runtime/train/Checkpoints.h"

#include <gtest/gtest.h>

#include <limits>

using namespace kf;
using namespace kf::test;

namespace {

constexpr size_t kTokens = 12;
constexpr int64_t kRows = 2, kLength = 16;

/// Texts in which each token is mostly followed by the next one.
std::vector<TrainingExample> countingExamples(size_t count, size_t first) {
  std::vector<TrainingExample> examples;
  for (size_t i = 0; i < count; ++i) {
    TrainingExample &example = examples.emplace_back();
    for (size_t at = 0; at < 5 + i % 7; ++at)
      example.ids.push_back(
          static_cast<int32_t>((first + i + at + at / 4) % kTokens));
    example.counts.assign(example.ids.size(), true);
  }
  return examples;
}

/// Keeps what it is told, and checkpoints where it has a folder.
class Recorder : public TrainingListener {
public:
  Status onStep(const TrainingStep &step) override {
    steps.push_back(step);
    if (stopAfter == step.step)
      cancelled = true;
    return failAt == step.step ? Status::error("the log is full") : Status();
  }
  Status onEvaluation(int64_t step, const TrainingLoss &loss) override {
    EXPECT_TRUE(evaluations.emplace(step, loss.mean()).second);
    return failEvaluationAt == step ? Status::error("the log is full")
                                    : Status();
  }
  Status save(int64_t step) {
    saved.push_back(step);
    return checkpoints ? checkpoints->save(*model, {.step = step}) : Status();
  }

  std::vector<double> losses() const {
    std::vector<double> all;
    for (const TrainingStep &step : steps)
      all.push_back(step.loss.mean());
    return all;
  }

  std::vector<TrainingStep> steps;
  std::map<int64_t, double> evaluations;
  std::vector<int64_t> saved;
  int64_t stopAfter = 0, failAt = 0, failEvaluationAt = 0;
  std::atomic<bool> cancelled = false;
  TrainingModel *model = nullptr;
  Checkpoints *checkpoints = nullptr;
};

class TrainingLoopTest : public testing::Test {
protected:
  TrainingBatches batches() {
    return {examples, {.rows = kRows, .length = kLength, .seed = 1}};
  }
  TrainingBatches heldOut() {
    return {held,
            {.rows = kRows, .length = kLength, .shuffle = false, .epochs = 1}};
  }
  TrainingLoopOptions optionsOf(Recorder &recorder, int64_t steps) {
    return {.learningRate = {.peak = 0.5,
                             .decay = LearningRate::Decay::Cosine,
                             .warmup = 3,
                             .steps = steps},
            .accumulate = 3,
            .evaluateEvery = 8,
            .saveEvery = 5,
            .save = [&recorder](int64_t step) { return recorder.save(step); },
            .cancelled = &recorder.cancelled};
  }

  const std::vector<TrainingExample> examples = countingExamples(40, 0);
  const std::vector<TrainingExample> held = countingExamples(9, 5);
  FakeTrainingModel model{kRows, kLength, kTokens};
  Recorder recorder;
};

TEST_F(TrainingLoopTest, LearnsAndReports) {
  TrainingBatches data = batches(), other = heldOut();
  ASSERT_TRUE(
      succeeds(train(model, data, &other, optionsOf(recorder, 20), recorder)));
  ASSERT_EQ(recorder.steps.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    const TrainingStep &step = recorder.steps[i];
    EXPECT_EQ(step.step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(step.learningRate,
              optionsOf(recorder, 20).learningRate.at(static_cast<int64_t>(i)));
    EXPECT_GT(step.gradientNorm, 0);
    EXPECT_GT(step.tokens, 3 * kRows * kLength / 2);
    EXPECT_LE(step.tokens, 3 * kRows * kLength);
    EXPECT_EQ(step.tokens, step.loss.labels);
  }
  EXPECT_NEAR(recorder.losses().front(), std::log(kTokens), 1e-6);
  EXPECT_LT(recorder.losses().back(), 1.5);
  ASSERT_EQ(recorder.evaluations.size(), 3u);
  EXPECT_GT(recorder.evaluations[8], recorder.evaluations[16]);
  EXPECT_GT(recorder.evaluations[16], recorder.evaluations[20]);
  EXPECT_EQ(recorder.saved, (std::vector<int64_t>{5, 10, 15, 20}));
  EXPECT_EQ(model.updates(), 20);
  EXPECT_EQ(model.accumulated, 60);
}

TEST_F(TrainingLoopTest, AnEvaluationHasEveryLabelOnce) {
  TrainingBatches other = heldOut();
  const Result<TrainingLoss> loss = evaluateLoss(model, other, recorder);
  ASSERT_TRUE(loss.ok()) << loss.message();
  int64_t labels = 0;
  for (const TrainingExample &example : held)
    labels += static_cast<int64_t>(example.ids.size()) - 1;
  EXPECT_EQ(loss->labels, labels);
}

TEST_F(TrainingLoopTest, BatchesBehindTheLastEpochAreNotRead) {
  TrainingBatches once(std::span(examples).first(34),
                       {.rows = kRows, .length = kLength, .epochs = 1});
  const int64_t steps = (once.count() + 2) / 3;
  ASSERT_NE(once.count() % 3, 0);
  ASSERT_TRUE(succeeds(
      train(model, once, nullptr, optionsOf(recorder, steps), recorder)));
  EXPECT_EQ(model.updates(), steps);
  EXPECT_EQ(model.accumulated, once.count());
}

TEST_F(TrainingLoopTest, GoesOnToTheSameBits) {
  TrainingBatches data = batches();
  ASSERT_TRUE(
      succeeds(train(model, data, nullptr, optionsOf(recorder, 17), recorder)));

  const TempFolder folder;
  Checkpoints checkpoints = Checkpoints::open(folder.path(), 0, nullptr).take();
  Recorder first;
  FakeTrainingModel begun(kRows, kLength, kTokens);
  first.model = &begun;
  first.checkpoints = &checkpoints;
  first.stopAfter = 7;
  EXPECT_TRUE(
      train(begun, data, nullptr, optionsOf(first, 17), first).isCancelled());
  EXPECT_EQ(first.saved, (std::vector<int64_t>{5, 7}));

  // From the one that was saved when it ended, and from one before.
  for (int64_t step : {7, 5}) {
    Recorder second;
    FakeTrainingModel resumed(kRows, kLength, kTokens);
    const std::string path = checkpoints.pathOf(step);
    ASSERT_TRUE(
        succeeds(loadCheckpoint(path, *readCheckpointHead(path), resumed)));
    TrainingBatches again = batches();
    ASSERT_TRUE(succeeds(
        train(resumed, again, nullptr, optionsOf(second, 17), second)));
    EXPECT_EQ(resumed.weights, model.weights);
    EXPECT_EQ(resumed.momentum, model.momentum);
    std::vector<double> losses = first.losses();
    losses.resize(static_cast<size_t>(step));
    for (double loss : second.losses())
      losses.push_back(loss);
    EXPECT_EQ(losses, recorder.losses());
  }
}

TEST_F(TrainingLoopTest, ACancelledBatchIsForgotten) {
  TrainingBatches data = batches();
  // Within the third step.
  model.onAccumulate = [&] { recorder.cancelled = model.accumulated == 7; };
  EXPECT_TRUE(train(model, data, nullptr, optionsOf(recorder, 17), recorder)
                  .isCancelled());
  EXPECT_EQ(recorder.steps.size(), 2u);
  EXPECT_EQ(recorder.saved, std::vector<int64_t>{2});
}

TEST_F(TrainingLoopTest, CancelledBeforeTheFirstUpdateNothingIsSaved) {
  TrainingBatches data = batches();
  recorder.cancelled = true;
  EXPECT_TRUE(train(model, data, nullptr, optionsOf(recorder, 17), recorder)
                  .isCancelled());
  EXPECT_TRUE(recorder.saved.empty());
}

TEST_F(TrainingLoopTest, ALossThatIsNotFinite) {
  TrainingBatches data = batches();
  model.onAccumulate = [&] {
    if (model.updates() == 6)
      model.lossFactor = std::numeric_limits<double>::quiet_NaN();
  };
  const Status status =
      train(model, data, nullptr, optionsOf(recorder, 17), recorder);
  EXPECT_TRUE(failsWith(
      status, "step 7: the loss is not finite (nan); a lower learning rate, or "
              "a smaller norm to clip at, may help; step 5 was saved last"));
  EXPECT_EQ(status.code(), StatusCode::Internal);
  EXPECT_EQ(recorder.saved, std::vector<int64_t>{5});
  EXPECT_EQ(recorder.steps.size(), 6u);
}

TEST_F(TrainingLoopTest, AGradientThatIsNotFinite) {
  TrainingBatches data = batches();
  model.normFactor = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(
      failsWith(train(model, data, nullptr, optionsOf(recorder, 17), recorder),
                "step 1: the norm of the gradient is not finite (inf)"));
  EXPECT_TRUE(recorder.saved.empty());
}

TEST_F(TrainingLoopTest, AnErrorOfTheListenerLosesNoStep) {
  TrainingBatches data = batches();
  recorder.failAt = 2;
  EXPECT_TRUE(
      failsWith(train(model, data, nullptr, optionsOf(recorder, 17), recorder),
                "step 2: the log is full; step 2 was saved last"));
  EXPECT_EQ(recorder.saved, std::vector<int64_t>{2});
}

TEST_F(TrainingLoopTest, AnErrorOfAnEvaluationLosesNoStep) {
  TrainingBatches data = batches(), other = heldOut();
  recorder.failEvaluationAt = 8;
  EXPECT_TRUE(
      failsWith(train(model, data, &other, optionsOf(recorder, 17), recorder),
                "evaluation behind step 8: the log is full; step 8 was saved "
                "last"));
  EXPECT_EQ(recorder.saved, (std::vector<int64_t>{5, 8}));

  recorder.failEvaluationAt = 0;
  recorder.evaluations.clear();
  model.evaluation = Status::error("the device is lost");
  EXPECT_TRUE(failsWith(
      train(model, data, &other, optionsOf(recorder, 17), recorder),
      "evaluation behind step 8: the device is lost; step 8 was saved "
      "last"));
}

TEST_F(TrainingLoopTest, AnInterruptedEvaluationIsMadeUp) {
  TrainingBatches data = batches(), other = heldOut();
  recorder.stopAfter = 8;
  EXPECT_TRUE(train(model, data, &other, optionsOf(recorder, 17), recorder)
                  .isCancelled());
  EXPECT_TRUE(recorder.evaluations.empty());
  recorder.cancelled = false;
  recorder.stopAfter = 0;
  ASSERT_TRUE(
      succeeds(train(model, data, &other, optionsOf(recorder, 17), recorder)));
  EXPECT_TRUE(recorder.evaluations.contains(8));
  EXPECT_EQ(recorder.evaluations.size(), 3u);
}

TEST_F(TrainingLoopTest, WhatCannotBeSavedIsTriedOnce) {
  TrainingBatches data = batches();
  TrainingLoopOptions options = optionsOf(recorder, 17);
  int tries = 0;
  options.save = [&](int64_t) {
    ++tries;
    return Status::error("the disk is full");
  };
  EXPECT_TRUE(failsWith(train(model, data, nullptr, options, recorder),
                        "the disk is full"));
  EXPECT_EQ(tries, 1);
}

TEST_F(TrainingLoopTest, ATrainingThatIsOverDoesNothing) {
  TrainingBatches data = batches();
  model.setUpdates(17);
  EXPECT_TRUE(
      succeeds(train(model, data, nullptr, optionsOf(recorder, 17), recorder)));
  EXPECT_TRUE(recorder.steps.empty());
  EXPECT_TRUE(recorder.saved.empty());
}

TEST(TrainingLog, LinesAreJson) {
  const TrainingStep step{.step = 3,
                          .loss = {.sum = 5, .labels = 2},
                          .learningRate = 0.25,
                          .gradientNorm = 1.5,
                          .tokens = 8,
                          .seconds = 2};
  EXPECT_EQ(jsonLine(step, 10.0),
            R"({"step":3,"loss":2.5,"learning_rate":0.25,"gradient_norm":1.5,)"
            R"("tokens":8,"labels":2,"tokens_per_second":4.0,"seconds":10.0})");
  EXPECT_EQ(jsonLine(4, {.sum = 1, .labels = 2}, 11.5),
            R"({"step":4,"eval_loss":0.5,"eval_labels":2,"seconds":11.5})");
}

} // namespace
