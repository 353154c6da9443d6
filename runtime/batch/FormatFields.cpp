//===- FormatFields.cpp - What a request's text has to be -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/FormatFields.h"

#include "runtime/batch/JsonSlice.h"
#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"

#include <string>
#include <utility>

using namespace kf;
using nlohmann::json;

namespace {

using Format = std::optional<OutputFormat>;
using Kind = OutputFormat::Kind;

std::string inQuotesOf(std::string_view name) {
  return "'" + std::string(name) + "'";
}

/// A schema: an object, or the text of one; `text` is the value as it stands.
Result<Format> readSchema(const ConfigReader &reader, std::string_view key,
                          std::string_view text, std::string name) {
  const json &value = *reader.find(key);
  if (!value.is_object() && !value.is_boolean() && !value.is_string())
    return reader.unexpected(key, "a JSON schema, an object,");
  return Format(OutputFormat{
      .text = value.is_string() ? value.get<std::string>() : std::string(text),
      .name = std::move(name)});
}

/// A grammar; an empty one is none.
Result<Format> readGrammar(const ConfigReader &reader, std::string_view key,
                           std::string name) {
  KF_ASSIGN_OR_RETURN(std::string text, reader.text(key));
  if (text.empty())
    return Format();
  return Format(OutputFormat{
      .kind = Kind::Gbnf, .text = std::move(text), .name = std::move(name)});
}

/// A text as a literal of GBNF.
std::string literalOf(std::string_view text) {
  std::string literal = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      literal += '\\';
    literal += c;
  }
  return literal + '"';
}

/// Texts, of which the answer is one.
Result<Format> readChoice(const ConfigReader &reader, std::string_view key,
                          std::string name) {
  const json &value = *reader.find(key);
  std::string grammar = "root ::= ";
  bool isSound = value.is_array() && !value.empty();
  for (const json &choice : value) {
    isSound = isSound && choice.is_string();
    if (!isSound)
      break;
    const auto &text = choice.get_ref<const std::string &>();
    grammar += (&choice == &value.front() ? "" : " | ") + literalOf(text);
  }
  if (!isSound)
    return reader.unexpected(key, "an array of texts, at least one,");
  return Format(OutputFormat{
      .kind = Kind::Gbnf, .text = std::move(grammar), .name = std::move(name)});
}

/// response_format, which is `text`.
Result<Format> readResponseFormat(const ConfigReader &reader,
                                  std::string_view text) {
  const std::string name = "response_format";
  const json &value = *reader.find(name);
  if (!value.is_object())
    return reader.unexpected(name, "an object");
  const ConfigReader fields(value, name + ".");
  KF_ASSIGN_OR_RETURN(const std::string type, fields.text("type"));
  if (type == "text")
    return Format();
  if (type == "json_object") {
    if (fields.contains("schema"))
      return readSchema(fields, "schema", memberText(text, "schema"),
                        inQuotesOf(name + ".schema"));
    return Format(OutputFormat::jsonObject(inQuotesOf(name)));
  }
  if (type != "json_schema")
    return fields.unexpected("type", "text, json_object or json_schema");
  const json *given = fields.find("json_schema");
  if (!given || !given->is_object())
    return fields.unexpected("json_schema", "an object with 'schema'");
  const ConfigReader inner(*given, name + ".json_schema.");
  // Texts are held to the schema, strictly or not.
  KF_RETURN_IF_ERROR(inner.boolean("strict", false).status());
  KF_RETURN_IF_ERROR(inner.text("name", "").status());
  KF_RETURN_IF_ERROR(inner.text("description", "").status());
  if (!inner.contains("schema"))
    return Status::error("'response_format.json_schema.schema' is missing");
  return readSchema(inner, "schema",
                    memberText(memberText(text, "json_schema"), "schema"),
                    inQuotesOf(name + ".json_schema.schema"));
}

/// vLLM's structured_outputs, which is `text`.
Result<Format> readStructured(const ConfigReader &reader,
                              std::string_view text) {
  const std::string name = "structured_outputs";
  const json &value = *reader.find(name);
  if (!value.is_object())
    return reader.unexpected(name, "an object");
  const ConfigReader fields(value, name + ".");
  Format format;
  for (const auto &[key, given] : value.items()) {
    if (given.is_null())
      continue;
    const std::string whole = inQuotesOf(name + "." + key);
    if (format)
      return Status::error(inQuotesOf(name) +
                           " has more than one of json, "
                           "grammar, choice and json_object");
    if (key == "json") {
      KF_ASSIGN_OR_RETURN(
          format, readSchema(fields, key, memberText(text, key), whole));
    } else if (key == "grammar") {
      KF_ASSIGN_OR_RETURN(format, readGrammar(fields, key, whole));
    } else if (key == "choice") {
      KF_ASSIGN_OR_RETURN(format, readChoice(fields, key, whole));
    } else if (key == "json_object") {
      KF_ASSIGN_OR_RETURN(const bool isWanted, fields.boolean(key, false));
      if (isWanted)
        format = OutputFormat::jsonObject(whole);
    } else {
      return Status::error(
          inQuotesOf(name) + " has " + inQuotes(key) +
              ", which is not supported: json, grammar, choice and "
              "json_object are possible",
          StatusCode::Unsupported);
    }
  }
  return format;
}

Result<Format> readField(const ConfigReader &reader, std::string_view key,
                         std::string_view object) {
  const std::string_view text = memberText(object, key);
  const std::string name = inQuotesOf(key);
  if (key == "response_format")
    return readResponseFormat(reader, text);
  if (key == "json_schema" || key == "guided_json")
    return readSchema(reader, key, text, name);
  if (key == "guided_choice")
    return readChoice(reader, key, name);
  if (key == "structured_outputs")
    return readStructured(reader, text);
  return readGrammar(reader, key, name);
}

} // namespace

Result<std::optional<OutputFormat>> kf::readFormat(const ConfigReader &reader,
                                                   std::string_view object) {
  Format format;
  std::string_view found;
  for (std::string_view key : kFormatFields) {
    if (!reader.contains(key))
      continue;
    KF_ASSIGN_OR_RETURN(Format read, readField(reader, key, object));
    if (read && format)
      return Status::error(inQuotesOf(found) + " and " + inQuotesOf(key) +
                           " exclude each other");
    if (!read)
      continue;
    format = std::move(read);
    found = key;
  }
  return format;
}
