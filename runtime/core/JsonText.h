//===- JsonText.h - Writing JSON --------------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// JSON straight from values to text, without spaces. A document of
// nlohmann::json would do, but its destructor needs memory (see JsonDocument),
// also where one ends that was half made when there was no more. Scalars do
// not, and are the library's.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_JSONTEXT_H
#define KF_RUNTIME_CORE_JSONTEXT_H

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace kf {

/// A string in quotes, escaped. Bytes that are no UTF-8 become U+FFFD.
std::string jsonText(std::string_view text);
inline std::string jsonText(const std::string &text) {
  return jsonText(std::string_view(text));
}
inline std::string jsonText(const char *text) {
  return jsonText(std::string_view(text));
}
inline std::string jsonText(bool value) { return value ? "true" : "false"; }
/// A number that reads as the same double; null where it is not finite.
std::string jsonText(double value);
template <std::integral T> std::string jsonText(T value) {
  return std::to_string(value);
}

/// An array of what `toText` makes of each element of `list`.
template <typename List, typename ToText>
std::string jsonArray(const List &list, ToText toText) {
  std::string out = "[";
  for (const auto &element : list) {
    if (out.size() > 1)
      out += ',';
    out += toText(element);
  }
  return out + ']';
}
/// An array of strings, of numbers, or of such arrays.
template <typename List>
  requires requires(const List &list) { list.begin()->begin(); } ||
           requires(const List &list) { jsonText(*list.begin()); }
std::string jsonArray(const List &list) {
  return jsonArray(list, [](const auto &element) {
    if constexpr (requires { jsonText(element); })
      return jsonText(element);
    else
      return jsonArray(element);
  });
}

/// An object: names that need no escapes, and values that are JSON.
using JsonMember = std::pair<std::string_view, std::string>;
std::string jsonObject(std::span<const JsonMember> members);
std::string jsonObject(std::initializer_list<JsonMember> members);

} // namespace kf

#endif // KF_RUNTIME_CORE_JSONTEXT_H
