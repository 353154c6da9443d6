//===- AnswerReaderTest.cpp - Answers, sound and hostile ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/AnswerReader.h"
#include "runtime/client/AnswerComparison.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace kf;

namespace {

Result<Answer> read(std::string_view body, int status = 200,
                    std::string_view type = "text/event-stream",
                    const ApiKey &key = {}) {
  AnswerReader reader(status, type, key);
  double seconds = 0;
  for (size_t at = 0; at < body.size(); at += 7)
    KF_RETURN_IF_ERROR(reader.push(body.substr(at, 7), ++seconds));
  return reader.finish(seconds);
}

std::string errorOf(std::string_view body, int status = 200,
                    std::string_view type = "text/event-stream") {
  const Result<Answer> answer = read(body, status, type);
  EXPECT_FALSE(answer.ok()) << body;
  return answer.message();
}

TEST(AnswerReader, ChatsAndCompletions) {
  const Result<Answer> chat = read(
      "data: "
      "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n"
      "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}},"
      "{\"index\":1,\"delta\":{\"content\":\"other\"}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"content\":\"b\"},"
      "\"finish_reason\":\"stop\"}]}\n\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,"
      "\"completion_tokens\":5}}\n\n"
      "data: [DONE]\n\ndata: no JSON\n\n");
  ASSERT_TRUE(chat.ok()) << chat.message();
  EXPECT_EQ(chat->text, "ab");
  EXPECT_EQ(chat->finishReason, "stop");
  EXPECT_EQ(chat->pieces.size(), 3U);
  EXPECT_EQ(chat->promptTokens, 3);
  EXPECT_EQ(chat->outputTokens, 5);
  const Result<Answer> completion =
      read("data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"length\"}],"
           "\"usage\":{\"prompt_tokens\":-3,\"completion_tokens\":1e3}}\n\n");
  ASSERT_TRUE(completion.ok()) << completion.message();
  EXPECT_EQ(completion->text, "a");
  EXPECT_FALSE(completion->promptTokens || completion->outputTokens);
}

TEST(AnswerReader, WholeAnswers) {
  const std::string body =
      R"({"choices":[{"message":{"content":"ab"},"finish_reason":"stop"}]})";
  const Result<Answer> answer = read(body, 200, "application/json");
  ASSERT_TRUE(answer.ok()) << answer.message();
  EXPECT_EQ(answer->text, "ab");
  EXPECT_TRUE(answer->pieces.empty());
  EXPECT_EQ(errorOf("[]", 200, "application/json"),
            "an answer without 'choices'");
  EXPECT_EQ(errorOf("<html>", 200, "text/html"),
            "the answer is not sound JSON");
}

TEST(AnswerReader, WhatIsNoAnswer) {
  EXPECT_EQ(errorOf(""), "an answer without 'choices'");
  EXPECT_EQ(errorOf("data: [DONE]\n\n"), "an answer without 'choices'");
  EXPECT_EQ(errorOf("data: {\"choices\":[{\"text\":\"a\"}]}\n\n"),
            "the stream ended in the middle of the answer");
  EXPECT_EQ(errorOf("data: {\"a\":1,\"a\":2}\n\n"),
            "an event of the stream is not sound JSON");
  EXPECT_EQ(errorOf("data: {\"choices\":[{\"text\":[]}]}\n\n"),
            "an answer whose 'text' is no text");
  EXPECT_EQ(errorOf("data: {\"error\":{\"message\":\"no \\u001b[1m\"}}\n\n"),
            "the server ended the answer with an error: no ?[1m");
  for (const char *chunk :
       {"7", "[]", "{\"choices\":{}}", "null", "{\"choices\":[7,null,[]]}"})
    EXPECT_FALSE(read(std::string("data: ") + chunk + "\n\n").ok()) << chunk;
}

TEST(AnswerReader, ErrorsOfServers) {
  EXPECT_EQ(errorOf(R"({"error":{"message":"no\nmore"}})", 429),
            "answered 429: no?more");
  EXPECT_EQ(errorOf(R"({"error":"none"})", 500), "answered 500: none");
  EXPECT_EQ(errorOf(R"({"detail":"none"})", 404), "answered 404: none");
  EXPECT_EQ(errorOf("", 503), "answered 503");
  // C1 controls, as terminals obey them, too.
  EXPECT_EQ(errorOf("a\xc2\x9b"
                    "b\xff",
                    400),
            "answered 400: a?b\xef\xbf\xbd");
  EXPECT_EQ(read("x", 429).status().code(), StatusCode::Unavailable);
  EXPECT_EQ(read("x", 404).status().code(), StatusCode::NotFound);
  EXPECT_LT(errorOf(std::string(100000, 'x'), 500).size(), 400U);
}

TEST(AnswerReader, NobodySeesTheKey) {
  setenv("KF_TEST_KEY", "sk-0123456789", 1);
  const Result<ApiKey> key = ApiKey::fromEnvironment("KF_TEST_KEY");
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->hide("asksk-0123456789sk-0123456789b"), "ask[key][key]b");
  // Where messages are cut, too.
  for (size_t before = 270; before < 310; ++before) {
    const std::string body = std::string(before, 'x') + "sk-0123456789";
    const std::string message = read(body, 400, "", *key).message();
    EXPECT_EQ(message.find("sk-"), message.npos) << before << message;
  }
  const Result<Answer> answer =
      read("data: {\"choices\":[{\"text\":\"sk-01234\"}]}\n\n"
           "data: {\"choices\":[{\"text\":\"56789\",\"finish_reason\":\""
           "----------------------------------sk-0123456789\"}]}\n\n",
           200, "text/event-stream", *key);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->text, "[key]");
  EXPECT_EQ(answer->finishReason.find("sk-"), std::string::npos);
  for (const char *wrong : {"a b", "a\nb", "a\x7f", "\xc3\xa4"}) {
    setenv("KF_TEST_KEY", wrong, 1);
    EXPECT_FALSE(ApiKey::fromEnvironment("KF_TEST_KEY").ok()) << wrong;
  }
  unsetenv("KF_TEST_KEY");
  EXPECT_TRUE(ApiKey::fromEnvironment("KF_TEST_KEY")->isEmpty());
}

TEST(AnswerComparison, TextsAndQuantiles) {
  EXPECT_EQ(commonCharacters("a\xc3\xa4x", "a\xc3\xa4y"), 2U);
  EXPECT_EQ(commonCharacters("\xc3\xa4", "\xc3\xb6"), 0U);
  EXPECT_EQ(commonCharacters("abc", "ab"), 2U);
  EXPECT_EQ(commonCharacters("", "ab"), 0U);
  EXPECT_EQ(countCharacters("a\xc3\xa4\xe2\x82\xac"), 3U);
  EXPECT_EQ(quantileOf({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(quantileOf({1, 2, 3, 4}, 0.5), 2);
  EXPECT_EQ(quantileOf({1, 2, 3, 4}, 0.99), 4);
  EXPECT_EQ(quantileOf({7}, 0.01), 7);
}

} // namespace
