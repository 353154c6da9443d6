//===- TrainingDataTest.cpp - Files of examples ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingData.h"

#include "../StatusAssertions.h"
#include "../TempFile.h"
#include "../TestFiles.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace kf;
using namespace kf::test;

namespace {

class TrainingDataTest : public testing::Test {
protected:
  Result<TrainingData> read(const std::string &name, const std::string &text,
                            int64_t length = 64,
                            LongExamples longExamples = LongExamples::Cut) {
    return readTrainingData(folder.write(name, text), encoder,
                            {.length = length, .longExamples = longExamples});
  }
  std::string textOf(const TrainingExample &example) {
    return model.tokenizer->decode(example.ids, false);
  }

  const TempFolder folder;
  const ModelFiles model =
      openModelFiles(testFile(KF_SOURCE_DIR "/models/kf-stories"), true).take();
  const ExampleEncoder encoder =
      ExampleEncoder::open(model, {}, /*trainOnPrompt=*/false).take();
};

constexpr const char *kLines =
    "\xef\xbb\xbf{\"text\": \"One cat\"}\r\n"
    "\n"
    "{\"prompt\": \"One\", \"completion\": \" dog\"}\n"
    "{\"text\": \"\"}\n"
    "{\"text\": \"One bird\"}";

TEST_F(TrainingDataTest, Lines) {
  const Result<TrainingData> data = read("a.jsonl", kLines);
  ASSERT_TRUE(data.ok()) << data.message();
  ASSERT_EQ(data->examples.size(), 3u);
  EXPECT_EQ(textOf(data->examples[1]),
            "<|begin_of_text|>One dog<|end_of_text|>");
  EXPECT_EQ(textOf(data->examples[2]),
            "<|begin_of_text|>One bird<|end_of_text|>");
  EXPECT_EQ(data->empty, 1);
  EXPECT_EQ(data->cut + data->tooLong, 0);
  EXPECT_GT(data->tokens(), data->labels());
}

TEST_F(TrainingDataTest, AnArray) {
  const Result<TrainingData> data =
      read("a.json", R"(["One cat", {"text": "One bird"}])");
  ASSERT_TRUE(data.ok()) << data.message();
  ASSERT_EQ(data->examples.size(), 2u);
  EXPECT_EQ(textOf(data->examples[0]),
            "<|begin_of_text|>One cat<|end_of_text|>");
  EXPECT_EQ(textOf(data->examples[1]),
            "<|begin_of_text|>One bird<|end_of_text|>");
}

TEST_F(TrainingDataTest, AByteOrderMarkIsNoneOfTheData) {
  const Result<TrainingData> array =
      read("a.json", "\xef\xbb\xbf[\"One cat\", \"One bird\"]");
  ASSERT_TRUE(array.ok()) << array.message();
  EXPECT_EQ(array->examples.size(), 2u);
  const Result<TrainingData> text = read("a.txt", "\xef\xbb\xbfOne cat");
  ASSERT_TRUE(text.ok()) << text.message();
  EXPECT_EQ(textOf(text->examples[0]),
            "<|begin_of_text|>One cat<|end_of_text|>");
}

TEST_F(TrainingDataTest, ATextIsCutIntoPiecesThatMissNoToken) {
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += "There was a dog. ";
  const std::vector<int32_t> whole = encoder.encodeText(text)->ids;
  const Result<TrainingData> data = read("a.txt", text, 16);
  ASSERT_TRUE(data.ok()) << data.message();
  std::vector<int32_t> learnt;
  for (const TrainingExample &piece : data->examples) {
    EXPECT_LE(piece.ids.size(), 17u);
    learnt.insert(learnt.end(), piece.ids.begin() + 1, piece.ids.end());
  }
  EXPECT_EQ(learnt, std::vector<int32_t>(whole.begin() + 1, whole.end()));
  EXPECT_EQ(data->labels(), static_cast<int64_t>(learnt.size()));
  EXPECT_EQ(data->cut, 0);
}

TEST_F(TrainingDataTest, LongExamplesAreCutOrLeftOut) {
  const std::string lines =
      R"({"text": "There was a little dog who liked to run and play."})"
      "\n"
      R"({"text": "A cat."})"
      "\n";
  const Result<TrainingData> cut = read("a.jsonl", lines, 8);
  ASSERT_TRUE(cut.ok()) << cut.message();
  ASSERT_EQ(cut->examples.size(), 2u);
  EXPECT_EQ(cut->examples[0].ids.size(), 9u);
  EXPECT_EQ(cut->examples[0].counts.size(), 9u);
  EXPECT_EQ(cut->cut, 1);
  const Result<TrainingData> dropped =
      read("a.jsonl", lines, 8, LongExamples::Drop);
  ASSERT_TRUE(dropped.ok()) << dropped.message();
  EXPECT_EQ(dropped->examples.size(), 1u);
  EXPECT_EQ(dropped->tooLong, 1);
}

TEST_F(TrainingDataTest, AnExampleWhoseAnswerIsCutOffIsLeftOut) {
  const std::string line =
      R"({"prompt": "There was a little dog who liked to run",)"
      R"( "completion": " and play"})";
  const Result<TrainingData> data =
      read("a.jsonl", line + "\n{\"text\": \"A\"}", 4);
  ASSERT_TRUE(data.ok()) << data.message();
  EXPECT_EQ(data->examples.size(), 1u);
  EXPECT_EQ(data->empty, 1);
  EXPECT_TRUE(failsWith(read("b.jsonl", line, 4).status(),
                        "has no token to learn: what counts is behind the "
                        "first 4 tokens of each example"));
  EXPECT_TRUE(failsWith(read("b.jsonl", line, 4, LongExamples::Drop).status(),
                        "has no token to learn: all examples are longer than 4 "
                        "tokens"));
}

TEST_F(TrainingDataTest, ErrorsNameFileAndLine) {
  EXPECT_TRUE(
      failsWith(read("a.jsonl", "{\"text\": \"a\"}\n\n{\"text\": 1}").status(),
                "a.jsonl': line 3: 'text' is 1, but a string is "
                "expected"));
  EXPECT_TRUE(failsWith(read("a.jsonl", "Once upon").status(),
                        "a.jsonl': line 1: not valid JSON at byte 1; a line is "
                        "a JSON object, and the name of a plain text ends in "
                        ".txt"));
  EXPECT_TRUE(failsWith(read("a.json", "[\"a\", 1]").status(),
                        "a.json': element 1: a JSON object is expected, not "
                        "1"));
  EXPECT_TRUE(failsWith(read("a.json", "{\"text\": \"a\"}").status(),
                        "a file with an example a line ends in .jsonl"));
  EXPECT_TRUE(failsWith(read("a.jsonl", "\n \n").status(), "is empty"));
  EXPECT_TRUE(failsWith(read("a.txt", "").status(), "is empty"));
  EXPECT_TRUE(failsWith(read("a.jsonl", "{\"text\": \"\"}").status(),
                        "has no token to learn"));
  EXPECT_TRUE(failsWith(
      readTrainingData(folder.path("none"), encoder, {.length = 8}).status(),
      "cannot open"));
  EXPECT_TRUE(failsWith(
      readTrainingData(folder.path(), encoder, {.length = 8}).status(),
      "cannot open"));
}

TEST_F(TrainingDataTest, IsCancelled) {
  const std::atomic<bool> cancelled = true;
  for (const char *name : {"a.jsonl", "a.json", "a.txt"})
    EXPECT_TRUE(readTrainingData(folder.write(name, R"(["One cat"])"), encoder,
                                 {.length = 64, .cancelled = &cancelled})
                    .status()
                    .isCancelled())
        << name;
}

TEST_F(TrainingDataTest, TheDigestIsOfIdsAndOfWhatCounts) {
  const std::string digest = read("a.jsonl", kLines)->digest();
  EXPECT_EQ(read("b.jsonl", kLines)->digest(), digest);
  TrainingData data = read("a.jsonl", kLines).take();
  std::swap(data.examples[0], data.examples[2]);
  EXPECT_NE(data.digest(), digest);
  std::swap(data.examples[0], data.examples[2]);
  EXPECT_EQ(data.digest(), digest);
  data.examples[1].counts[1] = !data.examples[1].counts[1];
  EXPECT_NE(data.digest(), digest);
  // Where one example ends matters.
  data = read("a.jsonl", kLines).take();
  const int32_t last = data.examples[0].ids.back();
  data.examples[0].ids.pop_back();
  data.examples[0].counts.pop_back();
  data.examples[1].ids.insert(data.examples[1].ids.begin(), last);
  data.examples[1].counts.insert(data.examples[1].counts.begin(), true);
  EXPECT_NE(data.digest(), digest);
}

TEST_F(TrainingDataTest, AShareIsHeldOutByTheSeed) {
  std::string lines;
  for (int i = 0; i < 100; ++i)
    lines += R"({"text": "number )" + std::to_string(i) + "\"}\n";
  TrainingData data = read("a.jsonl", lines).take();
  const TrainingData all = data;
  Result<TrainingData> held = splitTrainingData(data, 0.1, 5);
  ASSERT_TRUE(held.ok()) << held.message();
  EXPECT_EQ(held->examples.size(), 10u);
  EXPECT_EQ(data.examples.size(), 90u);
  for (const TrainingExample &example : held->examples)
    EXPECT_EQ(std::ranges::count(data.examples, example), 0);

  TrainingData again = all, other = all, few = all;
  EXPECT_EQ(splitTrainingData(again, 0.1, 5)->digest(), held->digest());
  EXPECT_NE(splitTrainingData(other, 0.1, 6)->digest(), held->digest());
  few.examples.resize(2);
  EXPECT_EQ(splitTrainingData(few, 0.0001, 0)->examples.size(), 1u);
  EXPECT_EQ(few.examples.size(), 1u);
  EXPECT_TRUE(failsWith(splitTrainingData(few, 0.5, 0).status(),
                        "one example cannot be divided"));
}

} // namespace
