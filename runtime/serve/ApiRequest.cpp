//===- ApiRequest.cpp - What clients ask for ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/ApiRequest.h"

#include "runtime/batch/FormatFields.h"
#include "runtime/batch/JsonSlice.h"
#include "runtime/batch/LogProbFields.h"
#include "runtime/batch/MessageFields.h"
#include "runtime/batch/RequestFields.h"
#include "runtime/batch/TemplateFields.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/JsonText.h"
#include "runtime/core/Quote.h"

#include <algorithm>
#include <limits>
#include <span>

using namespace kf;
using nlohmann::json;

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// A known field that is not supported, and values of it that ask for nothing.
struct Unsupported {
  const char *name;
  std::initializer_list<const char *> neutral; ///< as JSON
  const char *advice;
};

const char *const kOtherSampling =
    "tokens are chosen by temperature, top_k, top_p, min_p, penalties and "
    "logit_bias";
const char *const kTextAlone = "prompts and answers are text alone";

/// Of every endpoint that generates.
const Unsupported kUnsupported[] = {
    {"guided_regex", {}, "use 'guided_json' with a pattern, or 'grammar'"},
    {"guided_whitespace_pattern", {}, "white space is as docs/Server.md says"},
    {"grammar_lazy", {"false"}, "a grammar holds from the first token on"},
    {"grammar_triggers", {"[]"}, "a grammar holds from the first token on"},
    {"prompt_logprobs", {}, "log-probabilities are of answers alone"},
    {"post_sampling_probs", {"false"}, "log-probabilities are the model's own"},
    {"echo", {"false"}, "answers do not repeat the prompt"},
    {"suffix", {R"("")"}, "models continue texts, and fill in nothing"},
    {"prediction", {}, "leave it out"},
    {"modalities", {R"(["text"])"}, kTextAlone},
    {"audio", {}, kTextAlone},
    {"image_data", {"[]"}, kTextAlone},
    {"store", {"false"}, "answers are not stored"},
    {"service_tier", {R"("auto")", R"("default")"}, "there is one"},
    {"verbosity", {R"("medium")"}, "say it in the prompt"},
    {"web_search_options", {}, "nothing is looked up"},
    {"functions", {"[]"}, "use 'tools'"},
    {"function_call", {R"("none")", R"("auto")"}, "use 'tool_choice'"},
    {"typical_p", {"1", "1.0"}, kOtherSampling},
    {"tfs_z", {"1", "1.0"}, kOtherSampling},
    {"mirostat", {"0"}, kOtherSampling},
    {"dynatemp_range", {"0", "0.0"}, kOtherSampling},
    {"xtc_probability", {"0", "0.0"}, kOtherSampling},
    {"dry_multiplier", {"0", "0.0"}, kOtherSampling},
    {"top_n_sigma", {"-1", "-1.0", "0", "0.0"}, kOtherSampling},
    {"samplers", {}, kOtherSampling},
    {"min_tokens", {"0"}, kOtherSampling},
    {"bad_words", {"[]"}, "use 'logit_bias'"},
    {"allowed_token_ids", {}, "use 'logit_bias'"},
    {"use_beam_search", {"false"}, kOtherSampling},
    {"length_penalty", {"1", "1.0"}, kOtherSampling},
    {"include_stop_str_in_output", {"false"}, "texts end before it"},
    {"skip_special_tokens", {"true"}, "texts are without special tokens"},
    {"truncate_prompt_tokens", {}, "shorten the prompt"},
    {"n_keep", {"0"}, "a context that is full ends the text"},
    {"t_max_predict_ms", {"0"}, "close the connection to end an answer"},
    {"cache_prompt", {"true"}, "what prompts have in common is computed once"},
    {"id_slot", {"-1"}, "requests take what is free"},
    {"lora", {"[]"}, "'model' names an adapter, which --lora adds"},
    {"response_fields", {"[]"}, "answers have all fields"},
    {"chat_template", {}, "the server's is used"},
    {"documents", {"[]"}, "put them into a message"},
    {"add_generation_prompt", {"true"}, "an answer is a message of its own"},
    {"continue_final_message", {"false"}, "an answer is a message of its own"},
};

/// Fields of chats, for which completions have no code, and the other way
/// around.
const char *const kChatsAlone = "it is for /v1/chat/completions";
const Unsupported kOfChats[] = {
    {"messages", {"[]"}, kChatsAlone},
    {"tools", {"[]"}, kChatsAlone},
    {"tool_choice", {R"("none")", R"("auto")"}, kChatsAlone},
    {"chat_template_kwargs", {"{}"}, kChatsAlone},
    {"reasoning_effort", {}, kChatsAlone},
    {"top_logprobs", {"0"}, kChatsAlone},
};
const Unsupported kOfLlama[] = {
    {"n_probs", {"0"}, "it is for /completion; use 'logprobs'"},
};
const Unsupported kOfOpenAi[] = {
    {"logprobs", {"false"}, "it is for /v1/completions; use 'n_probs'"},
};
const char *const kSaidToServer = "it is said to the server: --normalize";
const Unsupported kOfEmbeddings[] = {
    {"content", {}, "use 'input'"},
    {"prompt", {}, "use 'input'"},
    {"messages", {}, "use 'input'"},
    {"embd_normalize", {}, kSaidToServer},
    {"normalize", {}, kSaidToServer},
    {"pooling", {}, "it is said to the server: --pooling"},
    {"truncate_prompt_tokens", {}, "shorten the input"},
    {"add_special_tokens", {"true"}, "give token ids"},
};
const Unsupported kOfCompletions[] = {
    {"prompt", {"[]", R"("")"}, "a chat has 'messages'"},
};

Status checkUnsupported(const ConfigReader &reader,
                        std::span<const Unsupported> fields) {
  for (const Unsupported &field : fields) {
    const json *value = reader.find(field.name);
    if (!value)
      continue;
    const std::string text = value->dump();
    if (std::ranges::find(field.neutral, text) == field.neutral.end())
      return unsupportedField(field.name, field.advice);
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// What else a chat's template is told
//===----------------------------------------------------------------------===//

/// Of a request that makes the model call a tool if `isForced`; `text` is the
/// tool as it stands.
Result<ToolSchema> readTool(const json &tool, std::string_view text,
                            const std::string &name, bool isForced) {
  if (!tool.is_object())
    return Status::error("'" + name + "' is " + shortDump(tool) +
                         ", but an object is expected");
  const ConfigReader reader(tool, name + ".");
  KF_ASSIGN_OR_RETURN(const std::string type, reader.text("type"));
  if (type != "function")
    return reader.unexpected("type", "\"function\"");
  const json *function = reader.find("function");
  if (!function || !function->is_object())
    return reader.unexpected("function", "an object");
  const ConfigReader fields(*function, name + ".function.");
  KF_ASSIGN_OR_RETURN(const std::string called, fields.text("name"));
  if (called.empty())
    return fields.unexpected("name", "a text that is not empty");
  KF_RETURN_IF_ERROR(fields.text("description", "").status());
  const json *parameters = fields.find("parameters");
  if (parameters && !parameters->is_object())
    return fields.unexpected("parameters", "a JSON schema, an object,");
  KF_ASSIGN_OR_RETURN(const bool isStrict, fields.boolean("strict", false));
  if (isStrict && !isForced)
    return unsupportedField(
        name + ".function.strict",
        "calls are held to their parameters where "
        "'tool_choice' is \"required\" or names a function");
  ToolSchema schema{.name = called, .parameters = {}};
  if (parameters)
    schema.parameters =
        std::string(memberText(memberText(text, "function"), "parameters"));
  return schema;
}

/// What tool_choice asks for.
struct ToolChoice {
  bool isNone = false, isForced = false;
  std::optional<std::string> name; ///< of the tool to call
};

Result<ToolChoice> readToolChoice(const ConfigReader &reader) {
  ToolChoice choice;
  const json *value = reader.find("tool_choice");
  if (!value)
    return choice;
  choice.isNone = isText(*value, "none");
  choice.isForced = value->is_object() || isText(*value, "required");
  if (value->is_object()) {
    const ConfigReader fields(*value, "tool_choice.");
    KF_ASSIGN_OR_RETURN(const std::string type, fields.text("type"));
    const json *function = fields.find("function");
    if (type != "function" || !function || !function->is_object())
      return reader.unexpected(
          "tool_choice", R"({"type": "function", "function": {"name": ...}})");
    KF_ASSIGN_OR_RETURN(
        choice.name,
        ConfigReader(*function, "tool_choice.function.").text("name"));
  } else if (!choice.isNone && !choice.isForced && !isText(*value, "auto")) {
    return reader.unexpected("tool_choice", "\"auto\", \"none\", \"required\" "
                                            "or a function");
  }
  return choice;
}

Status readTools(const ConfigReader &reader, std::string_view body,
                 GenerationRequest &request) {
  const json *tools = reader.find("tools");
  if (tools && !tools->is_array())
    return reader.unexpected("tools", "an array");
  KF_ASSIGN_OR_RETURN(const ToolChoice choice, readToolChoice(reader));
  KF_ASSIGN_OR_RETURN(request.parallelToolCalls,
                      reader.boolean("parallel_tool_calls", true));
  if (!tools || tools->empty())
    return choice.isForced
               ? Status::error("'tool_choice' needs 'tools' to choose from")
               : Status();
  KF_ASSIGN_OR_RETURN(const std::vector<std::string_view> texts,
                      textsOf(*tools, memberText(body, "tools")));
  std::vector<std::string> names;
  for (const json &tool : *tools) {
    const size_t number = names.size();
    KF_ASSIGN_OR_RETURN(ToolSchema schema,
                        readTool(tool, texts[number],
                                 "tools[" + std::to_string(number) + "]",
                                 choice.isForced));
    names.push_back(schema.name);
    if (choice.isForced && schema.name == choice.name.value_or(schema.name))
      request.forcedTools.push_back(std::move(schema));
  }
  if (choice.isForced && request.forcedTools.empty())
    return Status::error("'tool_choice.function.name' is " +
                         inQuotes(*choice.name) + ", which is none of 'tools'");
  if (choice.isForced && request.format)
    return Status::error("'tool_choice' that makes the model call a tool, and "
                         "a format of the answer exclude each other");
  if (choice.isNone)
    return Status();
  request.tools =
      std::make_shared<const std::vector<std::string>>(std::move(names));
  request.chat->variables["tools"] = std::string(memberText(body, "tools"));
  return Status();
}

Status readTemplateOptions(const ConfigReader &reader, std::string_view body,
                           GenerationRequest &request) {
  KF_ASSIGN_OR_RETURN(TemplateVariables variables,
                      readTemplateVariables(reader, body));
  for (auto &[name, text] : variables)
    request.chat->variables[name] = std::move(text);
  if (reader.contains("reasoning_effort")) {
    KF_ASSIGN_OR_RETURN(const std::string effort,
                        reader.text("reasoning_effort"));
    request.chat->variables["reasoning_effort"] = jsonText(effort);
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// What every request has
//===----------------------------------------------------------------------===//

/// Fields that say something about the client, and ask for nothing.
Status checkLabels(const ConfigReader &reader) {
  for (const char *key : {"user", "safety_identifier", "prompt_cache_key",
                          "prompt_cache_retention"})
    KF_RETURN_IF_ERROR(reader.text(key, "").status());
  const json *metadata = reader.find("metadata");
  if (metadata && !metadata->is_object())
    return reader.unexpected("metadata", "an object");
  return Status();
}

Status readStream(const ConfigReader &reader, GenerationRequest &request) {
  KF_ASSIGN_OR_RETURN(request.stream, reader.boolean("stream", false));
  const json *options = reader.find("stream_options");
  if (!options)
    return Status();
  if (!options->is_object())
    return reader.unexpected("stream_options", "an object");
  if (!request.stream)
    return Status::error("'stream_options' needs \"stream\": true");
  const ConfigReader fields(*options, "stream_options.");
  KF_ASSIGN_OR_RETURN(request.includeUsage,
                      fields.boolean("include_usage", false));
  KF_ASSIGN_OR_RETURN(const bool padded,
                      fields.boolean("include_obfuscation", false));
  if (padded)
    return unsupportedField("stream_options.include_obfuscation",
                            "chunks are as long as what they say");
  return Status();
}

Status readStopIds(const ConfigReader &reader, GenerationRequest &request) {
  const json *value = reader.find("stop_token_ids");
  if (!value || (value->is_array() && value->empty()))
    return Status();
  KF_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                      readIds(reader, "stop_token_ids"));
  if (ids.size() > kMostStopIds)
    return reader.unexpected("stop_token_ids",
                             "an array of at most " +
                                 std::to_string(kMostStopIds) + " token ids");
  request.stopIds.assign(ids.begin(), ids.end());
  return Status();
}

/// Says in this project's words what other programs say with values that are
/// out of range here.
void readOthersValues(json &object) {
  auto isNegative = [](const json &value) {
    return value.is_number_integer() && !value.is_number_unsigned();
  };
  auto isMinusOne = [&](const json &value) {
    return isNegative(value) && value.get<int64_t>() == -1;
  };
  // In llama.cpp's API, -1 is a seed by chance, as none is; in OpenAI's, seeds
  // have a sign.
  const auto seed = object.find("seed");
  if (seed != object.end() && isMinusOne(*seed))
    object.erase(seed);
  else if (seed != object.end() && isNegative(*seed))
    *seed = static_cast<uint64_t>(seed->get<int64_t>());
  // All tokens, in vLLM's.
  const auto topK = object.find("top_k");
  if (topK != object.end() && isMinusOne(*topK))
    *topK = uint64_t{0};
  // The likeliest token alone, in OpenAI's.
  const auto topP = object.find("top_p");
  if (topP != object.end() && topP->is_number() && topP->get<double>() == 0)
    *topP = std::numeric_limits<double>::min();
}

Status readCommon(const ConfigReader &reader, std::string_view body,
                  GenerationRequest &request) {
  KF_RETURN_IF_ERROR(checkUnsupported(reader, kUnsupported));
  KF_RETURN_IF_ERROR(checkLabels(reader));
  KF_ASSIGN_OR_RETURN(request.model, readModelName(reader));
  KF_RETURN_IF_ERROR(readInteger(
      reader,
      {"max_tokens", "max_completion_tokens", "n_predict", "max_new_tokens"},
      -1, kMostTokens, request.maxTokens));
  KF_RETURN_IF_ERROR(readSampling(reader, request.sampling));
  const auto &biases = request.sampling.logitBias;
  if (biases && biases->size() > kMostLogitBiases)
    return reader.unexpected("logit_bias",
                             "at most " + std::to_string(kMostLogitBiases) +
                                 " tokens");
  std::optional<std::vector<std::string>> stops;
  KF_RETURN_IF_ERROR(readStops(reader, stops));
  request.stops = std::move(stops).value_or(std::vector<std::string>());
  if (request.stops.size() > kMostStops ||
      std::ranges::any_of(request.stops, [](const std::string &stop) {
        return stop.size() > kMostStopBytes;
      }))
    return reader.unexpected(
        "stop", "at most " + std::to_string(kMostStops) + " texts of at most " +
                    std::to_string(kMostStopBytes) + " bytes each");
  KF_RETURN_IF_ERROR(readStopIds(reader, request));
  KF_ASSIGN_OR_RETURN(request.format, readFormat(reader, body));
  KF_ASSIGN_OR_RETURN(request.ignoreEos, reader.boolean("ignore_eos", false));
  KF_ASSIGN_OR_RETURN(request.choices, reader.integer("n", 1, kMostChoices, 1));
  KF_ASSIGN_OR_RETURN(const int64_t bestOf,
                      reader.integer("best_of", 1, INT64_MAX, 1));
  if (bestOf != 1 && bestOf != request.choices)
    return unsupportedField("best_of", "use 'n'");
  return readStream(reader, request);
}

/// A text or token ids, or an array of such, also mixed with one another.
Result<std::vector<PromptStart>> readTexts(const ConfigReader &reader,
                                           const std::string &key) {
  const json *value = reader.find(key);
  if (!value)
    return Status::error("'" + key + "' is missing");
  std::vector<PromptStart> texts;
  auto add = [&](const json &prompt) {
    if (prompt.is_string()) {
      texts.emplace_back(prompt.get<std::string>());
      return true;
    }
    std::vector<int32_t> ids;
    if (!prompt.is_array() || prompt.empty())
      return false;
    for (const json &id : prompt) {
      const std::optional<int32_t> known = toTokenId(id);
      if (!known)
        return false;
      ids.push_back(*known);
    }
    texts.emplace_back(std::move(ids));
    return true;
  };
  bool sound = !value->is_array() || !value->empty();
  if (value->is_array() && sound && !value->front().is_number())
    for (const json &prompt : *value)
      sound = sound && add(prompt);
  else
    sound = sound && add(*value);
  if (!sound)
    return reader.unexpected(key, "a text, token ids, or an array of such, at "
                                  "least one of each,");
  return texts;
}

Status readPrompts(const ConfigReader &reader, GenerationRequest &request) {
  KF_ASSIGN_OR_RETURN(request.prompts, readTexts(reader, "prompt"));
  if (static_cast<int64_t>(request.prompts.size()) >
      kMostChoices / request.choices)
    return Status::error(
        "'prompt' has " + std::to_string(request.prompts.size()) +
        " prompts; with 'n' of " + std::to_string(request.choices) +
        " at most " + std::to_string(kMostChoices / request.choices) +
        " are possible");
  return Status();
}

/// What the two that continue prompts share.
Result<GenerationRequest> readContinuation(const ConfigReader &reader,
                                           std::string_view body) {
  GenerationRequest request;
  KF_RETURN_IF_ERROR(checkUnsupported(reader, kOfChats));
  KF_RETURN_IF_ERROR(readCommon(reader, body, request));
  KF_RETURN_IF_ERROR(readPrompts(reader, request));
  return request;
}

Result<JsonDocument> parseObject(std::string_view body) {
  // The parser skips it, and what reads the text beside it does not.
  if (body.starts_with(kByteOrderMark))
    return Status::error("the body begins with a byte order mark (BOM), which "
                         "is no part of JSON; send it without");
  Result<JsonDocument> object = parseJson(body);
  if (!object.ok())
    return object.status().in("the body is no JSON");
  if (!(*object)->is_object())
    return Status::error("the body has to be a JSON object, not " +
                         shortDump(**object));
  readOthersValues(**object);
  return object;
}

} // namespace

Result<GenerationRequest> kf::parseChatRequest(std::string_view body) try {
  KF_ASSIGN_OR_RETURN(const JsonDocument object, parseObject(body));
  const ConfigReader reader(*object);
  GenerationRequest request;
  request.chat.emplace();
  KF_RETURN_IF_ERROR(checkUnsupported(reader, kOfCompletions));
  KF_RETURN_IF_ERROR(checkUnsupported(reader, kOfLlama));
  KF_RETURN_IF_ERROR(readCommon(reader, body, request));
  KF_ASSIGN_OR_RETURN(request.chat->messages, readChatMessages(reader, body));
  KF_RETURN_IF_ERROR(readTemplateOptions(reader, body, request));
  KF_RETURN_IF_ERROR(readTools(reader, body, request));
  KF_ASSIGN_OR_RETURN(request.topLogProbs, readChatLogProbs(reader));
  return request;
} catch (...) {
  return statusOfException();
}

Result<GenerationRequest>
kf::parseCompletionRequest(std::string_view body) try {
  KF_ASSIGN_OR_RETURN(const JsonDocument object, parseObject(body));
  const ConfigReader reader(*object);
  KF_RETURN_IF_ERROR(checkUnsupported(reader, kOfLlama));
  KF_ASSIGN_OR_RETURN(GenerationRequest request,
                      readContinuation(reader, body));
  KF_ASSIGN_OR_RETURN(request.topLogProbs, readCompletionLogProbs(reader));
  return request;
} catch (...) {
  return statusOfException();
}

Result<GenerationRequest> kf::parseLlamaRequest(std::string_view body) try {
  KF_ASSIGN_OR_RETURN(const JsonDocument object, parseObject(body));
  const ConfigReader reader(*object);
  KF_RETURN_IF_ERROR(checkUnsupported(reader, kOfOpenAi));
  KF_ASSIGN_OR_RETURN(GenerationRequest request,
                      readContinuation(reader, body));
  if (request.prompts.size() != 1 || request.choices != 1)
    return Status::error("'prompt' has to be one text, or token ids, and 'n' "
                         "1; /v1/completions takes more");
  KF_ASSIGN_OR_RETURN(request.returnsIds,
                      reader.boolean("return_tokens", false));
  KF_ASSIGN_OR_RETURN(request.topLogProbs, readLlamaLogProbs(reader));
  return request;
} catch (...) {
  return statusOfException();
}

Result<EmbeddingRequest> kf::parseEmbeddingRequest(std::string_view body) try {
  KF_ASSIGN_OR_RETURN(const JsonDocument object, parseObject(body));
  const ConfigReader reader(*object);
  EmbeddingRequest request;
  KF_RETURN_IF_ERROR(checkUnsupported(reader, kOfEmbeddings));
  KF_RETURN_IF_ERROR(checkLabels(reader));
  KF_ASSIGN_OR_RETURN(request.model, readModelName(reader));
  KF_ASSIGN_OR_RETURN(const std::string format,
                      reader.text("encoding_format", "float"));
  request.base64 = format == "base64";
  if (!request.base64 && format != "float")
    return reader.unexpected("encoding_format", "\"float\" or \"base64\"");
  KF_RETURN_IF_ERROR(
      readInteger(reader, {"dimensions"}, 1, kMostTokens, request.dimensions));
  KF_ASSIGN_OR_RETURN(request.inputs, readTexts(reader, "input"));
  if (request.inputs.size() > kMostInputs)
    return Status::error(
        "'input' has " + std::to_string(request.inputs.size()) +
        " texts; at most " + std::to_string(kMostInputs) + " are possible");
  for (const PromptStart &input : request.inputs)
    if (const auto *text = std::get_if<std::string>(&input);
        text && text->empty())
      return Status::error("'input' has a text that is empty; give at least "
                           "one character");
  return request;
} catch (...) {
  return statusOfException();
}

Result<TokenizeRequest> kf::parseTokenizeRequest(std::string_view body) try {
  KF_ASSIGN_OR_RETURN(const JsonDocument object, parseObject(body));
  const ConfigReader reader(*object);
  TokenizeRequest request;
  KF_ASSIGN_OR_RETURN(request.content, reader.text("content"));
  KF_ASSIGN_OR_RETURN(request.addSpecial, reader.boolean("add_special", false));
  KF_ASSIGN_OR_RETURN(request.parseSpecial,
                      reader.boolean("parse_special", true));
  KF_ASSIGN_OR_RETURN(request.withPieces, reader.boolean("with_pieces", false));
  return request;
} catch (...) {
  return statusOfException();
}

Result<std::vector<int32_t>>
kf::parseDetokenizeRequest(std::string_view body) try {
  KF_ASSIGN_OR_RETURN(const JsonDocument object, parseObject(body));
  const ConfigReader reader(*object);
  const json *tokens = reader.find("tokens");
  if (tokens && tokens->is_array() && tokens->empty())
    return std::vector<int32_t>();
  if (!tokens)
    return Status::error("'tokens' is missing");
  return readIds(reader, "tokens");
} catch (...) {
  return statusOfException();
}
