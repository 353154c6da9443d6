//===- RequestFileTest.cpp - Requests to servers, sound and hostile -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/RequestFile.h"

#include <gtest/gtest.h>

using namespace kf;
using nlohmann::json;

namespace {

RemoteRequest parse(std::string_view line, RequestDefaults defaults = {}) {
  Result<RemoteRequest> request = parseRemoteRequest(line, defaults);
  EXPECT_TRUE(request.ok()) << line << ": " << request.message();
  return request.ok() ? request.take() : RemoteRequest();
}

std::string errorOf(std::string_view line) {
  const Result<RemoteRequest> request = parseRemoteRequest(line, {});
  EXPECT_FALSE(request.ok()) << line;
  return request.message();
}

TEST(RequestFile, BatchesOwnForm) {
  const RemoteRequest request =
      parse(R"({"prompt": "a", "n": 3, "temp": 0.5, "id": 7, "model": "x",
              "top_k": null, "logprobs": true, "top_logprobs": 3, "logit_bias": [[5, 1.5], [6, false]]})");
  EXPECT_EQ(request.id, "7");
  EXPECT_FALSE(request.isChat || request.isGreedy);
  EXPECT_EQ(json(request.body), json::parse(R"({"prompt": "a", "max_tokens": 3,
      "temperature": 0.5, "logprobs": 3,
      "logit_bias": {"5": 1.5, "6": -100.0},
      "stream": true, "stream_options": {"include_usage": true}})"));
  const RemoteRequest ids = parse(R"({"ids": [1, 2]})");
  EXPECT_TRUE(ids.isGreedy);
  EXPECT_EQ(json(ids.body["prompt"]), json({1, 2}));
  EXPECT_EQ(ids.body["max_tokens"], 256);
  EXPECT_FALSE(parse(R"({"prompt": "a", "n": -1})", {.tokens = -1})
                   .body.contains("max_tokens"));
}

TEST(RequestFile, OpenAIsForm) {
  const RemoteRequest request =
      parse(R"({"custom_id": "a\u001b", "method": "POST",
          "url": "/v1/chat/completions", "body": {"model": "x", "n": 1,
          "messages": [], "max_completion_tokens": 4, "unknown": [{}]}})",
            {.temperature = 0.7});
  EXPECT_EQ(request.id, "\"a\\u001b\"");
  EXPECT_TRUE(request.isChat);
  EXPECT_EQ(json(request.body), json::parse(R"({"n": 1, "messages": [],
      "max_completion_tokens": 4, "unknown": [{}], "temperature": 0.7,
      "stream": true, "stream_options": {"include_usage": true}})"));
  EXPECT_EQ(json::parse(*request.bodyFor("a\"b"))["model"], "a\"b");
  EXPECT_FALSE(json::parse(*request.bodyFor("")).contains("model"));
}

TEST(RequestFile, KeysStayInOrder) {
  const std::string schema = R"({"properties":{"b":{},"a":{}}})";
  const RemoteRequest foreign =
      parse(R"({"url": "/v1/completions", "body": {"prompt": "", "z": )" +
            schema + "}}");
  EXPECT_NE(foreign.bodyFor("m")->find("\"z\":" + schema), std::string::npos)
      << *foreign.bodyFor("m");
}

TEST(RequestFile, Errors) {
  for (const auto &[line, message] :
       std::initializer_list<std::pair<const char *, const char *>>{
           {"7", "a JSON object is expected"},
           {"{", "not valid JSON"},
           {R"({"n": 3})", "one of 'prompt', 'ids' and 'messages' is missing"},
           {R"({"prompt": "a", "n": 3, "max_tokens": 3})", "are the same here"},
           {R"({"prompt": "a", "nn": 3})", "there is no key 'nn'"},
           {R"({"body": {}})", "'url'"},
           {R"({"url": "/v1/embeddings", "body": {}})", "'url' is"},
           {R"({"url": "/v1/completions", "body": []})", "'body' is []"},
           {R"({"url": "/v1/completions", "body": {}})", "no 'prompt'"},
           {R"({"url": "/v1/completions", "body": {"prompt": "", "n": 2}})",
            "'body.n' is 2"},
           {R"({"url": "/v1/completions", "body": {"prompt": ""}, "x": 1})",
            "there is no key 'x'"},
           {R"({"url": "/v1/completions", "body": {"prompt": ""},
                "method": "GET"})",
            "'method' is"}})
    EXPECT_NE(errorOf(line).find(message), std::string::npos)
        << line << ": " << errorOf(line);
  const auto all = parseRemoteRequests("\n{\"prompt\": \"a\"}\r\n\n7", {});
  ASSERT_FALSE(all.ok());
  EXPECT_TRUE(all.message().starts_with("line 4: ")) << all.message();
  EXPECT_FALSE(parseRemoteRequests(" \n", {}).ok());
}

} // namespace
