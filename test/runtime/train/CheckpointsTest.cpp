//===- CheckpointsTest.cpp - Checkpoints, whole at any moment -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Checkpoints.h"

#include "../StatusAssertions.h"
#include "../TempFile.h"
#include "FakeTrainingModel.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kf;
using namespace kf::test;
namespace fs = std::filesystem;

namespace {

class Warnings : public Observer {
public:
  void onWarning(const std::string &line) override { lines.push_back(line); }
  std::vector<std::string> lines;
};

class CheckpointsTest : public testing::Test {
protected:
  static CheckpointHead headOf(int64_t step) {
    return {.step = step,
            .time = "2026-11-29T20:13:11",
            .model = "m",
            .data = "d",
            .options = {{"--lora", "16"}, {"--full", ""}}};
  }
  /// A model after `step` updates, of which each has other states.
  static FakeTrainingModel modelOf(int64_t step) {
    FakeTrainingModel model(1, 4, 8);
    for (size_t i = 0; i < model.weights.size(); ++i) {
      model.weights[i] = static_cast<float>(step) + static_cast<float>(i) / 64;
      model.momentum[i] = -model.weights[i];
    }
    model.setUpdates(step);
    return model;
  }
  static void expectStates(const std::string &path, int64_t step) {
    FakeTrainingModel model(1, 4, 8);
    const Result<CheckpointHead> head = readCheckpointHead(path);
    ASSERT_TRUE(head.ok()) << head.message();
    ASSERT_TRUE(succeeds(loadCheckpoint(path, *head, model)));
    EXPECT_EQ(model.updates(), step);
    EXPECT_EQ(model.weights, modelOf(step).weights);
    EXPECT_EQ(model.momentum, modelOf(step).momentum);
  }
  Checkpoints open(int64_t keep = 0) {
    Result<Checkpoints> checkpoints = Checkpoints::open(out, keep, &warnings);
    EXPECT_TRUE(checkpoints.ok()) << checkpoints.message();
    return checkpoints.take();
  }
  static Status save(Checkpoints &checkpoints, int64_t step) {
    FakeTrainingModel model = modelOf(step);
    return checkpoints.save(model, headOf(step));
  }

  const TempFolder folder;
  const std::string out = folder.path("new/out");
  Warnings warnings;
};

TEST_F(CheckpointsTest, ReadsWhatItWrote) {
  Checkpoints checkpoints = open();
  EXPECT_FALSE(checkpoints.newest());
  EXPECT_TRUE(checkpoints.steps().empty());
  ASSERT_TRUE(succeeds(save(checkpoints, 10)));
  ASSERT_TRUE(succeeds(save(checkpoints, 9)));
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{9, 10}));
  const std::optional<CheckpointHead> head = checkpoints.newest();
  ASSERT_TRUE(head);
  EXPECT_EQ(head->step, 10);
  EXPECT_EQ(head->options, headOf(10).options);
  EXPECT_EQ(head->time, headOf(10).time);
  EXPECT_TRUE(succeeds(checkSameTraining("p", *head, headOf(3))));
  expectStates(checkpoints.pathOf(9), 9);
  expectStates(checkpoints.pathOf(10), 10);
}

TEST_F(CheckpointsTest, ASecondOneOfAStepTakesThePlaceOfTheFirst) {
  Checkpoints checkpoints = open();
  FakeTrainingModel other = modelOf(77);
  ASSERT_TRUE(succeeds(checkpoints.save(other, headOf(5))));
  ASSERT_TRUE(succeeds(save(checkpoints, 5)));
  expectStates(checkpoints.pathOf(5), 5);
  EXPECT_FALSE(fs::exists(checkpoints.pathOf(5) + ".tmp"));
}

TEST_F(CheckpointsTest, KeepsTheLast) {
  Checkpoints checkpoints = open(2);
  for (int64_t step : {1, 2, 3, 4})
    ASSERT_TRUE(succeeds(save(checkpoints, step)));
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{3, 4}));
  // The one that was just written stays, whatever its step.
  ASSERT_TRUE(succeeds(save(checkpoints, 2)));
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{2, 4}));
}

TEST_F(CheckpointsTest, OneProcessTrainsInAFolder) {
  std::optional<Checkpoints> first = open();
  EXPECT_TRUE(failsWith(Checkpoints::open(out, 0, nullptr).status(),
                        "is what another process trains in"));
  first.reset();
  EXPECT_TRUE(Checkpoints::open(out, 0, nullptr).ok());
}

TEST_F(CheckpointsTest, FoldersThatCannotBe) {
  const std::string file = folder.write("file", "");
  EXPECT_TRUE(failsWith(Checkpoints::open(file, 0, nullptr).status(),
                        "cannot use '" + file + "'"));
  EXPECT_TRUE(failsWith(Checkpoints::open(file + "/in", 0, nullptr).status(),
                        "cannot use '" + file + "/in'"));
}

TEST_F(CheckpointsTest, OnesThatCannotBeReadArePassedOver) {
  Checkpoints checkpoints = open();
  for (int64_t step : {1, 2, 3, 4})
    ASSERT_TRUE(succeeds(save(checkpoints, step)));
  fs::resize_file(checkpoints.pathOf(4) + "/state.safetensors", 100);
  std::ofstream(checkpoints.pathOf(3) + "/checkpoint.json") << "{";
  fs::remove(checkpoints.pathOf(2) + "/checkpoint.json");
  fs::create_directory(out + "/checkpoint-9.tmp");
  fs::create_directory(out + "/checkpoint-x");
  EXPECT_EQ(checkpoints.newest().value().step, 1);
  ASSERT_EQ(warnings.lines.size(), 3u);
  EXPECT_NE(warnings.lines[1].find("checkpoint-3/checkpoint.json': not valid "
                                   "JSON at byte"),
            std::string::npos)
      << warnings.lines[1];
  ASSERT_TRUE(succeeds(save(checkpoints, 5)));
  EXPECT_FALSE(fs::exists(out + "/checkpoint-9.tmp"));
  EXPECT_TRUE(fs::exists(out + "/checkpoint-x"));
}

TEST_F(CheckpointsTest, HostileHeads) {
  const std::string good = R"("format":1,"step":1,"model":"m","data":"d")";
  for (const auto &[text, error] :
       std::vector<std::pair<std::string, std::string>>{
           {"[]", "a JSON object is expected, not []"},
           {"{}", "'format' is missing"},
           {R"({"format":2})", "'format' is 2"},
           {"{" + good + "}", "'options'"},
           {"{" + good + R"(,"options":[]})", "'options' is []"},
           {"{" + good + R"(,"options":{"a":1}})", "'options.a' is 1"},
           {R"({"format":1,"step":-1})", "'step' is -1"},
           {R"({"format":1,"step":1,"time":"now"})",
            "'time': a time as 2026-11-29T20:13:11 is expected, not 'now'"},
           {std::string(size_t(1) << 21, ' '), "more than 1.00 MiB"}}) {
    folder.write("checkpoint.json", text);
    EXPECT_TRUE(failsWith(readCheckpointHead(folder.path()).status(), error));
  }
}

TEST_F(CheckpointsTest, NamesWhatDiffers) {
  const CheckpointHead saved = headOf(1);
  CheckpointHead now = saved;
  now.model = "n";
  EXPECT_TRUE(failsWith(checkSameTraining("p", saved, now),
                        "checkpoint 'p' is of another model"));
  now = saved;
  now.options["--lora"] = "8";
  EXPECT_TRUE(failsWith(checkSameTraining("p", saved, now),
                        "checkpoint 'p' was made with --lora '16', and now it "
                        "is '8'"));
  now.options.erase("--lora");
  EXPECT_TRUE(failsWith(checkSameTraining("p", saved, now),
                        "was made with --lora '16', and now it is without"));
  now = saved;
  now.options["--clip"] = "1";
  EXPECT_TRUE(failsWith(checkSameTraining("p", saved, now),
                        "was made without --clip '1'"));
  now = saved;
  now.data = "e";
  EXPECT_TRUE(failsWith(checkSameTraining("p", saved, now),
                        "was made with other data"));
}

TEST_F(CheckpointsTest, StatesOfAnotherModel) {
  Checkpoints checkpoints = open();
  ASSERT_TRUE(succeeds(save(checkpoints, 1)));
  FakeTrainingModel larger(1, 4, 9);
  EXPECT_TRUE(
      failsWith(loadCheckpoint(checkpoints.pathOf(1), headOf(1), larger),
                "state.safetensors': state 'weights' is of another shape"));
  EXPECT_TRUE(failsWith(loadCheckpoint(out + "/none", headOf(1), larger),
                        "cannot open"));
}

/// Runs `work` in a process of its own that is killed at its system call number
/// `calls`; whether it came to its end before. Nothing where processes cannot
/// be traced.
template <typename Fn>
std::optional<bool> killAtSystemCall(int calls, Fn work) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0)
      ::_exit(2);
    ::raise(SIGSTOP);
    ::_exit(work() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSTOPPED(status))
    return std::nullopt;
  // It stops before and behind each call.
  for (int stop = 0; WIFSTOPPED(status) && stop < calls; ++stop) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
  }
  if (WIFSTOPPED(status)) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return false;
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return true;
}

TEST_F(CheckpointsTest, AreWholeWheneverTheProcessIsKilled) {
  {
    Checkpoints checkpoints = open();
    ASSERT_TRUE(succeeds(save(checkpoints, 1)));
    ASSERT_TRUE(succeeds(save(checkpoints, 2)));
  }
  bool hadOld = false;
  // What is left behind a call is what is left in front of the next.
  for (int calls = 0;; calls += 2) {
    const std::optional<bool> ended = killAtSystemCall(calls, [&] {
      Result<Checkpoints> checkpoints = Checkpoints::open(out, 1, nullptr);
      return checkpoints.ok() && save(*checkpoints, 3).ok();
    });
    if (!ended)
      GTEST_SKIP() << "processes cannot be traced here";
    {
      Checkpoints checkpoints = open();
      const std::optional<CheckpointHead> newest = checkpoints.newest();
      ASSERT_TRUE(newest) << calls;
      ASSERT_TRUE(newest->step == 3 || newest->step == 2) << calls;
      hadOld |= newest->step == 2;
      for (int64_t step : checkpoints.steps())
        expectStates(checkpoints.pathOf(step), step);
      EXPECT_TRUE(warnings.lines.empty()) << warnings.lines[0];
    }
    if (*ended)
      break;
    ASSERT_LT(calls, 10000);
    // Again from what was there before.
    fs::remove_all(out + "/checkpoint-3");
    Checkpoints checkpoints = open();
    for (int64_t step : {1, 2})
      if (!fs::exists(checkpoints.pathOf(step)))
        ASSERT_TRUE(succeeds(save(checkpoints, step)));
  }
  EXPECT_TRUE(hadOld);
  const Checkpoints checkpoints = open();
  EXPECT_EQ(checkpoints.steps(), std::vector<int64_t>{3});
}

} // namespace
