//===- ExampleFileTest.cpp - Lines of examples, sound and hostile ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ExampleFile.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

template <typename T> T parseAs(const std::string &line) {
  Result<ExampleSource> source = parseExample(line);
  EXPECT_TRUE(source.ok()) << line << ": " << source.message();
  if (!source.ok() || !std::holds_alternative<T>(*source)) {
    ADD_FAILURE() << line;
    return T();
  }
  return std::get<T>(source.take());
}

std::string errorOf(const std::string &line) {
  const Result<ExampleSource> source = parseExample(line);
  EXPECT_FALSE(source.ok()) << line;
  return source.message();
}

TEST(ExampleFile, Texts) {
  EXPECT_EQ(
      parseAs<PlainExample>(R"({"text": "Gr\u00fc\u00dfe\n", "id": 1})").text,
      "Grüße\n");
  EXPECT_EQ(parseAs<PlainExample>(R"("Once")").text, "Once");
  const auto both = parseAs<CompletionExample>(
      R"({"prompt": "2 + 2 =", "completion": " 4", "text": null})");
  EXPECT_EQ(both.prompt, "2 + 2 =");
  EXPECT_EQ(both.completion, " 4");
}

TEST(ExampleFile, Conversations) {
  const auto chat = parseAs<ConversationExample>(
      R"({"messages": [{"role": "system", "content": "Be kind."},
                       {"role": "user", "content": "Hello"},
                       {"role": "assistant", "content": "Hi", "weight": 0},
                       {"role": "user", "content": "Why?"},
                       {"role": "assistant", "content": "So"}],
          "chat_template_kwargs": {"enable_thinking": false}})");
  ASSERT_EQ(chat.messages.size(), 5u);
  EXPECT_EQ(chat.messages[1].content, "Hello");
  EXPECT_EQ(chat.counts, (std::vector<bool>{false, false, false, false, true}));
  EXPECT_EQ(chat.variables.at("enable_thinking"), "false");
}

TEST(ExampleFile, CallsOfTools) {
  const auto chat = parseAs<ConversationExample>(
      R"({"messages": [
           {"role": "user", "content": "Weather?"},
           {"role": "assistant", "tool_calls": [{"id": "a", "type": "function",
             "function": {"name": "w", "arguments": "{\"z\": 1, \"a\": 2}"}}]},
           {"role": "tool", "tool_call_id": "a", "content": "Rain"},
           {"role": "assistant", "content": "It rains."}],
          "tools": [{"type": "function", "function": {"name": "w"}}]})");
  EXPECT_EQ(chat.counts, (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(chat.variables.at("tools"),
            R"([{"type": "function", "function": {"name": "w"}}])");
  EXPECT_NE(
      chat.messages[1].fields.at("tool_calls").find(R"({"z": 1, "a": 2})"),
      std::string::npos);
}

TEST(ExampleFile, ErrorsNameTheKey) {
  EXPECT_EQ(errorOf("{}"), "one of 'messages', 'prompt' with 'completion', and "
                           "'text' is missing");
  EXPECT_EQ(errorOf(R"({"text": 1})"), "'text' is 1, but a string is expected");
  EXPECT_EQ(errorOf(R"({"prompt": "a"})"), "'completion' is missing");
  EXPECT_EQ(errorOf(R"({"prompt": "a", "text": "b"})"),
            "'prompt' and 'text' exclude each other");
  EXPECT_EQ(errorOf(R"({"prompt": "a", "completion": ""})"),
            "'completion' is \"\", but a text that is not empty is expected");
  EXPECT_EQ(errorOf("[1]"), "a JSON object is expected, not [1]");
  EXPECT_EQ(errorOf(R"({"text": "a")"), "not valid JSON at byte 13");
  EXPECT_EQ(errorOf(R"({"text": "a", "text": "b"})"),
            "key 'text' appears twice in one JSON object");
  EXPECT_EQ(errorOf(R"({"conversations": [{"from": "human", "value": "a"}]})"),
            "'conversations' is another form of conversations; give 'messages' "
            "with 'role' and 'content' in place of 'from' and 'value'");
  EXPECT_EQ(errorOf(R"({"instruction": "a", "output": "b"})"),
            "'instruction' is another form; give 'prompt' and 'completion', or "
            "'messages'");
}

TEST(ExampleFile, ErrorsOfConversations) {
  EXPECT_EQ(errorOf(R"({"messages": []})"),
            "'messages' is [], but an array of messages, at least one, is "
            "expected");
  EXPECT_EQ(errorOf(R"({"messages": [{"role": "user", "content": "a"}]})"),
            "no message is the assistant's, so that there is nothing to learn");
  EXPECT_EQ(errorOf(R"({"messages": [{"role": "bot", "content": "a"}]})"),
            "'messages[0].role' is \"bot\", but system, developer, user, "
            "assistant or tool is expected");
  EXPECT_EQ(errorOf(R"({"messages": [{"role": "user", "content": "a",
                                      "weight": 1}]})"),
            "'messages[0].weight' is 1, but none, in this role, is expected");
  EXPECT_EQ(errorOf(R"({"messages": [{"role": "assistant", "content": "a",
                                      "weight": 0.5}]})"),
            "'messages[0].weight' is 0.5, but 0 or 1 is expected");
  for (const char *fields : {"", R"(, "content": "")", R"(, "content": null)",
                             R"(, "content": null, "tool_calls": [ ])"})
    EXPECT_EQ(errorOf(R"({"messages": [{"role": "user", "content": "a"},
                          {"role": "assistant")" +
                      std::string(fields) + "}]}"),
              "messages[1] is an answer without content or calls of tools; a "
              "'weight' of 0 leaves it out");
  EXPECT_EQ(errorOf(R"({"messages": [{"role": "assistant", "content": "a"}],
                        "tools": {}})"),
            "'tools' is {}, but an array is expected");
  std::string many = R"({"messages": [)";
  for (size_t i = 0; i <= kMostMessages; ++i)
    many += std::string(i ? "," : "") + R"({"role":"user","content":""})";
  EXPECT_EQ(errorOf(many + "]}"),
            "'messages' has 1025 messages; at most 1024 are possible");
}

TEST(ExampleFile, HostileLines) {
  for (const std::string &line :
       {std::string(), std::string("\0", 1), std::string(1000, '['),
        std::string(R"({"text": "\ud800"})"),
        std::string("{\"text\": \"\xff\"}"), std::string("nul"),
        std::string(R"({"messages": {"a": 1}})"),
        std::string(R"({"messages": [[]]})"),
        std::string(R"({"messages": [null]})")}) {
    const std::string error = errorOf(line);
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_FALSE(error.empty());
  }
}

} // namespace
