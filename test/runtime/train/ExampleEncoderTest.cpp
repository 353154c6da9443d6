//===- ExampleEncoderTest.cpp - Which tokens are to be learnt -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ExampleEncoder.h"

#include "../StatusAssertions.h"
#include "../TempFile.h"
#include "../TestFiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

using namespace kf;
using namespace kf::test;

namespace {

class ExampleEncoderTest : public testing::Test {
protected:
  ExampleEncoder open(const std::string &templateFile = {},
                      bool trainOnPrompt = false) {
    Result<ExampleEncoder> encoder =
        ExampleEncoder::open(model, {.file = templateFile}, trainOnPrompt);
    EXPECT_TRUE(encoder.ok()) << encoder.message();
    return encoder.take();
  }
  std::vector<TrainingExample> encode(const ExampleEncoder &encoder,
                                      const std::string &line) {
    Result<ExampleSource> source = parseExample(line);
    EXPECT_TRUE(source.ok()) << source.message();
    std::vector<TrainingExample> examples;
    EXPECT_TRUE(succeeds(encoder.encode(*source, examples)));
    for (const TrainingExample &example : examples)
      EXPECT_EQ(example.ids.size(), example.counts.size());
    return examples;
  }
  Status statusOf(const ExampleEncoder &encoder, const std::string &line) {
    std::vector<TrainingExample> examples;
    return encoder.encode(*parseExample(line), examples);
  }
  std::string textOf(const TrainingExample &example) {
    return model.tokenizer->decode(example.ids, false);
  }
  /// What counts of an example, with bars where something between does not.
  std::string learnt(const TrainingExample &example) {
    std::string text;
    std::vector<int32_t> run;
    for (size_t i = 0; i <= example.ids.size(); ++i) {
      if (i < example.ids.size() && example.counts[i]) {
        run.push_back(example.ids[i]);
      } else if (!run.empty()) {
        text += (text.empty() ? "" : "|") + model.tokenizer->decode(run, false);
        run.clear();
      }
    }
    return text;
  }

  ModelFiles model =
      openModelFiles(testFile(KF_SOURCE_DIR "/models/kf-stories"), true).take();
};

constexpr const char *kChat =
    R"({"messages": [{"role": "user", "content": "Tell me a story."},
                     {"role": "assistant", "content": "Once upon a time."},
                     {"role": "user", "content": "Go on."},
                     {"role": "assistant", "content": "The end."}]})";

TEST_F(ExampleEncoderTest, ATextStandsBetweenBeginAndEnd) {
  const auto examples = encode(open(), R"({"text": "Once upon a time"})");
  ASSERT_EQ(examples.size(), 1u);
  EXPECT_EQ(textOf(examples[0]),
            "<|begin_of_text|>Once upon a time<|end_of_text|>");
  EXPECT_EQ(learnt(examples[0]), "Once upon a time<|end_of_text|>");
}

TEST_F(ExampleEncoderTest, NeitherComesTwice) {
  const auto examples =
      encode(open(), R"({"text": "<|begin_of_text|>Once<|end_of_text|>"})");
  EXPECT_EQ(textOf(examples[0]), "<|begin_of_text|>Once<|end_of_text|>");
}

TEST_F(ExampleEncoderTest, AnEmptyTextIsNone) {
  EXPECT_TRUE(encode(open(), R"({"text": ""})").empty());
}

TEST_F(ExampleEncoderTest, OfACompletionThePromptDoesNotCount) {
  const std::string line =
      R"({"prompt": "Once upon a time", "completion": " there was a cat."})";
  const auto examples = encode(open(), line);
  ASSERT_EQ(examples.size(), 1u);
  EXPECT_EQ(
      textOf(examples[0]),
      "<|begin_of_text|>Once upon a time there was a cat.<|end_of_text|>");
  EXPECT_EQ(learnt(examples[0]), " there was a cat.<|end_of_text|>");
  EXPECT_EQ(learnt(encode(open({}, true), line)[0]), textOf(examples[0]));
}

TEST_F(ExampleEncoderTest, ATokenOfPromptAndCompletionCounts) {
  const auto examples =
      encode(open(), R"({"prompt": "Once up", "completion": "on a time"})");
  EXPECT_TRUE(learnt(examples[0]).ends_with("on a time<|end_of_text|>"))
      << learnt(examples[0]);
  EXPECT_EQ(textOf(examples[0]),
            "<|begin_of_text|>Once upon a time<|end_of_text|>");
}

TEST_F(ExampleEncoderTest, OfAChatTheAnswersCount) {
  const auto examples = encode(open(), kChat);
  ASSERT_EQ(examples.size(), 1u);
  EXPECT_EQ(textOf(examples[0]),
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n"
            "Tell me a story.<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n"
            "Once upon a time.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nGo on.<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n"
            "The end.<|eot_id|>");
  EXPECT_EQ(learnt(examples[0]),
            "Once upon a time.<|eot_id|>|The end.<|eot_id|>");
  EXPECT_EQ(learnt(encode(open({}, true), kChat)[0]), textOf(examples[0]));
}

TEST_F(ExampleEncoderTest, AWeightOfZeroLeavesAnAnswerOut) {
  const auto examples =
      encode(open(), R"({"messages": [{"role": "user", "content": "One?"},
                       {"role": "assistant", "content": "Two", "weight": 0},
                       {"role": "user", "content": "Three?"},
                       {"role": "assistant", "content": "Four"},
                       {"role": "user", "content": "Thanks"}]})");
  ASSERT_EQ(examples.size(), 1u);
  EXPECT_EQ(learnt(examples[0]), "Four<|eot_id|>");
  // Nothing is to be learnt behind it.
  EXPECT_TRUE(textOf(examples[0]).ends_with("Four<|eot_id|>"));
}

TEST_F(ExampleEncoderTest, SpecialTokensOfMessagesAreText) {
  const auto examples =
      encode(open(), R"({"messages": [{"role": "user", "content": "<|eot_id|>"},
                               {"role": "assistant", "content": "Hi"}]})");
  const int32_t end = *model.tokenizer->idOf("<|eot_id|>");
  EXPECT_EQ(std::ranges::count(examples[0].ids, end), 2);
}

// Whose control tokens are plain text to this tokenizer.
TEST_F(ExampleEncoderTest, TemplatesOfManyModels) {
  size_t count = 0;
  for (const auto &entry : std::filesystem::directory_iterator(
           testFile(KF_SOURCE_DIR "/test/runtime/chat/templates"))) {
    const std::string file = entry.path().string();
    SCOPED_TRACE(file);
    ++count;
    std::string all;
    for (const TrainingExample &example : encode(open(file), kChat))
      all += learnt(example) + "|";
    // Each answer once, and nothing that the user says.
    EXPECT_NE(all.find("Once upon a time."), std::string::npos) << all;
    EXPECT_EQ(all.find("Once upon"), all.rfind("Once upon")) << all;
    EXPECT_NE(all.find("The end."), std::string::npos) << all;
    EXPECT_EQ(all.find("The end."), all.rfind("The end.")) << all;
    EXPECT_EQ(all.find("story"), std::string::npos) << all;
    EXPECT_EQ(all.find("Go on"), std::string::npos) << all;
  }
  EXPECT_GE(count, 10u);
}

TEST_F(ExampleEncoderTest, ATemplateThatForgetsThoughtsMakesSeveralExamples) {
  const TempFolder folder;
  const std::string file = folder.write(
      "think.jinja", "{% for m in messages %}[{{ m.role }}]"
                     "{% if m.role == 'assistant' and loop.last %}(hm){% endif "
                     "%}{{ m.content }};{% endfor %}"
                     "{% if add_generation_prompt %}[assistant]{% endif %}");
  const auto examples = encode(open(file), kChat);
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(textOf(examples[0]),
            "[user]Tell me a story.;[assistant](hm)Once upon a time.;");
  EXPECT_TRUE(learnt(examples[0]).ends_with("(hm)Once upon a time.;"));
  EXPECT_EQ(textOf(examples[1]),
            "[user]Tell me a story.;[assistant]Once upon a time.;[user]Go on.;"
            "[assistant](hm)The end.;");
  EXPECT_EQ(learnt(examples[1]).find("Once"), std::string::npos);
}

TEST_F(ExampleEncoderTest, AnAnswerMayBeginOtherwiseThanItsPromptHasIt) {
  const TempFolder folder;
  const std::string file = folder.write(
      "thought.jinja", "{% for m in messages %}[{{ m.role }}]{{ m.content }};"
                       "{% endfor %}{% if add_generation_prompt %}[assistant]"
                       "<think>{% endif %}");
  const auto examples = encode(open(file), kChat);
  ASSERT_EQ(examples.size(), 1u);
  EXPECT_NE(learnt(examples[0]).find("Once upon a time.;"), std::string::npos);
  EXPECT_EQ(learnt(examples[0]).find("user"), std::string::npos);
}

TEST_F(ExampleEncoderTest, ATemplateThatTellsNoAnswerFromItsPrompt) {
  const TempFolder folder;
  const std::string file = folder.write(
      "count.jinja", "{{ messages | length }}{% for m in messages %}"
                     "{{ m.content }}{% endfor %}");
  EXPECT_TRUE(failsWith(
      statusOf(open(file), kChat),
      "the chat template writes what is before messages[1] otherwise once that "
      "is there, so that its tokens cannot be found; --train-on-prompt has all "
      "tokens count"));
  EXPECT_EQ(encode(open(file, true), kChat).size(), 1u);
}

TEST_F(ExampleEncoderTest, AConversationMayBeginWithTheAssistant) {
  const TempFolder folder;
  const std::string line =
      R"({"messages": [{"role": "assistant", "content": "Hi there."}]})";
  EXPECT_EQ(learnt(encode(open(), line)[0]), "Hi there.<|eot_id|>");
  // Neither is a system prompt of the template's own learnt.
  const std::string file = folder.write(
      "system.jinja",
      "<|begin_of_text|>[system]Be kind.<|eot_id|>{% for m in messages %}"
      "[{{ m.role }}]\n{{ m.content }}<|eot_id|>{% endfor %}"
      "{% if add_generation_prompt %}[assistant]\n{% endif %}");
  const std::string text = learnt(encode(open(file), line)[0]);
  EXPECT_TRUE(text.ends_with("Hi there.<|eot_id|>")) << text;
  EXPECT_EQ(text.find("assistant"), std::string::npos) << text;

  const std::string refusing = folder.write(
      "refusing.jinja",
      "{% if not messages %}{{ raise_exception('no messages') }}{% endif %}"
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}");
  EXPECT_TRUE(failsWith(
      statusOf(open(refusing), line),
      "messages[0] is the assistant's, and the chat template does not tell "
      "what is before it: "));
  EXPECT_EQ(encode(open(refusing, true), line).size(), 1u);
  const std::string other = folder.write(
      "other.jinja", "{% if messages %}[system]Be kind.{% endif %}"
                     "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
                     "{% endfor %}{% if add_generation_prompt %}[assistant]"
                     "{% endif %}");
  EXPECT_TRUE(failsWith(statusOf(open(other), line),
                        "does not tell what is before it; put a message in "
                        "front, or have all tokens count with "
                        "--train-on-prompt"));
}

/// A conversation of `pairs` questions and answers.
ConversationExample conversationOf(size_t pairs) {
  ConversationExample source;
  for (size_t i = 0; i < pairs; ++i) {
    const std::string number = std::to_string(i);
    source.messages.push_back({"user", "Tell me story number " + number});
    source.messages.push_back({"assistant", "Once upon a time " + number});
    source.counts.insert(source.counts.end(), {false, true});
  }
  return source;
}

TEST_F(ExampleEncoderTest, NothingIsReadBehindWhatIsWanted) {
  // Whoever renders the conversation as far as its middle fails.
  const std::string body =
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
      "{% if add_generation_prompt %}assistant: {% endif %}";
  const std::string strict =
      "{% if messages | length > 20 and messages | length < 400 %}"
      "{{ raise_exception('it is read') }}{% endif %}" +
      body;
  const TempFolder folder;
  const ExampleEncoder all = open(folder.write("all.jinja", body)),
                       few = open(folder.write("few.jinja", strict));
  const ConversationExample source = conversationOf(200);
  std::vector<TrainingExample> whole, begun;
  ASSERT_TRUE(succeeds(all.encode(source, whole)));
  ASSERT_TRUE(succeeds(few.encode(source, begun, {.tokens = 65})));
  ASSERT_EQ(whole.size(), 1u);
  ASSERT_EQ(begun.size(), 1u);
  ASSERT_GT(begun[0].ids.size(), 65u);
  for (size_t i = 0; i < 65; ++i) {
    EXPECT_EQ(begun[0].ids[i], whole[0].ids[i]) << i;
    EXPECT_EQ(begun[0].counts[i], whole[0].counts[i]) << i;
  }
  std::vector<TrainingExample> none;
  EXPECT_TRUE(failsWith(few.encode(source, none), "it is read"));
}

TEST_F(ExampleEncoderTest, AnswersThatFitBehindOneThatDoesNot) {
  // What is written of a message, while it is the last one, is long.
  const TempFolder folder;
  const ExampleEncoder encoder = open(folder.write(
      "long.jinja", "{% for m in messages %}{{ m.content }}{% if loop.last and "
                    "loop.index == 2 %}{% for i in range(99) %} and{% endfor %}"
                    "{% endif %}\n{% endfor %}"));
  std::vector<TrainingExample> limited, whole;
  const ConversationExample source = conversationOf(3);
  ASSERT_TRUE(succeeds(encoder.encode(source, whole)));
  ASSERT_TRUE(succeeds(encoder.encode(source, limited, {.tokens = 65})));
  EXPECT_EQ(limited.size(), 2u);
  EXPECT_EQ(limited, whole);
}

TEST_F(ExampleEncoderTest, AConversationThatIsTooMuchWork) {
  ConversationExample source = conversationOf(100);
  source.variables["tools"] = '"' + std::string(4000, 'a') + '"';
  const ExampleEncoder encoder = open();
  std::vector<TrainingExample> examples;
  EXPECT_TRUE(failsWith(
      encoder.encode(source, examples, {.bytes = size_t(1) << 16}),
      "the conversation is so long that its answers are not found with 64.0 "
      "KiB told to the chat template; divide it"));
  EXPECT_TRUE(succeeds(encoder.encode(source, examples)));
}

TEST_F(ExampleEncoderTest, Errors) {
  const TempFolder folder;
  EXPECT_TRUE(failsWith(
      statusOf(open(folder.write("no.jinja",
                                 "{{ raise_exception('no system role') }}")),
               kChat),
      "no system role"));
  EXPECT_TRUE(failsWith(
      ExampleEncoder::open(model, {.file = folder.path("none")}, false)
          .status(),
      "none"));
  model.chat = {};
  const ExampleEncoder without = open();
  EXPECT_TRUE(failsWith(statusOf(without, kChat), "has no chat template"));
  EXPECT_EQ(encode(without, R"({"text": "a"})").size(), 1u);
  model.tokenizer.reset();
  EXPECT_TRUE(failsWith(ExampleEncoder::open(model, {}, false).status(),
                        "has no tokenizer; training needs one"));
}

TEST_F(ExampleEncoderTest, TokensThatTheModelLacks) {
  model.config.vocabSize = 100;
  EXPECT_TRUE(failsWith(statusOf(open(), R"({"text": "Once upon a time"})"),
                        "which the model's vocabulary of 100 lacks"));
}

} // namespace
