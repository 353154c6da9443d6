//===- ApiAnswerTest.cpp - Shapes of answers ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/ApiAnswer.h"

#include "runtime/serve/ApiError.h"
#include "runtime/serve/ApiMetrics.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace kf;
using Json = nlohmann::json;

namespace {

const AnswerHead kHead{
    .id = "id", .created = 5, .model = "m", .fingerprint = "f"};
const AnswerHead kCounted{.id = "id",
                          .created = 5,
                          .model = "m",
                          .fingerprint = "f",
                          .includeUsage = true};
const ChoiceEnd kEnd{.reason = StopReason::StopToken,
                     .promptTokens = 10,
                     .cachedTokens = 4,
                     .completionTokens = 3};
const ToolCall kCall{.id = "c", .name = "f", .arguments = "{\"a\": \"\\n\"}"};

TEST(ApiAnswer, ChatChunks) {
  const auto form = chatForm(kHead);
  const Json begin = Json::parse(form->begin(1));
  EXPECT_EQ(begin, Json::parse(R"({"id": "id", "object":
    "chat.completion.chunk", "created": 5, "model": "m", "system_fingerprint":
    "f", "choices": [{"index": 1, "delta": {"role": "assistant", "content":
    ""}, "logprobs": null, "finish_reason": null}]})"));
  EXPECT_EQ(form->part(0, {}), "");
  auto delta = [&](const AnswerPart &part) {
    return Json::parse(form->part(0, part))["choices"][0]["delta"];
  };
  // Never "content": null.
  EXPECT_EQ(delta({.content = "a\n"}), Json::parse(R"({"content": "a\n"})"));
  EXPECT_EQ(delta({.reasoning = "r"}),
            Json::parse(R"({"reasoning_content": "r"})"));
  EXPECT_EQ(delta({.calls = {kCall, kCall}}),
            Json::parse(R"({"tool_calls": [{"index": 0, "id": "c", "type":
    "function", "function": {"name": "f", "arguments": "{\"a\": \"\\n\"}"}},
    {"index": 1, "id": "c", "type": "function", "function": {"name": "f",
    "arguments": "{\"a\": \"\\n\"}"}}]})"));
  const Json end = Json::parse(form->end(0, kEnd))["choices"][0];
  EXPECT_EQ(end["delta"], Json::object());
  EXPECT_EQ(end["finish_reason"], "stop");
  EXPECT_EQ(form->usage({kEnd}), "");
  EXPECT_TRUE(form->endsWithDone());

  const auto counted = chatForm(kCounted);
  EXPECT_TRUE(Json::parse(counted->begin(0))["usage"].is_null());
  EXPECT_TRUE(Json::parse(counted->end(0, kEnd)).contains("usage"));
  const Json usage = Json::parse(counted->usage({kEnd}));
  EXPECT_EQ(usage["choices"], Json::array());
  EXPECT_EQ(usage["usage"], Json::parse(R"({"prompt_tokens": 10,
    "completion_tokens": 3, "total_tokens": 13,
    "prompt_tokens_details": {"cached_tokens": 4}})"));
}

TEST(ApiAnswer, WholeChats) {
  ChoiceEnd called = kEnd;
  called.hasCalls = true;
  const Json whole = Json::parse(chatForm(kHead)->whole(
      {{.content = "a", .reasoning = "r"}, {.calls = {kCall}}},
      {kEnd, called}));
  EXPECT_EQ(whole["object"], "chat.completion");
  EXPECT_EQ(whole["choices"][0]["message"], Json::parse(R"({"role":
    "assistant", "content": "a", "refusal": null, "reasoning_content": "r"})"));
  const Json &second = whole["choices"][1];
  EXPECT_EQ(second["finish_reason"], "tool_calls");
  EXPECT_TRUE(second["message"]["content"].is_null());
  EXPECT_EQ(second["message"]["tool_calls"][0]["function"]["name"], "f");
  EXPECT_FALSE(second["message"]["tool_calls"][0].contains("index"));
  // A prompt that several choices share counts once.
  EXPECT_EQ(whole["usage"]["prompt_tokens"], 10);
  EXPECT_EQ(whole["usage"]["completion_tokens"], 6);
}

TEST(ApiAnswer, Completions) {
  const auto form = completionForm(kCounted);
  EXPECT_EQ(form->begin(0), "");
  const Json part = Json::parse(form->part(2, {.content = "a"}));
  EXPECT_EQ(part["object"], "text_completion");
  EXPECT_EQ(part["choices"][0], Json::parse(R"({"index": 2, "text": "a",
    "logprobs": null, "finish_reason": null})"));
  ChoiceEnd other = kEnd;
  other.prompt = 1;
  const Json whole =
      Json::parse(form->whole({{.content = "a"}, {}}, {kEnd, other}));
  EXPECT_EQ(whole["choices"][1]["text"], "");
  EXPECT_EQ(whole["usage"]["prompt_tokens"], 20);
}

TEST(ApiAnswer, LlamaCpp) {
  const auto form = llamaForm(kHead, true);
  EXPECT_EQ(Json::parse(form->part(0, {.content = "a", .ids = {1, 2}})),
            Json::parse(R"({"index": 0, "content": "a", "tokens": [1, 2],
                            "stop": false})"));
  const Json end = Json::parse(form->end(0, kEnd));
  EXPECT_EQ(end["stop_type"], "eos");
  EXPECT_EQ(end["tokens_predicted"], 3);
  EXPECT_EQ(end["timings"]["prompt_n"], 6);
  EXPECT_FALSE(form->endsWithDone());
  EXPECT_EQ(llamaForm(kHead, false)->part(0, {.ids = {1}}), "");
}

TEST(ApiAnswer, LogProbs) {
  const Tokenizer tokenizer =
      *Tokenizer::open(KF_SOURCE_DIR "/models/kf-stories/tokenizer.json");
  AnswerHead head = kHead;
  head.logProbsBy = &tokenizer;
  const AnswerPart some = {.content = "!",
                           .logProbs = {{{{3, -0.5F}, {{3, -0.5F}}}, 7}}};
  AnswerPart hidden = some; // special tokens alone
  hidden.content.clear();

  const auto chat = chatForm(head);
  const Json chunk = Json::parse(chat->part(0, some))["choices"][0];
  EXPECT_EQ(chunk["logprobs"]["content"][0]["logprob"], -0.5);
  EXPECT_EQ(chunk["logprobs"]["content"][0]["top_logprobs"].size(), 1u);
  EXPECT_EQ(Json::parse(chat->part(0, hidden))["choices"][0]["delta"],
            Json::parse(R"({"content": ""})"));
  EXPECT_EQ(chat->part(0, {}), "");
  for (const std::string &other :
       {chat->begin(0), chat->part(0, {.content = "a"}), chat->end(0, kEnd)})
    EXPECT_TRUE(Json::parse(other)["choices"][0]["logprobs"].is_null());
  const Json whole = Json::parse(chat->whole({some, {}}, {kEnd, kEnd}));
  EXPECT_EQ(whole["choices"][0]["logprobs"], chunk["logprobs"]);
  EXPECT_EQ(whole["choices"][1]["logprobs"]["content"], Json::array());

  const auto text = completionForm(head);
  const Json part = Json::parse(text->part(0, some))["choices"][0]["logprobs"];
  EXPECT_EQ(part["text_offset"], Json::parse("[7]"));
  EXPECT_EQ(part["token_logprobs"], Json::parse("[-0.5]"));
  EXPECT_EQ(Json::parse(text->whole({some}, {kEnd}))["choices"][0]["logprobs"],
            part);

  const auto llama = llamaForm(head, false);
  for (const std::string &json :
       {llama->part(0, some), llama->whole({some}, {kEnd})})
    EXPECT_EQ(Json::parse(json)["completion_probabilities"][0]["id"], 3);
  EXPECT_FALSE(Json::parse(llamaForm(kHead, false)->whole({{}}, {kEnd}))
                   .contains("completion_probabilities"));
}

TEST(ApiAnswer, FinishReasons) {
  auto reason = [](StopReason reason, bool hasCalls = false) {
    return finishReasonOf({.reason = reason, .hasCalls = hasCalls});
  };
  EXPECT_EQ(reason(StopReason::StopToken), "stop");
  EXPECT_EQ(reason(StopReason::StopText), "stop");
  EXPECT_EQ(reason(StopReason::MaxTokens), "length");
  EXPECT_EQ(reason(StopReason::ContextFull), "length");
  EXPECT_EQ(reason(StopReason::StopToken, true), "tool_calls");
  EXPECT_EQ(reason(StopReason::MaxTokens, true), "length");
}

TEST(ApiError, Kinds) {
  const auto of = [](StatusCode code) {
    return ApiError::of(Status::error("'a.b' is 1", code));
  };
  EXPECT_EQ(of(StatusCode::Invalid).param, "a.b");
  EXPECT_EQ(of(StatusCode::Invalid).status, 400);
  EXPECT_EQ(of(StatusCode::Internal).status, 500);
  EXPECT_EQ(of(StatusCode::Unavailable).status, 503);
  EXPECT_EQ(Json::parse(ApiError{.message = "a\"\n"}.json()),
            Json::parse(R"({"error": {"message": "a\"\n", "type":
              "invalid_request_error", "param": null, "code": null}})"));
  EXPECT_EQ(ApiError{.status = 429}.response().headers.front().first,
            "Retry-After");
}

TEST(ApiMetrics, Text) {
  ServiceCounts counts;
  counts.running = 2;
  counts.pagesUsed = 1;
  counts.pagesTotal = 4;
  counts.firstToken.add(0.003);
  counts.firstToken.add(1000);
  const std::string text = metricsText(
      &counts, {.answers = {{200, 3}}, .finished = {{"stop", 1}}}, "a\"b");
  for (const char *line :
       {"vllm:num_requests_running{model_name=\"a\\\"b\"} 2\n",
        "vllm:kv_cache_usage_perc{model_name=\"a\\\"b\"} 0.25\n",
        "# TYPE vllm:time_to_first_token_seconds histogram\n",
        "_bucket{model_name=\"a\\\"b\",le=\"0.0025\"} 0\n",
        "vllm:time_to_first_token_seconds_bucket{model_name=\"a\\\"b\","
        "le=\"0.005\"} 1\n",
        "le=\"120.0\"} 1\n", "le=\"+Inf\"} 2\n",
        "seconds_count{model_name="
        "\"a\\\"b\"} 2\n",
        "kernelforge:http_answers_total{model_name=\"a\\\"b\",status=\"200\"} "
        "3\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  EXPECT_EQ(metricsText(nullptr, {}, "m").find("vllm:num_requests"),
            std::string::npos);
}

} // namespace
