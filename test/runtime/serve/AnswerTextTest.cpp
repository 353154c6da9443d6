//===- AnswerTextTest.cpp - Thoughts and calls in a text ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/AnswerText.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

std::shared_ptr<const std::vector<std::string>>
named(std::initializer_list<std::string> tools) {
  return std::make_shared<const std::vector<std::string>>(tools);
}

/// What comes of `text`, pushed in pieces of `size` bytes.
AnswerPart split(const AnswerText::Options &options, const std::string &text,
                 size_t size, bool isCut) {
  AnswerText splitter(options);
  AnswerPart all;
  for (size_t at = 0; at < text.size(); at += size)
    all.add(splitter.push(std::string_view(text).substr(at, size)));
  all.add(splitter.finish(isCut));
  return all;
}

void expectParts(const AnswerText::Options &options, const std::string &text,
                 const std::string &reasoning, const std::string &content,
                 const std::vector<ToolCall> &calls = {}, bool isCut = true) {
  for (size_t size : {1, 2, 3, 7, 1000}) {
    const AnswerPart parts = split(options, text, size, isCut);
    EXPECT_EQ(parts.reasoning, reasoning) << text << " by " << size;
    EXPECT_EQ(parts.content, content) << text << " by " << size;
    EXPECT_EQ(parts.calls, calls) << text << " by " << size;
  }
}

TEST(AnswerText, IsContent) {
  expectParts({}, "", "", "");
  expectParts({}, "a <think>b</think> {", "", "a <think>b</think> {");
  // At once, byte by byte.
  AnswerText plain({});
  EXPECT_EQ(plain.push("<").content, "<");
}

TEST(AnswerText, Thinking) {
  const AnswerText::Options thinks{.splitsThinking = true};
  expectParts(thinks, "<think>\nwhy</think>\n\nso", "why", "so");
  expectParts(thinks, "\n<think>a < b </thin</think>c", "a < b </thin", "c");
  expectParts(thinks, "<think>cut off", "cut off", "");
  expectParts(thinks, "<think></think>a", "", "a");
  expectParts(thinks, "no <think>b</think>", "", "no <think>b</think>");
  expectParts(thinks, "<thinner", "", "<thinner");
  expectParts(thinks, "<thi", "", "<thi");
  expectParts(thinks, "", "", "");
  const AnswerText::Options inside{.splitsThinking = true,
                                   .startsThinking = true};
  expectParts(inside, "why</think>so", "why", "so");
  // What may be a tag's begin waits, the rest does not.
  AnswerText splitter(inside);
  EXPECT_EQ(splitter.push("ab</th").reasoning, "ab");
  EXPECT_EQ(splitter.push("e").reasoning, "</the");
}

TEST(AnswerText, Calls) {
  const AnswerText::Options tools{.tools = named({"f", "g"})};
  const ToolCall g{.name = "g", .arguments = "{}"};
  const std::string spelled = R"({"name": "f", "arguments": {"z": 1, "a": 2}})";
  const std::string other = R"({"name": "g"})";
  // Hermes and Qwen.
  expectParts(tools,
              "Let me see.\n<tool_call>\n{\"name\": \"g\"}\n</tool_call>\n"
              "<tool_call>{\"name\": \"g\", \"arguments\": null}</tool_call>",
              "", "Let me see.\n", {g, g});
  expectParts(tools, "<tool_call>" + other, "", "", {g});
  // Llama 3.
  expectParts(tools, R"({"name": "g", "parameters": {"a": 1}})", "", "",
              {{.name = "g", .arguments = R"({"a": 1})"}});
  expectParts(tools,
              "\n " + spelled.substr(0, 14) + R"("parameters": "{\"b\": 2}"})",
              "", "", {{.name = "f", .arguments = R"({"b": 2})"}});
  expectParts(tools, other + "; " + other, "", "", {g, g});
  // Mistral, whose tag may be a token that makes no text.
  expectParts(tools,
              "[TOOL_CALLS][" + spelled.substr(0, 12) + "}, " + other + "]", "",
              "", {{.name = "f", .arguments = "{}"}, g});
  expectParts(tools, "[" + other + "]", "", "", {g});
  // Arguments as they stand.
  expectParts(tools, "<tool_call>" + spelled + "</tool_call>", "", "",
              {{.name = "f", .arguments = R"({"z": 1, "a": 2})"}});
  // After thoughts.
  AnswerText::Options both = tools;
  both.splitsThinking = true;
  expectParts(both, "<think>a</think>\n" + other, "a", "", {g});
  expectParts(both, other, "", "", {g});
}

/// As OpenAI answers: what was written of the arguments, and no content.
TEST(AnswerText, CallsThatAreCutOff) {
  const AnswerText::Options one{.tools = named({"go"}), .isCall = true};
  const AnswerText::Options two{
      .splitsThinking = true, .tools = named({"go", "got"}), .isCall = true};
  const std::string call =
      R"({"name": "go", "arguments": {"a": "}\"", "b": [1)";
  // Where the name is not finished, one tool is known, and of two neither.
  for (size_t size = 0; size <= call.find(", "); ++size)
    for (const char *before : {"", "<tool_call>\n", "[TOOL_CALLS][", "["}) {
      expectParts(one, before + call.substr(0, size), "", "",
                  {{.name = "go", .arguments = ""}});
      expectParts(two, before + call.substr(0, size), "", "",
                  size <= call.find("\",")
                      ? std::vector<ToolCall>()
                      : std::vector<ToolCall>{{.name = "go", .arguments = ""}});
    }
  for (size_t size = call.find("{\"a"); size <= call.size(); ++size) {
    const std::string arguments =
        call.substr(call.find("{\"a"), size - call.find("{\"a"));
    for (const char *before : {"", "<tool_call>\n", "["})
      expectParts(two, "<think>so</think>" + (before + call.substr(0, size)),
                  "so", "", {{.name = "go", .arguments = arguments}});
  }
  // All of it but for what is behind the arguments.
  expectParts(one, R"([{"name": "go", "parameters": {"a": {}}})", "", "",
              {{.name = "go", .arguments = R"({"a": {}})"}});
  expectParts(one, R"(<tool_call>{"name": "go"})", "", "",
              {{.name = "go", .arguments = "{}"}});
  expectParts(one, "<tool", "", "", {{.name = "go", .arguments = ""}});
}

TEST(AnswerText, CallsThatAStopTextEnds) {
  const AnswerText::Options go{.tools = named({"go"}), .isCall = true};
  const std::string call =
      R"(<tool_call>{"name": "go", "arguments": {"a": 1}})";
  for (const char *behind : {"\"arg", "{\"a", "1}"}) {
    const std::string text = call.substr(0, call.find(behind));
    expectParts(go, text, "", text, {}, /*isCut=*/false);
  }
  expectParts(go, call, "", "", {{.name = "go", .arguments = R"({"a": 1})"}},
              /*isCut=*/false);
}

TEST(AnswerText, WhatIsNoCallIsContent) {
  const AnswerText::Options tools{.tools = named({"f"})};
  for (const char *text :
       {"{",
        "{}",
        "[]",
        "[1, 2]",
        "{\"name\": \"h\"}",
        "{\"name\": 1}",
        "{\"name\": \"f\", \"arguments\": [1]}",
        "{\"name\": \"f\", \"arguments\": \"no\"}",
        "{\"name\": \"f\", \"arguments\": \"\xef\xbb\xbf{}\"}",
        "{\"name\": \"f\"} and so",
        "<tool_call>",
        "<tool_call>{\"name\": \"f\"",
        "<tool_call>f()</tool_call>",
        "[TOOL_CALLS]",
        "[TOOL_CALLS] f",
        "a <tool_c",
        "plain",
        "{\"name\": \"f\", \"name\": \"f\"}",
        "{\"name\": \"f\"}}",
        "<tool_call>{\"name\": \"f\"}</tool_call><tool_call>x</tool_call>"})
    expectParts(tools, text, "", text);
  expectParts(tools, "{" + std::string(100, '['), "",
              "{" + std::string(100, '['));
}

} // namespace
