//===- ChatConfig.cpp - A model's chat template ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ChatConfig.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/model/ConfigReader.h"

#include <filesystem>

using namespace kf;
using nlohmann::json;

namespace {

/// A token: its text, or an object with the text as "content".
Result<std::string> readToken(const ConfigReader &reader, const char *key) {
  const json *value = reader.find(key);
  if (!value)
    return std::string();
  if (value->is_object()) {
    auto content = value->find("content");
    if (content != value->end() && content->is_string())
      return content->get<std::string>();
  } else if (value->is_string()) {
    return value->get<std::string>();
  }
  return reader.unexpected(key, "a string or an object with \"content\"");
}

/// A template, or a list of {"name", "template"}; nothing if there is none.
Result<std::optional<std::string>> readTemplate(const ConfigReader &reader) {
  using Template = std::optional<std::string>;
  constexpr const char *key = "chat_template";
  const json *value = reader.find(key);
  if (!value)
    return Template();
  if (value->is_string())
    return Template(value->get<std::string>());
  const Status unexpected =
      reader.unexpected(key, "a string or a list of {\"name\", \"template\"}");
  if (!value->is_array())
    return unexpected;
  Template result;
  for (const json &item : *value) {
    if (!item.is_object() || !item.contains("name") ||
        !item["name"].is_string() || !item.contains("template") ||
        !item["template"].is_string())
      return unexpected;
    if (isText(item["name"], "default"))
      result = item["template"].get<std::string>();
  }
  return result;
}

/// The file's text; nothing if there is no such file.
Result<std::optional<std::string>>
readIfThere(const std::filesystem::path &path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return std::optional<std::string>();
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path.string()));
  return std::optional<std::string>(file.text());
}

/// Nothing if there is no such file.
Result<ChatConfig> readFile(const std::filesystem::path &path) {
  KF_ASSIGN_OR_RETURN(std::optional<std::string> text, readIfThere(path));
  if (!text || text->empty())
    return ChatConfig();
  Result<ChatConfig> parsed = parseChatConfig(*text);
  if (!parsed.ok())
    return parsed.status().in(path.string());
  if (!parsed->templateOrigin.empty())
    parsed->templateOrigin =
        path.string() + ", '" + parsed->templateOrigin + "'";
  return parsed;
}

/// The text of the token whose id is the metadata `key`.
Result<std::string> tokenNamedBy(const Gguf &gguf, std::string_view key,
                                 std::span<const std::string_view> tokens) {
  KF_ASSIGN_OR_RETURN(std::optional<uint64_t> id, gguf.findUnsigned(key));
  if (!id)
    return std::string();
  if (*id >= tokens.size())
    return Status::error(gguf.source() + ": metadata " + inQuotes(key) +
                         " is " + std::to_string(*id) +
                         ", but the vocabulary has " +
                         std::to_string(tokens.size()) + " tokens");
  return std::string(tokens[*id]);
}

} // namespace

Result<ChatConfig> kf::parseChatConfig(std::string_view tokenizerConfig) try {
  KF_ASSIGN_OR_RETURN(JsonDocument object, parseJson(tokenizerConfig));
  if (!object->is_object())
    return Status::error("a JSON object is expected");
  ConfigReader reader(*object);
  ChatConfig config;
  KF_ASSIGN_OR_RETURN(std::optional<std::string> text, readTemplate(reader));
  if (text) {
    config.chatTemplate = std::move(*text);
    config.templateOrigin = "chat_template";
  }
  KF_ASSIGN_OR_RETURN(config.bosToken, readToken(reader, "bos_token"));
  KF_ASSIGN_OR_RETURN(config.eosToken, readToken(reader, "eos_token"));
  return config;
} catch (...) {
  return statusOfException();
}

Result<ChatConfig> kf::loadChatConfig(const std::string &folder) try {
  const std::filesystem::path base(folder);
  KF_ASSIGN_OR_RETURN(ChatConfig config,
                      readFile(base / "tokenizer_config.json"));
  if (config.bosToken.empty() || config.eosToken.empty()) {
    // Where older checkpoints have their tokens.
    KF_ASSIGN_OR_RETURN(ChatConfig tokens,
                        readFile(base / "special_tokens_map.json"));
    if (config.bosToken.empty())
      config.bosToken = std::move(tokens.bosToken);
    if (config.eosToken.empty())
      config.eosToken = std::move(tokens.eosToken);
  }
  const std::filesystem::path path = base / "chat_template.jinja";
  KF_ASSIGN_OR_RETURN(std::optional<std::string> jinja, readIfThere(path));
  if (jinja) {
    config.chatTemplate = std::move(*jinja);
    config.templateOrigin = path.string();
  }
  return config;
} catch (...) {
  return statusOfException();
}

Result<ChatConfig> kf::readChatConfig(const Gguf &gguf) try {
  ChatConfig config;
  constexpr std::string_view key = "tokenizer.chat_template";
  KF_ASSIGN_OR_RETURN(std::string_view text, gguf.getString(key, ""));
  config.chatTemplate = text;
  if (gguf.contains(key))
    config.templateOrigin = gguf.source() + ", metadata " + inQuotes(key);
  if (!gguf.contains("tokenizer.ggml.tokens"))
    return config;
  KF_ASSIGN_OR_RETURN(std::vector<std::string_view> tokens,
                      gguf.getStrings("tokenizer.ggml.tokens"));
  KF_ASSIGN_OR_RETURN(
      config.bosToken,
      tokenNamedBy(gguf, "tokenizer.ggml.bos_token_id", tokens));
  KF_ASSIGN_OR_RETURN(
      config.eosToken,
      tokenNamedBy(gguf, "tokenizer.ggml.eos_token_id", tokens));
  return config;
} catch (...) {
  return statusOfException();
}
