//===- BatchFileTest.cpp - Requests, sound and hostile --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/BatchFile.h"

#include <gtest/gtest.h>

#include <limits>

using namespace kf;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

BatchRequest parse(const std::string &line) {
  Result<BatchRequest> request = parseBatchRequest(line);
  EXPECT_TRUE(request.ok()) << line << ": " << request.message();
  return request.ok() ? request.take() : BatchRequest();
}

std::string errorOf(const std::string &line) {
  Result<BatchRequest> request = parseBatchRequest(line);
  EXPECT_FALSE(request.ok()) << line;
  return request.message();
}

/// The error of a prompt with `field`.
std::string errorWith(const std::string &field) {
  return errorOf(R"({"prompt": "a", )" + field + "}");
}

/// A prompt with logit_bias.
std::vector<LogitBias> biasesOf(const std::string &value) {
  return parse(R"({"prompt": "a", "logit_bias": )" + value + "}")
      .sampling.logitBias.value_or(std::vector<LogitBias>());
}

TEST(BatchFile, StartsOfText) {
  BatchRequest prompt = parse(R"({"prompt": "Gr\u00fc\u00dfe\n"})");
  EXPECT_EQ(prompt.prompt, "Grüße\n");
  EXPECT_FALSE(prompt.ids || prompt.messages);
  EXPECT_EQ(parse(R"({"prompt": ""})").prompt, "");
  EXPECT_EQ(parse(R"({"ids": [0, 2147483647]})").ids,
            (std::vector<int32_t>{0, 2147483647}));
  BatchRequest chat = parse(
      R"({"messages": [{"role": "system", "content": "Be kind."},
                       {"content": "", "role": "user"}], "prompt": null})");
  ASSERT_TRUE(chat.messages && chat.messages->size() == 2);
  EXPECT_EQ((*chat.messages)[0].role, "system");
  EXPECT_EQ((*chat.messages)[0].content, "Be kind.");
  EXPECT_EQ((*chat.messages)[1].role, "user");
}

TEST(BatchFile, TemplateVariables) {
  const std::string chat =
      R"({"messages": [{"role": "user", "content": "a"}], )"
      R"("chat_template_kwargs": )";
  EXPECT_EQ(
      parse(chat + R"({"think": false, "b": {"z": 1, "a": 2}}})").variables,
      (TemplateVariables{{"think", "false"}, {"b", R"({"z": 1, "a": 2})"}}));
  EXPECT_TRUE(parse(chat + "null}").variables.empty());
  EXPECT_EQ(errorOf(chat + "[1]}"),
            "'chat_template_kwargs': an object of at most 64 variables is "
            "expected, not [1]");
  EXPECT_EQ(errorOf(chat + R"({"tools": []}})"),
            "'chat_template_kwargs': 'tools' is told to the template anyway");
  EXPECT_EQ(errorWith(R"("chat_template_kwargs": {})"),
            "'chat_template_kwargs' is for 'messages'");
}

TEST(BatchFile, SaysNothingOfTheRest) {
  BatchRequest request = parse(R"({"prompt": "a", "temp": null})");
  EXPECT_FALSE(request.tokens || request.ignoreEos || request.stops);
  EXPECT_EQ(request.sampling, PartialSamplerOptions());
  EXPECT_EQ(request.id, "");
}

TEST(BatchFile, LogProbs) {
  EXPECT_EQ(parse(R"({"prompt": "a", "logprobs": true})").topLogProbs, 0u);
  EXPECT_EQ(parse(R"({"prompt": "a", "logprobs": true, "top_logprobs": 5})")
                .topLogProbs,
            5u);
  EXPECT_FALSE(parse(R"({"prompt": "a", "logprobs": false})").topLogProbs);
  EXPECT_EQ(errorWith(R"("top_logprobs": 5)"),
            "'top_logprobs' needs \"logprobs\": true");
  EXPECT_EQ(errorWith(R"("logprobs": true, "top_logprobs": 21)"),
            "'top_logprobs' is 21, but an integer from 0 to 20 is expected");
}

TEST(BatchFile, EveryOption) {
  BatchRequest request = parse(
      R"({"prompt": "a", "n": -1, "ignore_eos": true, "stop": ["\n", "b"],
          "temp": 0.5, "top_k": 5, "top_p": 1, "min_p": 0,
          "seed": 18446744073709551615, "repeat_penalty": 1.5,
          "presence_penalty": -2, "frequency_penalty": 3, "repeat_last_n": 0,
          "logit_bias": {"15": -1.5, "7": false}, "id": 7})");
  EXPECT_EQ(request.tokens, -1);
  EXPECT_EQ(request.ignoreEos, true);
  EXPECT_EQ(request.stops, (std::vector<std::string>{"\n", "b"}));
  PartialSamplerOptions expected;
  expected.temperature = 0.5;
  expected.topK = 5;
  expected.topP = 1;
  expected.minP = 0;
  expected.seed = std::numeric_limits<uint64_t>::max();
  expected.repetitionPenalty = 1.5;
  expected.presencePenalty = -2;
  expected.frequencyPenalty = 3;
  expected.penaltyWindow = 0;
  expected.logitBias = {{15, -1.5}, {7, -kInf}};
  EXPECT_EQ(request.sampling, expected);
  EXPECT_EQ(request.id, "7");

  EXPECT_EQ(parse(R"({"prompt": "a", "stop": "b"})").stops,
            std::vector<std::string>{"b"});
  EXPECT_EQ(parse(R"({"prompt": "a", "stop": []})").stops,
            std::vector<std::string>());
  EXPECT_EQ(parse(R"({"prompt": "a", "id": "x\n"})").id, R"("x\n")");
  EXPECT_EQ(parse(R"({"prompt": "a", "id": false})").id, "false");
  EXPECT_EQ(biasesOf("[[15, 2], [15, false]]"),
            (std::vector<LogitBias>{{15, 2}, {15, -kInf}}));
  EXPECT_EQ(biasesOf("{}"), std::vector<LogitBias>());
}

TEST(BatchFile, WhatOpenAiCallsThem) {
  const BatchRequest request = parse(
      R"({"messages": [{"role": "user", "content":
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
          "model": "x", "max_tokens": 5, "temperature": 0.5, "stream": false,
          "repetition_penalty": 1.5})");
  EXPECT_EQ(request.model, "x");
  EXPECT_EQ(request.tokens, 5);
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_EQ(request.sampling.repetitionPenalty, 1.5);
  ASSERT_TRUE(request.messages);
  EXPECT_EQ(request.messages->front().content, "ab");
  EXPECT_EQ(parse(R"({"prompt": "a", "max_completion_tokens": 7})").tokens, 7);
  EXPECT_EQ(parse(R"({"prompt": "a", "max_tokens": null, "n": 3})").tokens, 3);
  EXPECT_EQ(parse(R"({"prompt": "a", "max_tokens": 4, "n": null})").tokens, 4);
}

TEST(BatchFile, FormatsOfTexts) {
  const auto format =
      parse(R"({"prompt": "a", "response_format": {"type": "json_schema",
                "json_schema": {"schema": {"z": 1, "a": 2.50}}}})")
          .format;
  ASSERT_TRUE(format);
  EXPECT_EQ(format->text, R"({"z": 1, "a": 2.50})"); // as it stands
  EXPECT_EQ(parse(R"({"prompt": "a", "grammar": "root ::= b"})").format->kind,
            OutputFormat::Kind::Gbnf);
  EXPECT_TRUE(parse(R"({"prompt": "a", "guided_json": {}})").format);
  EXPECT_FALSE(
      parse(R"({"prompt": "a", "response_format": {"type": "text"}})").format);
  EXPECT_EQ(errorWith(R"("json_schema": {}, "grammar": "root ::= b")"),
            "'json_schema' and 'grammar' exclude each other");
  EXPECT_EQ(errorWith(R"("response_format": {"type": "xml"})"),
            "'response_format.type' is \"xml\", but text, json_object or "
            "json_schema is expected");
}

TEST(BatchFile, WhatOpenAiHasAndWeDoNot) {
  EXPECT_EQ(errorWith(R"("max_tokens": 5, "n": 1)"),
            "'n' and 'max_tokens' are the same here: give one");
  EXPECT_EQ(errorWith(R"("stream": true)"),
            "'stream' is not supported: each request becomes a line when it is "
            "finished");
  EXPECT_EQ(errorWith(R"("tools": [])"),
            "'tools' is not supported: batches read no calls of tools; kf-run "
            "serve does");
  EXPECT_EQ(errorOf(R"({"custom_id": "a", "body": {"prompt": "b"}})"),
            "'body' is of OpenAI's batches, which are files of such lines "
            "alone; else a line is what their 'body' holds, with 'id' for "
            "'custom_id'");
  EXPECT_EQ(errorOf(R"({"messages": [{"role": "user", "content":
                        [{"type": "image_url", "image_url": {}}]}]})"),
            "'messages[0].content' has a part of type 'image_url'; prompts are "
            "text alone, without images and audio");
  EXPECT_EQ(errorOf(R"({"messages": [{"role": "user", "content": ["a"]}]})"),
            "'messages[0].content' is [\"a\"], but a text, or an array of "
            "objects, is expected");
}

TEST(BatchFile, WrongStarts) {
  EXPECT_EQ(errorWith(R"("model": "")"),
            "'model' is empty; name the model or an adapter, or leave it out");
  EXPECT_EQ(errorOf("{}"), "one of 'prompt', 'ids' and 'messages' is missing");
  EXPECT_EQ(errorOf(R"({"messages": [], "ids": [1]})"),
            "'ids' and 'messages' exclude each other");
  EXPECT_EQ(errorOf(R"({"prompt": 1})"),
            "'prompt' is 1, but a string is expected");
  for (const char *ids : {"[]", "[-1]", "[2147483648]", "[1.5]", "[\"1\"]", "1",
                          "[18446744073709551615]", "{}"})
    EXPECT_EQ(errorOf("{\"ids\": " + std::string(ids) + "}"),
              "'ids' is " + std::string(ids) +
                  ", but an array of token ids, at least one, is expected");
  EXPECT_EQ(errorOf(R"({"messages": []})"),
            "'messages' is [], but an array of messages, at least one, is "
            "expected");
  EXPECT_EQ(errorOf(R"({"messages": ["Hello"]})"),
            "'messages[0]' is \"Hello\", but an object of role and content is "
            "expected");
  EXPECT_EQ(errorOf(R"({"messages": [{"role": "user", "content": "a"},
                                     {"role": "user"}]})"),
            "'messages[1].content' is missing");
  EXPECT_EQ(errorOf(R"({"messages": [{"role": "tool", "content": "a"}]})"),
            "'messages[0].role' is \"tool\", but system, user or assistant is "
            "expected");
  EXPECT_EQ(errorOf(R"({"messages": [{"role": "user", "content": "a",
                                      "name": "b"}]})"),
            "'messages[0]' has a key 'name'; role and content are possible");
}

TEST(BatchFile, WrongOptions) {
  EXPECT_EQ(errorWith(R"("temp": -1)"),
            "'temp' is -1, but a number from 0 to 1e+06 is expected");
  EXPECT_EQ(errorWith(R"("temp": "0.5")"),
            "'temp' is \"0.5\", but a number from 0 to 1e+06 is expected");
  EXPECT_EQ(errorWith(R"("top_p": 0)"),
            "'top_p' is 0, but a number above 0 and at most 1 is expected");
  EXPECT_EQ(errorWith(R"("n": -2)"),
            "'n' is -2, but an integer from -1 to 16777216 is expected");
  EXPECT_EQ(errorWith(R"("seed": -1)"),
            "'seed' is -1, but an integer from 0 to 18446744073709551615 is "
            "expected");
  EXPECT_EQ(errorWith(R"("ignore_eos": 1)"),
            "'ignore_eos' is 1, but true or false is expected");
  EXPECT_EQ(errorWith(R"("stop": ["a", ""])"),
            "'stop' is [\"a\",\"\"], but a text that is not empty, or an array "
            "of such texts, is expected");
  EXPECT_EQ(errorWith(R"("id": [1])"),
            "'id' is [1], but a text, a number, true or false is expected");
  for (const char *field :
       {R"("top_k": -1)", R"("top_k": 1.5)", R"("top_k": 16777217)",
        R"("top_p": 1.01)", R"("min_p": -0.1)", R"("min_p": 2)",
        R"("seed": 1.5)", R"("repeat_penalty": 0)",
        R"("repeat_penalty": 1e300)", R"("presence_penalty": 1e7)",
        R"("frequency_penalty": -1e7)", R"("repeat_last_n": -2)",
        R"("n": 18446744073709551615)", R"("stop": 1)", R"("temp": [])"})
    EXPECT_NE(errorWith(field).find(" is expected"), std::string::npos)
        << field;
  for (const char *biases :
       {"1", R"({"a": 1})", R"({"-1": 1})", R"({"1 ": 1})", R"({"": 1})",
        R"({"2147483648": 1})", R"({"1": true})", R"({"1": "1"})", "[1]",
        "[[1]]", "[[1, 2, 3]]", R"([["1", 2]])", "[[-1, 2]]"})
    EXPECT_NE(errorWith("\"logit_bias\": " + std::string(biases))
                  .find("but an object from token ids to numbers, or an array "
                        "of such pairs, is expected"),
              std::string::npos)
        << biases;
}

/// Errors have the name that was given.
TEST(BatchFile, WrongOptionsByOtherNames) {
  EXPECT_EQ(errorWith(R"("temperature": -1)"),
            "'temperature' is -1, but a number from 0 to 1e+06 is expected");
  EXPECT_EQ(errorWith(R"("max_tokens": "5")"),
            "'max_tokens' is \"5\", but an integer from -1 to 16777216 is "
            "expected");
  EXPECT_EQ(errorWith(R"("max_tokens": 5, "n_predict": 1)"),
            "'max_tokens' and 'n_predict' are the same here: give one");
}

TEST(BatchFile, UnknownKeys) {
  const std::string error = errorWith(R"("top-k": 5)");
  EXPECT_TRUE(error.starts_with("there is no key 'top-k'; possible are prompt, "
                                "ids, messages, n, "))
      << error;
}

TEST(BatchFile, NoJson) {
  EXPECT_EQ(errorOf("[1]"), "a JSON object is expected, not [1]");
  for (const char *line :
       {"", "{", "Once upon a time", R"({"prompt": "a"} {"prompt": "b"})",
        R"({"prompt": "a", "temp": NaN})", R"({"prompt": "a", "temp": 1e999})",
        "{\"prompt\": \"\xff\"}", R"({"prompt": "a", "prompt": "b"})"})
    errorOf(line);
  std::string deep(100000, '[');
  EXPECT_EQ(errorOf("{\"prompt\": " + deep), "JSON nested more than 32 deep");
  const std::string large(size_t(65) << 20, ' ');
  EXPECT_EQ(errorOf(large), "more than 64 MiB; no context is that long");
}

TEST(BatchFile, Lines) {
  BatchReader reader("\xef\xbb\xbf{\"prompt\": \"a\"}\r\n"
                     "\n \t\r\n"
                     "{\"prompt\": \"b\", \"temp\": -1}\n"
                     "{\"prompt\": \"c\"}");
  auto first = reader.next();
  ASSERT_TRUE(first && first->ok()) << first->message();
  EXPECT_EQ((*first)->prompt, "a");
  EXPECT_EQ(reader.line(), 1u);
  auto second = reader.next();
  ASSERT_TRUE(second && !second->ok());
  EXPECT_EQ(second->message(),
            "line 4: 'temp' is -1, but a number from 0 to 1e+06 is expected");
  EXPECT_EQ(reader.line(), 4u);
  auto third = reader.next();
  ASSERT_TRUE(third && third->ok()) << third->message();
  EXPECT_EQ((*third)->prompt, "c");
  EXPECT_EQ(reader.line(), 5u);
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
  for (const char *nothing : {"", "\xef\xbb\xbf", "\n\n", "\r\n"})
    EXPECT_FALSE(BatchReader(nothing).next());
}

} // namespace
