//===- ApiRequestTest.cpp - Requests, sound and hostile -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/ApiRequest.h"

#include "runtime/batch/JsonSlice.h"
#include "runtime/serve/ApiError.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

constexpr const char *kMessages =
    R"("messages": [{"role": "user", "content": "a"}])";

GenerationRequest chat(const std::string &fields) {
  Result<GenerationRequest> request = parseChatRequest("{" + fields + "}");
  EXPECT_TRUE(request.ok()) << fields << ": " << request.message();
  return request.ok() ? request.take() : GenerationRequest();
}
GenerationRequest chatWith(const std::string &fields) {
  return chat(std::string(kMessages) + ", " + fields);
}
Status chatError(const std::string &fields) {
  Result<GenerationRequest> request = parseChatRequest("{" + fields + "}");
  EXPECT_FALSE(request.ok()) << fields;
  return request.status();
}
Status errorWith(const std::string &fields) {
  return chatError(std::string(kMessages) + ", " + fields);
}
GenerationRequest completion(const std::string &fields) {
  Result<GenerationRequest> request =
      parseCompletionRequest("{" + fields + "}");
  EXPECT_TRUE(request.ok()) << fields << ": " << request.message();
  return request.ok() ? request.take() : GenerationRequest();
}
Status completionError(const std::string &fields) {
  return parseCompletionRequest("{" + fields + "}").status();
}

TEST(ApiRequest, EveryField) {
  const GenerationRequest request = chatWith(
      R"("model": "m", "max_completion_tokens": 7, "temperature": 0.5,
         "top_p": 0.9, "top_k": 4, "min_p": 0.1, "seed": 3, "stop": "x",
         "n": 2, "logit_bias": {"5": -100}, "presence_penalty": 1,
         "frequency_penalty": -1, "repetition_penalty": 1.1, "stream": true,
         "stream_options": {"include_usage": true}, "user": "u",
         "ignore_eos": true, "stop_token_ids": [4], "store": false,
         "metadata": {"a": "b"}, "parallel_tool_calls": false)");
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.maxTokens, 7);
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_EQ(request.sampling.topP, 0.9);
  EXPECT_EQ(request.sampling.topK, 4);
  EXPECT_EQ(request.sampling.minP, 0.1);
  EXPECT_EQ(request.sampling.seed, 3u);
  EXPECT_EQ(request.sampling.repetitionPenalty, 1.1);
  EXPECT_EQ(request.sampling.logitBias, (std::vector<LogitBias>{{5, -100}}));
  EXPECT_EQ(request.stops, std::vector<std::string>{"x"});
  EXPECT_EQ(request.stopIds, std::vector<int64_t>{4});
  EXPECT_EQ(request.choices, 2);
  EXPECT_TRUE(request.stream && request.includeUsage && request.ignoreEos);
  EXPECT_FALSE(request.parallelToolCalls);
  const GenerationRequest least = chat(kMessages);
  EXPECT_EQ(least.sampling, PartialSamplerOptions());
  EXPECT_FALSE(least.maxTokens || least.stream || least.includeUsage);
  EXPECT_EQ(least.choices, 1);
  EXPECT_EQ(chatWith(R"("max_tokens": 3, "temperature": null)").maxTokens, 3);
  EXPECT_EQ(chatWith(R"("n_predict": -1)").maxTokens, -1);
  EXPECT_EQ(chatWith(R"("seed": -1)").sampling.seed, std::nullopt);
}

TEST(ApiRequest, Messages) {
  const GenerationRequest request = chat(
      R"("messages": [
        {"role": "developer", "content": "d", "unknown": 1},
        {"role": "user", "name": "n", "content":
          [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": null, "reasoning_content": "r",
         "tool_calls": [{"id": "1", "type": "function", "function":
           {"name": "f", "arguments": "{\"z\": 1, \"a\": \"\u00e9\"}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "t"},
        {"role": "assistant", "content": "end", "tool_calls": []}])");
  const std::vector<ChatMessage> &messages = request.chat->messages;
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_TRUE(messages[0].fields.empty());
  EXPECT_EQ(messages[1].content, "ab");
  EXPECT_EQ(messages[1].fields.at("name"), "\"n\"");
  EXPECT_EQ(messages[2].content, "");
  EXPECT_EQ(messages[2].fields.at("reasoning_content"), "\"r\"");
  // The arguments are the object that they are, in the order that was given.
  EXPECT_EQ(messages[2].fields.at("tool_calls"),
            "[{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\","
            "\"arguments\":{\"z\": 1, \"a\": \"\xc3\xa9\"}}}]");
  EXPECT_EQ(messages[3].fields.at("tool_call_id"), "\"1\"");
  EXPECT_TRUE(messages[4].fields.empty());
}

TEST(ApiRequest, Tools) {
  const std::string tools =
      R"([{"type": "function", "function": {"name": "f", "description": "d",
           "parameters": {"type": "object", "properties": {}}}}])";
  GenerationRequest request = chatWith("\"tools\": " + tools);
  ASSERT_TRUE(request.tools);
  EXPECT_EQ(*request.tools, std::vector<std::string>{"f"});
  EXPECT_EQ(request.chat->variables.at("tools"), tools);
  request = chatWith("\"tool_choice\": \"none\", \"tools\": " + tools);
  EXPECT_TRUE(!request.tools && request.chat->variables.empty());
  EXPECT_TRUE(chatWith("\"tools\": []").chat->variables.empty());
  for (const char *wrong :
       {R"("tools": {})", R"("tools": [1])", R"("tools": [{}])",
        R"("tools": [{"type": "web_search"}])", R"("tool_choice": "maybe")",
        R"("tool_choice": "required")",
        R"("tool_choice": {"type": "function"})",
        R"("tools": [{"type": "function", "function": {}}])",
        R"("tools": [{"type": "function", "function": {"name": ""}}])",
        R"("tools": [{"type": "function", "function":
             {"name": "f", "parameters": []}}])"})
    EXPECT_EQ(errorWith(wrong).code(), StatusCode::Invalid) << wrong;
}

/// A call that the model has to make.
TEST(ApiRequest, ForcedTools) {
  const std::string tools =
      R"("tools": [{"type": "function", "function": {"name": "f"}},
                   {"type": "function", "function": {"name": "g",
                    "strict": true, "parameters": {"type": "object",
                      "properties": {"z": {"$ref": "#/$defs/n"}, "a": {}},
                      "$defs": {"n": {"type": "null"}}}}}])";
  EXPECT_EQ(errorWith(tools).message(),
            "'tools[1].function.strict' is not supported: calls are held to "
            "their parameters where 'tool_choice' is \"required\" or names a "
            "function");
  const std::vector<ToolSchema> all =
      chatWith(R"("tool_choice": "required", )" + tools).forcedTools;
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].parameters, "");
  EXPECT_EQ(all[1].name, "g");
  EXPECT_TRUE(all[1].parameters.starts_with("{\"type\": \"object\","));
  auto named = [](const std::string &name) {
    return R"("tool_choice": {"type": "function", "function": {"name": ")" +
           name + "\"}}, ";
  };
  const std::vector<ToolSchema> one = chatWith(named("g") + tools).forcedTools;
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].name, "g");
  EXPECT_TRUE(errorWith(named("h") + tools)
                  .message()
                  .starts_with("'tool_choice.function.name' is 'h'"));
  EXPECT_EQ(errorWith(R"("tool_choice": "required", "grammar": "a", )" + tools)
                .code(),
            StatusCode::Invalid);

  // In the form of the template, with the tool's own references.
  const OutputFormat hermes = *formatOfCall(all, "... <tool_call> ...");
  EXPECT_EQ(hermes.before, "<tool_call>\n");
  EXPECT_EQ(hermes.after, "\n</tool_call>");
  EXPECT_EQ(hermes.documents,
            std::vector<std::string>{"/anyOf/1/properties/arguments/allOf/0"});
  EXPECT_NE(hermes.text.find(all[1].parameters), std::string::npos);
  // A function without parameters takes none.
  const OutputFormat bare = *formatOfCall({all[0]}, "<tool_call>");
  EXPECT_NE(bare.text.find(R"("additionalProperties":false}},"required")"),
            std::string::npos)
      << bare.text;
  EXPECT_EQ(formatOfCall(one, "[TOOL_CALLS]")->before, "[");
  EXPECT_EQ(formatOfCall(one, R"({"name": f, "parameters": a})")->documents,
            std::vector<std::string>{"/anyOf/0/properties/parameters/allOf/0"});
  for (const char *unknown : {"", "<tool_call>\n<function="})
    EXPECT_EQ(formatOfCall(one, unknown).status().code(),
              StatusCode::Unsupported);
}

TEST(ApiRequest, Formats) {
  struct Case {
    const char *fields, *text, *name;
    OutputFormat::Kind kind = OutputFormat::Kind::JsonSchema;
  };
  const Case cases[] = {
      {R"("response_format": {"type": "json_object"})", R"({"type": "object"})",
       "'response_format'"},
      {R"("response_format": {"type": "json_object", "schema": {"b":1, "a":2}})",
       R"({"b":1, "a":2})", "'response_format.schema'"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"name": "x",
          "strict": true, "schema": {"b" : 1.50, "a" : 2}}})",
       R"({"b" : 1.50, "a" : 2})", "'response_format.json_schema.schema'"},
      {R"("json_schema": {"b":1, "a":2})", R"({"b":1, "a":2})",
       "'json_schema'"},
      {R"("guided_json": "{\"b\":1}")", R"({"b":1})", "'guided_json'"},
      {R"("grammar": "root ::= \"a\"")", "root ::= \"a\"", "'grammar'",
       OutputFormat::Kind::Gbnf},
      {R"("guided_choice": ["a\"\\", "b\n"])",
       "root ::= \"a\\\"\\\\\" | \"b\n\"", "'guided_choice'",
       OutputFormat::Kind::Gbnf},
      {R"("structured_outputs": {"json": {"b":1, "a":2}, "regex": null})",
       R"({"b":1, "a":2})", "'structured_outputs.json'"},
      {R"("structured_outputs": {"json_object": true})",
       R"({"type": "object"})", "'structured_outputs.json_object'"}};
  for (const Case &one : cases) {
    SCOPED_TRACE(one.fields);
    const auto format = chatWith(one.fields).format;
    ASSERT_TRUE(format);
    EXPECT_EQ(format->text, one.text);
    EXPECT_EQ(format->name, one.name);
    EXPECT_EQ(format->kind, one.kind);
    EXPECT_TRUE(
        completion(R"("prompt": "a", )" + std::string(one.fields)).format);
  }
  for (const char *none :
       {R"("response_format": {"type": "text"})", R"("response_format": null)",
        R"("grammar": "")", R"("structured_outputs": {"json_object": false})"})
    EXPECT_FALSE(chatWith(none).format) << none;
  for (const char *wrong :
       {R"("response_format": "json")", R"("response_format": {})",
        R"("response_format": {"type": "xml"})",
        R"("response_format": {"type": "json_schema"})",
        R"("response_format": {"type": "json_schema", "json_schema": {}})",
        R"("response_format": {"type": "json_schema", "json_schema":
             {"schema": [], "strict": true}})",
        R"("json_schema": 1)", R"("grammar": 1)", R"("guided_choice": [])",
        R"("guided_choice": ["a", 1])", R"("structured_outputs": [])",
        R"("json_schema": {}, "grammar": "root ::= a")",
        R"("structured_outputs": {"json": {}, "grammar": "a"})"})
    EXPECT_EQ(errorWith(wrong).code(), StatusCode::Invalid) << wrong;
  EXPECT_EQ(errorWith(R"("structured_outputs": {"a\nb": 1})").message(),
            "'structured_outputs' has 'a?b', which is not supported: json, "
            "grammar, choice and json_object are possible");
  for (const char *other :
       {R"("guided_regex": "a")", R"("structured_outputs": {"regex": "a"})"})
    EXPECT_EQ(errorWith(other).code(), StatusCode::Unsupported) << other;
}

TEST(ApiRequest, TemplateOptions) {
  const auto variables = chatWith(R"("reasoning_effort": "low",
                  "chat_template_kwargs": {"enable_thinking": false,
                                           "b": {"z": 1, "a": 2}})")
                             .chat->variables;
  EXPECT_EQ(variables.at("reasoning_effort"), "\"low\"");
  EXPECT_EQ(variables.at("enable_thinking"), "false");
  EXPECT_EQ(variables.at("b"), R"({"z": 1, "a": 2})");
  EXPECT_FALSE(errorWith(R"("chat_template_kwargs": [])").ok());
  EXPECT_FALSE(errorWith(R"("chat_template_kwargs": {"messages": []})").ok());
  auto many = [](int count) {
    std::string members;
    for (int i = 0; i < count; ++i)
      members += (i ? ", \"" : "\"") + std::to_string(i) + "\": [" +
                 std::to_string(i) + "]";
    return "\"chat_template_kwargs\": {" + members + "}";
  };
  EXPECT_EQ(chatWith(many(64)).chat->variables.at("63"), "[63]");
  EXPECT_EQ(errorWith(many(65)).code(), StatusCode::Invalid);
}

TEST(ApiRequest, Prompts) {
  using Ids = std::vector<int32_t>;
  auto prompts = [](const std::string &value) {
    return completion("\"prompt\": " + value).prompts;
  };
  EXPECT_EQ(prompts("\"a\""), std::vector<PromptStart>{"a"});
  EXPECT_EQ(prompts("\"\""), std::vector<PromptStart>{""});
  EXPECT_EQ(prompts(R"(["a", ""])"), (std::vector<PromptStart>{"a", ""}));
  EXPECT_EQ(prompts("[1, 2]"), (std::vector<PromptStart>{Ids{1, 2}}));
  EXPECT_EQ(prompts("[[1], \"a\", [2, 3]]"),
            (std::vector<PromptStart>{Ids{1}, "a", Ids{2, 3}}));
  for (const char *wrong : {"1", "[]", "[[]]", "[1, \"a\"]", "[\"a\", 1]",
                            "[-1]", "[1.5]", "{}", "[2147483648]", "true"})
    EXPECT_EQ(completionError("\"prompt\": " + std::string(wrong)).code(),
              StatusCode::Invalid)
        << wrong;
  EXPECT_EQ(completionError("\"prompt\": null").message(),
            "'prompt' is missing");
  EXPECT_FALSE(completionError(R"("prompt": ["a", "b"], "n": 65)").ok());
  EXPECT_EQ(completion(R"("prompt": ["a", "b"], "n": 64)").choices, 64);
  EXPECT_FALSE(parseLlamaRequest(R"({"prompt": ["a", "b"]})").ok());
  EXPECT_TRUE(parseLlamaRequest(R"({"prompt": "a", "return_tokens": true})")
                  ->returnsIds);
}

/// A field that is known and cannot be obeyed is an error, unless its value
/// asks for nothing; of those that nobody knows nothing is said.
TEST(ApiRequest, KnownFieldsAreNotIgnored) {
  for (const char *field :
       {R"("guided_regex": "a*")", R"("n_probs": 1)", R"("prompt_logprobs": 1)",
        R"("echo": true)", R"("suffix": "a")", R"("best_of": 2)",
        R"("store": true)", R"("modalities": ["text", "audio"])",
        R"("functions": [{}])", R"("typical_p": 0.5)",
        R"("service_tier": "priority")", R"("cache_prompt": false)"}) {
    const Status status = errorWith(field);
    EXPECT_EQ(status.code(), StatusCode::Unsupported) << field;
    const ApiError error = ApiError::of(status);
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.code, "unsupported_parameter");
    EXPECT_TRUE(std::string(field).starts_with("\"" + error.param + "\""))
        << error.param;
  }
  chatWith(R"("response_format": {"type": "text"}, "logprobs": false,
              "top_logprobs": 0, "echo": null, "best_of": 1, "typical_p": 1.0,
              "modalities": ["text"], "audio": null, "nobody_knows": [1])");
  EXPECT_EQ(chatWith(R"("n": 3, "best_of": 3)").choices, 3);
  EXPECT_EQ(errorWith(R"("n": 3, "best_of": 4)").code(),
            StatusCode::Unsupported);
  EXPECT_EQ(chatError(R"("messages": [{"role": "assistant", "refusal": "no"}])")
                .code(),
            StatusCode::Unsupported);
}

TEST(ApiRequest, LogProbs) {
  using Wanted = std::optional<size_t>;
  EXPECT_EQ(chat(kMessages).topLogProbs, Wanted());
  EXPECT_EQ(chatWith(R"("logprobs": true)").topLogProbs, Wanted(0));
  EXPECT_EQ(chatWith(R"("logprobs": true, "top_logprobs": 20)").topLogProbs,
            Wanted(20));
  EXPECT_EQ(chatWith(R"("logprobs": null, "top_logprobs": 0)").topLogProbs,
            Wanted());
  EXPECT_EQ(errorWith(R"("top_logprobs": 1)").message(),
            "'top_logprobs' needs \"logprobs\": true");
  for (const char *field :
       {R"("logprobs": 1)", R"("logprobs": true, "top_logprobs": 21)",
        R"("logprobs": true, "top_logprobs": -1)",
        R"("logprobs": true, "top_logprobs": true)",
        R"("logprobs": false, "top_logprobs": 2)"})
    EXPECT_EQ(errorWith(field).code(), StatusCode::Invalid) << field;

  const auto ofCompletion = [](const std::string &field) {
    return completion(R"("prompt": "a", )" + field).topLogProbs;
  };
  EXPECT_EQ(ofCompletion(R"("logprobs": null)"), Wanted());
  EXPECT_EQ(ofCompletion(R"("logprobs": false, "top_logprobs": 0)"), Wanted());
  EXPECT_EQ(ofCompletion(R"("logprobs": 0)"), Wanted(0));
  EXPECT_EQ(ofCompletion(R"("logprobs": 20)"), Wanted(20));
  for (const char *field : {R"("logprobs": true)", R"("logprobs": 21)",
                            R"("logprobs": -1)", R"("logprobs": 1.5)"})
    EXPECT_EQ(completionError(R"("prompt": "a", )" + std::string(field)).code(),
              StatusCode::Invalid)
        << field;
  EXPECT_EQ(completionError(R"("prompt": "a", "top_logprobs": 1)").code(),
            StatusCode::Unsupported);

  const auto ofLlama = [](const std::string &field) {
    return parseLlamaRequest(R"({"prompt": "a", )" + field + "}");
  };
  EXPECT_EQ(ofLlama(R"("n_probs": 3)")->topLogProbs, Wanted(3));
  EXPECT_EQ(ofLlama(R"("n_probs": 0, "logprobs": false)")->topLogProbs,
            Wanted());
  EXPECT_EQ(ofLlama(R"("n_probs": 21)").status().code(), StatusCode::Invalid);
  EXPECT_EQ(ofLlama(R"("logprobs": 1)").status().code(),
            StatusCode::Unsupported);
}

TEST(ApiRequest, FieldsOfOtherEndpoints) {
  EXPECT_EQ(errorWith(R"("prompt": "a")").code(), StatusCode::Unsupported);
  chatWith(R"("prompt": null)");
  for (const char *field :
       {kMessages, R"("tools": [{}])", R"("tool_choice": "required")",
        R"("chat_template_kwargs": {"a": 1})", R"("reasoning_effort": "low")"})
    for (auto *parse : {parseCompletionRequest, parseLlamaRequest})
      EXPECT_EQ(parse(R"({"prompt": "a", )" + std::string(field) + "}")
                    .status()
                    .code(),
                StatusCode::Unsupported)
          << field;
  completion(R"("prompt": "a", "messages": [], "tools": [],
                "tool_choice": "none", "reasoning_effort": null)");
}

/// Values that other programs have a meaning for, out of this one's ranges.
TEST(ApiRequest, ValuesOfOthers) {
  EXPECT_EQ(chatWith(R"("top_k": -1)").sampling.topK, 0);
  EXPECT_EQ(errorWith(R"("top_k": -2)").code(), StatusCode::Invalid);
  EXPECT_EQ(chatWith(R"("seed": -2)").sampling.seed, UINT64_MAX - 1);
  for (const char *none : {"0", "0.0"}) {
    const auto sampling = chatWith("\"top_p\": " + std::string(none)).sampling;
    EXPECT_GT(sampling.topP, 0);
    EXPECT_LT(sampling.topP, 1e-30);
    EXPECT_TRUE(sampling.complete().validate().ok());
  }
  EXPECT_EQ(errorWith(R"("top_p": -0.1)").code(), StatusCode::Invalid);
}

/// What stands behind a zero is not left unread.
TEST(ApiRequest, Zeros) {
  const std::string body(R"({"prompt": "a"})");
  EXPECT_TRUE(parseCompletionRequest(body).ok());
  EXPECT_EQ(parseCompletionRequest(body + std::string(1, '\0') + "}").message(),
            "the body is no JSON: not valid JSON at byte 16");
  // Arguments that are no JSON are the text that they are.
  const auto messages =
      chat(R"("messages": [{"role": "assistant", "tool_calls": [{"function":
             {"name": "f", "arguments": "{}\u0000"}}]}])")
          .chat->messages;
  EXPECT_NE(messages[0].fields.at("tool_calls").find(R"("{}\u0000")"),
            std::string::npos);
}

TEST(ApiRequest, Wrong) {
  for (const char *fields :
       {"", R"("messages": [])", R"("messages": "a")", R"("messages": [1])",
        R"("messages": [{"role": "user"}])",
        R"("messages": [{"content": "a"}])",
        R"("messages": [{"role": "robot", "content": "a"}])",
        R"("messages": [{"role": "user", "content": 1}])",
        R"("messages": [{"role": "user", "content": [{"type": "image_url"}]}])",
        R"("messages": [{"role": "user", "content": "a", "tool_calls": [{}]}])",
        R"("messages": [{"role": "assistant", "tool_calls": [{}]}])",
        R"("messages": [{"role": "assistant", "tool_calls":
             [{"function": {"name": "f", "arguments": 1}}]}])"})
    EXPECT_EQ(chatError(fields).code(), StatusCode::Invalid) << fields;
  EXPECT_EQ(ApiError::of(errorWith(R"("temperature": -1)")).param,
            "temperature");
  for (const char *field :
       {R"("n": 0)", R"("n": 129)", R"("max_tokens": -2)", R"("stream": 1)",
        R"("max_tokens": 1, "max_completion_tokens": 1)", R"("model": 1)",
        R"("model": "")", R"("stream_options": {})", R"("user": 1)",
        R"("metadata": 1)", R"("stream": true, "stream_options": [])",
        R"("stop": [""])", R"("stop_token_ids": ["a"])",
        R"("seed": -9223372036854775809)", R"("best_of": 0)"})
    EXPECT_EQ(errorWith(field).code(), StatusCode::Invalid) << field;
  // What each choice has a copy of is bounded.
  auto list = [](const std::string &element, size_t count) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i)
      text += (i ? ", " : "") + element;
    return text + "]";
  };
  auto stop = [](size_t size) { return "\"" + std::string(size, 'a') + "\""; };
  chatWith("\"stop\": " + list(stop(kMostStopBytes), kMostStops));
  chatWith("\"stop_token_ids\": " + list("1", kMostStopIds));
  chatWith("\"logit_bias\": " + list("[1, 1]", kMostLogitBiases));
  for (const std::string &field :
       {"\"stop\": " + list(stop(1), kMostStops + 1),
        "\"stop\": " + stop(kMostStopBytes + 1),
        "\"stop_token_ids\": " + list("1", kMostStopIds + 1),
        "\"logit_bias\": " + list("[1, 1]", kMostLogitBiases + 1)})
    EXPECT_EQ(errorWith(field).code(), StatusCode::Invalid)
        << field.substr(0, 20);
  for (const char *body : {"", "{", "[]", "\"a\"", "{\"a\": 1, \"a\": 2}",
                           "{\"prompt\": \"\xff\"}", "{} {}"})
    EXPECT_FALSE(parseCompletionRequest(body).ok()) << body;
}

/// A byte order mark, which the parser of JSON skips, is refused by name.
TEST(ApiRequest, Embeddings) {
  auto parse = [](const std::string &fields) {
    Result<EmbeddingRequest> request =
        parseEmbeddingRequest("{" + fields + "}");
    EXPECT_TRUE(request.ok()) << fields << ": " << request.message();
    return request.ok() ? request.take() : EmbeddingRequest();
  };
  using Ids = std::vector<int32_t>;
  EmbeddingRequest request = parse(R"("input": "a")");
  EXPECT_EQ(request.inputs, std::vector<PromptStart>{"a"});
  EXPECT_EQ(request.model, "");
  EXPECT_FALSE(request.base64);
  EXPECT_FALSE(request.dimensions);
  request = parse(R"("input": ["a", "b"], "model": "m", "user": "u",
                     "encoding_format": "base64", "dimensions": 5, "other": 1)");
  EXPECT_EQ(request.inputs, (std::vector<PromptStart>{"a", "b"}));
  EXPECT_EQ(request.model, "m");
  EXPECT_TRUE(request.base64);
  EXPECT_EQ(request.dimensions, 5);
  EXPECT_EQ(parse(R"("input": [1, 2], "encoding_format": "float")").inputs,
            std::vector<PromptStart>{(Ids{1, 2})});
  EXPECT_EQ(parse(R"("input": [[1, 2], [3]], "dimensions": null)").inputs,
            (std::vector<PromptStart>{Ids{1, 2}, Ids{3}}));
  EXPECT_EQ(parse(R"("input": [[1], "a"])").inputs,
            (std::vector<PromptStart>{Ids{1}, "a"}));

  auto message = [](const std::string &fields) {
    const auto parsed = parseEmbeddingRequest("{" + fields + "}");
    EXPECT_FALSE(parsed.ok()) << fields;
    return std::string(parsed.message());
  };
  EXPECT_EQ(message(""), "'input' is missing");
  for (const char *input : {"[]", "3", "{}", "true", "[[]]", "[1, \"a\"]",
                            "[[1, -1]]", "[1.5]", "[\"a\", 1]", "[null]"})
    EXPECT_TRUE(message(std::string("\"input\": ") + input)
                    .ends_with("but a text, token ids, or an array of such, at "
                               "least one of each, is expected"))
        << input;
  for (const char *input : {R"("")", R"(["a", ""])"})
    EXPECT_EQ(message(std::string("\"input\": ") + input),
              "'input' has a text that is empty; give at least one character");
  std::string many = R"("input": ["a")";
  for (size_t i = 0; i < kMostInputs; ++i)
    many += R"(, "a")";
  EXPECT_EQ(message(many + "]"),
            "'input' has 2049 texts; at most 2048 are possible");
  EXPECT_TRUE(message(R"("input": "a", "encoding_format": "hex")")
                  .ends_with("but \"float\" or \"base64\" is expected"));
  EXPECT_TRUE(message(R"("input": "a", "dimensions": 0)")
                  .starts_with("'dimensions' is 0, but"));
  EXPECT_TRUE(message(R"("input": "a", "user": 1)").starts_with("'user' is 1"));
  for (const char *field : {"content", "embd_normalize", "normalize", "pooling",
                            "truncate_prompt_tokens", "messages"}) {
    const auto parsed = parseEmbeddingRequest(R"({"input": "a", ")" +
                                              std::string(field) + R"(": 1})");
    EXPECT_EQ(parsed.status().code(), StatusCode::Unsupported) << field;
    EXPECT_EQ(ApiError::of(parsed.status()).param, field);
  }
}

TEST(ApiRequest, ByteOrderMarks) {
  const std::string mark = "\xef\xbb\xbf";
  const std::string body = mark + "{" + kMessages +
                           R"(, "prompt": "a", "content": "a", "tokens": []})";
  for (const Status &status :
       {parseChatRequest(body).status(), parseCompletionRequest(body).status(),
        parseLlamaRequest(body).status(), parseTokenizeRequest(body).status(),
        parseDetokenizeRequest(body).status()}) {
    EXPECT_EQ(status.code(), StatusCode::Invalid);
    EXPECT_NE(status.message().find("byte order mark"), std::string::npos)
        << status.message();
  }
  // Arguments that begin with one are a text and no object.
  const GenerationRequest request =
      chat(R"("messages": [{"role": "assistant", "tool_calls": [{"function":
                {"name": "f", "arguments": ")" +
           mark + R"({}"}}]}])");
  EXPECT_NE(request.chat->messages[0]
                .fields.at("tool_calls")
                .find("\"arguments\":\"" + mark + "{}\""),
            std::string::npos)
      << request.chat->messages[0].fields.at("tool_calls");
}

TEST(JsonSlice, PartsAsTheyStand) {
  const std::string_view text =
      R"( { "a" : {"x": [1, "}"]}, "b\u0063": [ 1 , "a,]\"" , {} ,[2]], "n":-1e5 })";
  EXPECT_EQ(memberText(text, "a"), R"({"x": [1, "}"]})");
  EXPECT_EQ(memberText(text, "bc"), R"([ 1 , "a,]\"" , {} ,[2]])");
  EXPECT_EQ(memberText(text, "n"), "-1e5");
  EXPECT_EQ(memberText(text, "x"), "");
  using Members = std::vector<std::pair<std::string, std::string_view>>;
  EXPECT_EQ(memberTexts(text), (Members{{"a", memberText(text, "a")},
                                        {"bc", memberText(text, "bc")},
                                        {"n", "-1e5"}}));
  EXPECT_EQ(elementTexts(memberText(text, "bc")),
            (std::vector<std::string_view>{"1", R"("a,]\"")", "{}", "[2]"}));
  EXPECT_TRUE(elementTexts(" [ ] ").empty());
  for (const char *wrong : {"", "{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "[",
                            "[\"", "[\"\\", "[{", "{]", "[}", "[,]"}) {
    memberText(wrong, "b");
    EXPECT_TRUE(memberTexts(wrong).size() <= 1);
    elementTexts(wrong);
  }
}

} // namespace
