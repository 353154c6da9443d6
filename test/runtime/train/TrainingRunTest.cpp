//===- TrainingRunTest.cpp - A training from files to files ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingRun.h"

#include "runtime/chat/LocalTime.h"

#include "../StatusAssertions.h"
#include "../TempFile.h"
#include "../TestFiles.h"
#include "FakeTrainingModel.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace kf;
using namespace kf::test;

namespace {

class Listener : public TrainingListener {
public:
  Status onStep(const TrainingStep &step) override {
    losses.push_back(step.loss.mean());
    cancelled = step.step == stopAfter;
    return Status();
  }
  Status onEvaluation(int64_t, const TrainingLoss &) override {
    ++evaluations;
    return Status();
  }

  std::vector<double> losses;
  int64_t stopAfter = 0, evaluations = 0;
  std::atomic<bool> cancelled = false;
};

class Notes : public Observer {
public:
  void onNote(const std::string &line) override { lines.push_back(line); }
  void onWarning(const std::string &line) override { warnings.push_back(line); }
  std::vector<std::string> lines, warnings;
};

class TrainingRunTest : public testing::Test {
protected:
  TrainingRunTest() {
    std::string lines;
    for (const char *name : {"Kip", "Tam", "Bo", "Una", "Pim", "Rex"})
      lines += R"({"text": "The fox was called )" + std::string(name) + "\"}\n";
    folder.write("fox.jsonl", lines);
  }

  TrainingRunOptions optionsOf(Listener &listener) {
    TrainingRunOptions options;
    options.data = folder.path("fox.jsonl");
    options.output = folder.path("out");
    options.batch = 2;
    options.length = 16;
    options.epochs = 3;
    options.learningRate = {
        .peak = 2, .decay = LearningRate::Decay::Linear, .warmup = 1};
    options.modelOptions = {{"--lora", "4"}};
    options.cancelled = &listener.cancelled;
    options.observer = &notes;
    return options;
  }
  Result<std::unique_ptr<TrainingRun>> open(TrainingRunOptions options) {
    return TrainingRun::open(
        model, std::move(options),
        [&](int64_t rows, int64_t length,
            uint64_t seed) -> Result<std::unique_ptr<TrainingModel>> {
          ++opened;
          openedSeed = seed;
          return std::unique_ptr<TrainingModel>(
              std::make_unique<FakeTrainingModel>(
                  rows, length, static_cast<size_t>(model.config.vocabSize)));
        });
  }
  /// Runs it all; the states that come of it.
  std::vector<float> statesOf(TrainingRunOptions options, Listener &listener) {
    auto run = open(std::move(options));
    EXPECT_TRUE(run.ok()) << run.message();
    if (!run.ok())
      return {};
    EXPECT_TRUE(succeeds((*run)->run(listener)));
    return static_cast<FakeTrainingModel &>((*run)->model()).momentum;
  }

  const TempFolder folder;
  const ModelFiles model =
      openModelFiles(testFile(KF_SOURCE_DIR "/models/kf-stories"), true).take();
  Notes notes;
  Listener listener;
  int opened = 0;
  uint64_t openedSeed = 0; ///< of the last one
};

TEST_F(TrainingRunTest, TrainsForEpochs) {
  TrainingRunOptions options = optionsOf(listener);
  options.evalSplit = 0.2;
  auto run = open(options);
  ASSERT_TRUE(run.ok()) << run.message();
  EXPECT_EQ((*run)->firstStep(), 0);
  EXPECT_EQ((*run)->lastCheckpoint(), "");
  ASSERT_TRUE(succeeds((*run)->run(listener)));
  EXPECT_EQ(static_cast<int64_t>(listener.losses.size()), (*run)->steps());
  EXPECT_LT(listener.losses.back(), listener.losses.front());
  EXPECT_EQ(listener.evaluations, 1);
  EXPECT_EQ((*run)->lastCheckpoint(),
            folder.path("out/checkpoint-") + std::to_string((*run)->steps()));
  ASSERT_EQ(notes.lines.size(), 2u);
  EXPECT_NE(notes.lines[0].find("fox.jsonl': 6 examples, "), std::string::npos)
      << notes.lines[0];
  EXPECT_EQ(notes.lines[1], "1 example of these held out");
}

TEST_F(TrainingRunTest, GoesOnToTheSameBits) {
  const std::vector<float> whole = statesOf(optionsOf(listener), listener);
  Listener first;
  first.stopAfter = 2;
  TrainingRunOptions options = optionsOf(first);
  options.output = folder.path("other");
  {
    auto run = open(options);
    ASSERT_TRUE(run.ok()) << run.message();
    EXPECT_TRUE((*run)->run(first).isCancelled());
    EXPECT_EQ((*run)->lastCheckpoint(), folder.path("other/checkpoint-2"));
  }
  Listener second;
  options = optionsOf(second);
  options.resume = folder.path("other/checkpoint-2");
  options.output = folder.path("third");
  EXPECT_EQ(statesOf(options, second), whole);
  options.output = folder.path("other");
  options.resume = "";
  EXPECT_EQ(statesOf(options, second), whole);
  EXPECT_EQ(notes.lines.back(),
            "goes on from '" + folder.path("other/checkpoint-2") + "'");
}

TEST_F(TrainingRunTest, WhatDiffersIsNamedBeforeTheModelIsOpened) {
  (void)statesOf(optionsOf(listener), listener);
  EXPECT_EQ(opened, 1);
  TrainingRunOptions options = optionsOf(listener);
  EXPECT_TRUE(failsWith(open(options).status(),
                        "has checkpoints of a training; --resume goes on from "
                        "them"));
  options.resume = "";
  options.modelOptions["--lora"] = "8";
  EXPECT_TRUE(failsWith(open(options).status(),
                        "was made with --lora '4', and now it is '8'"));
  options = optionsOf(listener);
  options.resume = "";
  options.epochs = 4;
  EXPECT_TRUE(failsWith(open(options).status(), "was made with --"));
  options.epochs = 3;
  options.trainOnPrompt = true;
  EXPECT_TRUE(
      failsWith(open(options).status(), "was made without --train-on-prompt"));
  options.trainOnPrompt = false;
  folder.write("fox.jsonl", R"({"text": "The cat was called Kip"})"
                            "\n"
                            R"({"text": "The cat was called Bo"})");
  options.steps = 100;
  options.epochs.reset();
  options.learningRate.decay = LearningRate::Decay::Constant;
  EXPECT_TRUE(failsWith(open(options).status(), "was made with "));
  options = optionsOf(listener);
  options.resume = "";
  options.output = folder.path("none");
  EXPECT_TRUE(
      failsWith(open(options).status(), "has no checkpoint to go on from"));
  EXPECT_EQ(opened, 1);
}

TEST_F(TrainingRunTest, OtherDataAreNamed) {
  TrainingRunOptions options = optionsOf(listener);
  options.steps = 2;
  options.epochs.reset();
  (void)statesOf(options, listener);
  folder.write("fox.jsonl", R"({"text": "The cat was called Kip"})");
  options.resume = "";
  EXPECT_TRUE(failsWith(open(options).status(), "was made with other data"));
}

TEST_F(TrainingRunTest, AtAConstantRateItMayBecomeLonger) {
  TrainingRunOptions options = optionsOf(listener);
  options.learningRate.decay = LearningRate::Decay::Constant;
  options.steps = 5;
  options.epochs.reset();
  options.output = folder.path("whole");
  const std::vector<float> whole = statesOf(options, listener);
  options.output = folder.path("out");
  options.steps = 2;
  (void)statesOf(options, listener);
  options.steps = 5;
  options.resume = "";
  EXPECT_EQ(statesOf(options, listener), whole);
}

TEST_F(TrainingRunTest, ACheckpointBehindTheLastStep) {
  TrainingRunOptions options = optionsOf(listener);
  options.learningRate.decay = LearningRate::Decay::Constant;
  options.steps = 5;
  options.epochs.reset();
  (void)statesOf(options, listener);
  options.steps = 3;
  options.resume = "";
  EXPECT_TRUE(failsWith(open(options).status(),
                        "out/checkpoint-5' is of step 5, and --steps 3 ends "
                        "behind 3 steps; give more, or an earlier checkpoint"));
}

TEST_F(TrainingRunTest, HowLongItIsIsNamedAsItWasGiven) {
  TrainingRunOptions options = optionsOf(listener);
  options.batch = 1; // so that no row of the last step is empty
  (void)statesOf(options, listener);
  const std::string steps = std::to_string(listener.losses.size());
  options.resume = "";
  options.epochs = 6;
  EXPECT_TRUE(failsWith(open(options).status(),
                        "is of a training of " + steps +
                            " steps, and now --epochs 6 makes "));
  options.epochs.reset();
  options.steps = 99;
  EXPECT_TRUE(failsWith(open(options).status(),
                        "is of a training of " + steps +
                            " steps, and now --steps 99 is given"));
  // Other data are what has made it longer.
  options.steps.reset();
  options.epochs = 3;
  options.data = folder.write(
      "more.jsonl", std::string(99, '\n') +
                        R"({"text": "The cat was called Kip and Bo and Una"})"
                        "\n");
  EXPECT_TRUE(failsWith(open(options).status(), "was made with other data"));
}

TEST_F(TrainingRunTest, AWarmupThatTakesAllStepsIsSaid) {
  TrainingRunOptions options = optionsOf(listener);
  options.epochs.reset();
  options.steps = 4;
  options.learningRate.warmup = 3;
  ASSERT_TRUE(open(options).ok());
  EXPECT_TRUE(notes.warnings.empty()) << notes.warnings.front();
  options.learningRate.warmup = 4;
  ASSERT_TRUE(open(options).ok());
  ASSERT_EQ(notes.warnings.size(), 1u);
  EXPECT_EQ(notes.warnings[0],
            "--warmup 4 takes all of the training's 4 steps, so that the "
            "learning rate never comes to --learning-rate");
}

TEST_F(TrainingRunTest, FilesThatAreNoTrainingsStay) {
  TrainingRunOptions options = optionsOf(listener);
  std::filesystem::create_directory(folder.path("out"));
  folder.write("out/config.json", "{}");
  ASSERT_TRUE(open(options).ok()) << "an adapter replaces no model";
  options.fullModel = "model";
  for (const char *name :
       {"config.json", "tokenizer.json", "model.safetensors.index.json",
        "model-00001-of-00002.safetensors"}) {
    std::filesystem::remove_all(folder.path("out"));
    std::filesystem::create_directory(folder.path("out"));
    folder.write("out/" + std::string(name), "{}");
    EXPECT_TRUE(failsWith(open(options).status(),
                          "out/" + std::string(name) +
                              "' is there already, and the result would "
                              "replace it; give --force, or another --output"));
  }
  options.force = true;
  EXPECT_TRUE(open(options).ok());
  options.force = false;
  options.fullModel.reset();
  folder.write("out/adapter_config.json", "{}");
  EXPECT_TRUE(failsWith(open(options).status(),
                        "adapter_config.json' is there already"));
  // What goes on replaces its own result.
  options.force = true;
  (void)statesOf(options, listener);
  options.force = false;
  options.resume = "";
  EXPECT_TRUE(open(options).ok());
}

TEST_F(TrainingRunTest, FilesThatHaveComeMeanwhileStay) {
  TrainingRunOptions options = optionsOf(listener);
  auto run = open(options);
  ASSERT_TRUE(run.ok()) << run.message();
  const char *config = "out/adapter_config.json";
  folder.write(config, "{}");
  EXPECT_TRUE(failsWith((*run)->run(listener),
                        "adapter_config.json' is there already"));
  (*run).reset();
  options.resume = "";
  EXPECT_TRUE(failsWith(open(options).status(),
                        "adapter_config.json' is there already"));
  std::filesystem::remove(folder.path(config));
  EXPECT_TRUE(open(options).ok());
}

TEST_F(TrainingRunTest, AnEarlierCheckpointMayReplaceTheResultBehindIt) {
  TrainingRunOptions options = optionsOf(listener);
  options.saveEvery = 1;
  options.keep = 0;
  (void)statesOf(options, listener);
  folder.write("out/adapter_config.json", "{}"); // as the model would
  options.resume = folder.path("out/checkpoint-1");
  EXPECT_TRUE(open(options).ok());
  options.output = folder.path("other");
  std::filesystem::create_directory(options.output);
  folder.write("other/adapter_config.json", "{}");
  EXPECT_TRUE(failsWith(open(options).status(),
                        "adapter_config.json' is there already"));
}

TEST_F(TrainingRunTest, AnySeedIsTheCheckpoints) {
  TrainingRunOptions options = optionsOf(listener);
  options.seed = 17;
  options.anySeed = true;
  (void)statesOf(options, listener);
  EXPECT_EQ(openedSeed, 17u);
  options.seed = 18;
  options.resume = "";
  EXPECT_TRUE(open(options).ok());
  EXPECT_EQ(openedSeed, 17u);
}

TEST_F(TrainingRunTest, StepsThatCannotBeCounted) {
  TrainingRunOptions options = optionsOf(listener);
  options.batch = options.accumulate = 65536;
  options.steps = int64_t(1) << 40;
  options.epochs.reset();
  EXPECT_TRUE(failsWith(open(options).status(),
                        "--steps 1099511627776 reads more rows than can be "
                        "counted; give less"));
}

TEST_F(TrainingRunTest, CheckpointsOfAnotherTrainingStay) {
  TrainingRunOptions options = optionsOf(listener);
  (void)statesOf(options, listener);
  options.output = folder.path("other");
  const auto run = open(options);
  ASSERT_TRUE(run.ok()) << run.message();
  ASSERT_TRUE(succeeds((*run)->run(listener)));
  options.resume = (*run)->lastCheckpoint();
  options.output = folder.path("out");
  EXPECT_TRUE(failsWith(open(options).status(),
                        "out' has checkpoints of a training, of which '" +
                            *options.resume +
                            "' is none; give another --output"));
}

TEST_F(TrainingRunTest, EpochsWhoseLastStepHasEmptyRowsDoNotBecomeMore) {
  TrainingRunOptions options = optionsOf(listener);
  options.learningRate.decay = LearningRate::Decay::Constant;
  options.pack = false;
  options.epochs = 1;
  options.batch = 4; // of 6 rows
  (void)statesOf(options, listener);
  options.epochs = 2;
  options.resume = "";
  EXPECT_TRUE(failsWith(open(options).status(),
                        "was made with --epochs '1', and now it is '2'"));
  options.batch = 3;
  options.output = folder.path("whole");
  options.resume.reset();
  const std::vector<float> whole = statesOf(options, listener);
  options.epochs = 1;
  options.output = folder.path("even");
  (void)statesOf(options, listener);
  options.epochs = 2;
  options.resume = "";
  EXPECT_EQ(statesOf(options, listener), whole);
}

TEST_F(TrainingRunTest, AnySeedIsTheCheckpointsOwn) {
  TrainingRunOptions options = optionsOf(listener);
  options.anySeed = true;
  options.seed = 7;
  const std::vector<float> whole = statesOf(options, listener);
  options.seed = 8;
  options.resume = "";
  EXPECT_EQ(statesOf(options, listener), whole);
  options.anySeed = false;
  EXPECT_TRUE(failsWith(open(options).status(),
                        "was made with --seed '7', and now it is '8'"));
}

TEST_F(TrainingRunTest, TheDateOfATemplateIsThatOfTheBegin) {
  TrainingRunOptions options = optionsOf(listener);
  options.data = folder.write(
      "chat.jsonl", R"({"messages": [{"role": "user", "content": "Who?"},)"
                    R"( {"role": "assistant", "content": "Kip."}]})");
  options.chatTemplate.file = folder.write(
      "dated.jinja", "{{ strftime_now('%A %d %B') }}{% for m in messages %}"
                     "{{ m.content }}{% endfor %}");
  options.chatTemplate.now = *parseLocalTime("2024-02-29T12:00:00");
  options.length = 64; // of whatever date there is
  std::string time;
  {
    auto run = open(options);
    ASSERT_TRUE(run.ok()) << run.message();
    time = (*run)->templateTime();
    EXPECT_EQ(time, "2024-02-29T12:00:00");
    ASSERT_TRUE(succeeds((*run)->run(listener)));
  }
  // On another day.
  options.resume = "";
  options.chatTemplate.now.reset();
  {
    const auto run = open(options);
    ASSERT_TRUE(run.ok()) << run.message();
    EXPECT_EQ((*run)->templateTime(), time);
  }
  // What does not say is of the present, as others are.
  options.resume.reset();
  options.output = folder.path("now");
  const auto run = open(options);
  ASSERT_TRUE(run.ok()) << run.message();
  EXPECT_GT((*run)->templateTime(), time);
}

TEST_F(TrainingRunTest, RowsThatTheModelHasNoPositionsFor) {
  TrainingRunOptions options = optionsOf(listener);
  options.length = 2000;
  EXPECT_TRUE(
      failsWith(open(options).status(),
                "--length 2000 is more than the 1024 positions of the model"));
}

} // namespace
