//===- JsonTree.h - JSON with its order -------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The members of objects stay in their order, which is that of what models are
// to write, and numbers keep their digits. Values lie in one list: nothing
// about them is recursive.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_JSONTREE_H
#define KF_RUNTIME_GRAMMAR_JSONTREE_H

#include "runtime/grammar/Fuel.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf::grammar {

/// The number of a value in its tree.
using JsonId = uint32_t;

struct JsonValue {
  enum class Kind : uint8_t {
    Null,
    False,
    True,
    Number,
    String,
    Array,
    Object
  };
  Kind kind = Kind::Null;
  /// Of a String its text, of a Number its digits as JSON writes them.
  std::string text{};
  JsonId parent = 0;            ///< of the root: itself
  std::string name{};           ///< the key or index in the parent
  std::vector<JsonId> parts{};  ///< items, or members' values, in their order
  std::vector<JsonId> sorted{}; ///< of an object: parts by name

  bool isObject() const { return kind == Kind::Object; }
  bool isArray() const { return kind == Kind::Array; }
  bool isString() const { return kind == Kind::String; }
  bool isNumber() const { return kind == Kind::Number; }
  bool isBoolean() const { return kind == Kind::True || kind == Kind::False; }
};

class JsonTree {
public:
  static constexpr JsonId kRoot = 0;

  /// Throws Failure: what is no JSON, keys twice in an object, values nested
  /// more than `maxDepth` deep.
  static JsonTree parse(std::string_view text, int maxDepth, Fuel &fuel);

  const JsonValue &operator[](JsonId id) const { return values[id]; }
  size_t size() const { return values.size(); }
  /// The member of an object with that name.
  std::optional<JsonId> member(JsonId object, std::string_view name) const;
  /// Where a value is, as a JSON pointer; "" is the root.
  std::string pointer(JsonId id) const;
  /// The value that a JSON pointer names, from the value `from` on.
  std::optional<JsonId> find(std::string_view pointer,
                             JsonId from = kRoot) const;
  /// Whether two values are equal, members in any order. Numbers are if their
  /// values are: 1 and 1.0. Those with too many digits for Decimal are equal
  /// only to what is written so.
  bool equal(JsonId a, JsonId b, Fuel &fuel) const;

private:
  friend class JsonTreeBuilder;
  std::vector<JsonValue> values;
};

/// `text` as JSON writes it, with the shortest escapes, without quotation
/// marks. Control characters are escaped, DEL (0x7f) with them.
std::string escapeJson(std::string_view text);

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_JSONTREE_H
