//===- ConfigFile.cpp - Options from a file -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConfigFile.h"

#include "NearestName.h"

#include "runtime/core/Lines.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/model/ConfigReader.h"

#include <algorithm>

using namespace kf;
using nlohmann::json;

namespace {

constexpr size_t kMostBytes = size_t(1) << 20;

Status unexpected(const ConfigEntry &entry, const char *expected) {
  return Status::error(inQuotes(entry.key) + " is " + shortDump(*entry.value) +
                       ", but " + expected + " is expected");
}

/// What `value` is on a command line; nothing where it is of another kind.
std::optional<std::string> textOf(const json &value, OptionKind kind) {
  const bool isText = value.is_string(), isInteger = value.is_number_integer();
  switch (kind) {
  case OptionKind::Text:
  case OptionKind::Texts:
    if (isText)
      return value.get<std::string>();
    break;
  case OptionKind::MaybeText:
  case OptionKind::Bytes:
    if (isText)
      return value.get<std::string>();
    if (isInteger)
      return value.dump();
    break;
  case OptionKind::Integer:
  case OptionKind::Integers:
    if (isInteger)
      return value.dump();
    break;
  case OptionKind::Real:
    if (value.is_number())
      return value.dump();
    break;
  case OptionKind::Flag:
    break;
  }
  return std::nullopt;
}

const char *kindName(OptionKind kind) {
  switch (kind) {
  case OptionKind::Flag:
    return "true or false";
  case OptionKind::Text:
    return "a text";
  case OptionKind::Texts:
    return "a text, or a list of texts";
  case OptionKind::MaybeText:
    return "a text, true or false";
  case OptionKind::Integer:
    return "an integer";
  case OptionKind::Integers:
    return "an integer, or a list of integers";
  case OptionKind::Real:
    return "a number";
  case OptionKind::Bytes:
    return "a number of bytes, or a text as \"2G\"";
  }
  return "";
}

/// Adds what `object` has, but for other objects, to `entries`.
void addEntries(json &object, const std::string &before,
                std::vector<ConfigEntry> &entries) {
  for (auto &[key, value] : object.items()) {
    if (value.is_null() || (before.empty() && value.is_object()))
      continue;
    std::string name = key;
    std::ranges::replace(name, '_', '-');
    entries.push_back(
        {before + key, std::move(name), JsonDocument(std::move(value))});
  }
}

} // namespace

Result<ConfigFile>
ConfigFile::parse(std::string_view text, std::string_view command,
                  std::span<const std::string_view> commands) {
  if (text.size() > kMostBytes)
    return Status::error("more than 1 MiB, which no file of options has");
  KF_ASSIGN_OR_RETURN(JsonDocument document, parseJson(text));
  if (!document->is_object())
    return Status::error("an object of options is expected, not " +
                         shortDump(*document));
  ConfigFile file;
  for (auto &[key, value] : document->items()) {
    if (!value.is_object())
      continue;
    if (std::ranges::find(commands, key) == commands.end())
      return Status::error(inQuotes(key) +
                           " is an object, but there is no command of that "
                           "name" +
                           didYouMean(key, commands));
    if (key == command)
      addEntries(value, key + ".", file.own);
  }
  addEntries(*document, "", file.common);
  return file;
}

Result<ConfigFile>
ConfigFile::read(const std::string &path, std::string_view command,
                 std::span<const std::string_view> commands) {
  KF_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  Result<ConfigFile> config = parse(file.text(), command, commands);
  return config.ok() ? std::move(config) : config.status().in(quotePath(path));
}

Result<std::vector<std::optional<std::string>>>
kf::optionValues(const ConfigEntry &entry, OptionKind kind) {
  const json &value = *entry.value;
  std::vector<std::optional<std::string>> values;
  if (value.is_boolean()) {
    if (kind != OptionKind::Flag && kind != OptionKind::MaybeText)
      return unexpected(entry, kindName(kind));
    if (value.get<bool>())
      values.emplace_back();
    return values;
  }
  const bool isList = value.is_array() && (kind == OptionKind::Texts ||
                                           kind == OptionKind::Integers);
  for (const json &item :
       isList ? std::span<const json>(value.get_ref<const json::array_t &>())
              : std::span<const json>(&value, 1)) {
    std::optional<std::string> text = textOf(item, kind);
    if (!text)
      return unexpected(entry, kindName(kind));
    if (text->find('\0') != text->npos)
      return Status::error(inQuotes(entry.key) +
                           " has a NUL, which no option takes");
    values.push_back(std::move(text));
  }
  return values;
}
