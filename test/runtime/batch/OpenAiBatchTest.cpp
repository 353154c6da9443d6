//===- OpenAiBatchTest.cpp - Lines of OpenAI's batches --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/OpenAiBatch.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

std::string errorOf(std::string_view line) {
  const Result<OpenAiRequest> request = parseOpenAiRequest(line);
  EXPECT_FALSE(request.ok()) << line;
  return request.message();
}

TEST(OpenAiBatch, RequestsKeepTheirBodies) {
  const Result<OpenAiRequest> chat = parseOpenAiRequest(
      R"({"custom_id": "a\u001b", "method": "POST", "url": "/v1/chat/completions",
          "body": {"model": "x", "z": 1, "messages": [], "a": {"y": 1, "b": 2}}})");
  ASSERT_TRUE(chat.ok()) << chat.message();
  EXPECT_EQ(chat->id, "\"a\\u001b\"");
  EXPECT_EQ(chat->endpoint, OpenAiEndpoint::Chat);
  EXPECT_EQ(chat->path(), "/chat/completions");
  EXPECT_EQ(chat->model, "x");
  EXPECT_EQ(chat->body, R"({"model": "x", "z": 1, "messages": [], )"
                        R"("a": {"y": 1, "b": 2}})");
  const Result<OpenAiRequest> text = parseOpenAiRequest(
      R"({"url": "/completions", "body": {"stream": false}})");
  ASSERT_TRUE(text.ok()) << text.message();
  EXPECT_EQ(text->id, "");
  EXPECT_EQ(text->path(), "/completions");
  EXPECT_EQ(text->model, "");
  const Result<OpenAiRequest> embeddings = parseOpenAiRequest(
      R"({"url": "/v1/embeddings", "body": {"input": "a"}})");
  ASSERT_TRUE(embeddings.ok()) << embeddings.message();
  EXPECT_EQ(embeddings->path(), "/embeddings");
}

TEST(OpenAiBatch, OtherLinesAreErrors) {
  EXPECT_EQ(errorOf(R"({"prompt": "a"})"),
            "'custom_id' and 'body' are missing, which a line of OpenAI's "
            "batches has, as the first one of the file");
  EXPECT_EQ(errorOf(R"({"custom_id": "a", "x": 1})"),
            "there is no key 'x' beside 'body'; possible are custom_id, "
            "method, url and body");
  EXPECT_EQ(errorOf(R"({"body": {}, "url": "/v1/moderations"})"),
            "'url' is \"/v1/moderations\", but \"/v1/chat/completions\", "
            "\"/v1/completions\" or \"/v1/embeddings\" is expected");
  EXPECT_EQ(errorOf(R"({"body": {}, "url": "/v1/completions",)"
                    R"( "method": "GET"})"),
            "'method' is \"GET\", but \"POST\" is expected");
  EXPECT_EQ(errorOf(R"({"custom_id": 7, "url": "/v1/completions",)"
                    R"( "body": {}})")
                .substr(0, 18),
            "'custom_id' is 7, ");
  EXPECT_EQ(errorOf(R"({"body": [], "url": "/v1/completions"})"),
            "'body' is [], but an object is expected");
  EXPECT_EQ(errorOf(R"({"url": "/v1/completions",)"
                    R"( "body": {"stream": true}})"),
            "'body.stream' is not supported: each request becomes a line when "
            "it is finished");
  for (const char *line : {"", "[]", "7", R"({"body")", R"({"body": {}})"})
    EXPECT_NE(errorOf(line), "");
}

TEST(OpenAiBatch, Results) {
  EXPECT_EQ(openAiResult(3, "\"a\"", 200, R"({"x":1})"),
            R"({"id":"batch_req_3","custom_id":"a",)"
            R"("response":{"status_code":200,"body":{"x":1}},"error":null})");
  EXPECT_EQ(openAiResult(4, "", {"invalid_request", "no \"body\""}),
            R"({"id":"batch_req_4","custom_id":null,"response":null,)"
            R"("error":{"code":"invalid_request",)"
            R"("message":"no \"body\""}})");
}

} // namespace
