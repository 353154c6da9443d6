//===- JsonSlice.cpp - Parts of a JSON text as they stand -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/JsonSlice.h"

#include "runtime/core/Json.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

using namespace kf;

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

size_t skipBlanks(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(kBlanks, at), text.size());
}

/// Behind the text literal that begins at `at`.
size_t skipText(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    at += text[at] == '\\';
  return std::min(at + 1, text.size());
}

/// Behind the value that begins at `at`.
size_t skipValue(std::string_view text, size_t at) {
  size_t depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = skipText(text, at);
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at;
    } else if (c == '}' || c == ']') {
      if (depth == 0)
        return at;
      --depth;
      ++at;
    } else if (depth == 0) {
      // A number or a word, which ends the value.
      return std::min(text.find_first_of(",:]} \t\r\n", at), text.size());
    } else {
      ++at;
      continue;
    }
    if (depth == 0)
      return at;
  }
  return at;
}

/// What a text literal says; nothing if it is none.
std::optional<std::string> readText(std::string_view literal) {
  Result<JsonDocument> parsed = parseJson(literal);
  if (parsed.status().code() == StatusCode::OutOfMemory)
    throw std::bad_alloc(); // it may be one all the same
  if (!parsed.ok() || !(*parsed)->is_string())
    return std::nullopt;
  return std::move((*parsed)->get_ref<std::string &>());
}

/// Calls `visit` with the literal of the name and the text of each member of
/// `object`, until it returns false.
template <typename Fn> void forEachMember(std::string_view object, Fn visit) {
  size_t at = skipBlanks(object, 0);
  if (at == object.size() || object[at] != '{')
    return;
  for (++at; (at = skipBlanks(object, at)) < object.size();) {
    if (object[at] != '"')
      return;
    const size_t end = skipText(object, at);
    const std::string_view name = object.substr(at, end - at);
    at = skipBlanks(object, end);
    if (at == object.size() || object[at] != ':')
      return;
    at = skipBlanks(object, at + 1);
    const size_t begin = at;
    at = skipValue(object, at);
    if (!visit(name, object.substr(begin, at - begin)))
      return;
    at = skipBlanks(object, at);
    if (at == object.size() || object[at] != ',')
      return;
    ++at;
  }
}

} // namespace

std::string_view kf::memberText(std::string_view object, std::string_view key) {
  std::string_view found;
  forEachMember(object, [&](std::string_view name, std::string_view value) {
    if (readText(name) != key)
      return true;
    found = value;
    return false;
  });
  return found;
}

std::vector<std::pair<std::string, std::string_view>>
kf::memberTexts(std::string_view object) {
  std::vector<std::pair<std::string, std::string_view>> members;
  forEachMember(object, [&](std::string_view name, std::string_view value) {
    std::optional<std::string> text = readText(name);
    if (text)
      members.emplace_back(std::move(*text), value);
    return text.has_value();
  });
  return members;
}

std::vector<std::string_view> kf::elementTexts(std::string_view array) {
  std::vector<std::string_view> elements;
  size_t at = skipBlanks(array, 0);
  if (at == array.size() || array[at] != '[')
    return elements;
  for (++at; (at = skipBlanks(array, at)) < array.size() && array[at] != ']';) {
    const size_t begin = at;
    at = skipValue(array, at);
    if (at > begin)
      elements.push_back(array.substr(begin, at - begin));
    at = skipBlanks(array, at);
    if (at == array.size() || array[at] != ',')
      break;
    ++at;
  }
  return elements;
}
