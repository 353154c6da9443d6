//===- Values.h - What a template's expressions compute ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Python's values as far as templates meet them. Everything but Namespace and
// Macro is immutable once made. Containers know how deep they are nested, and
// the budget counts what is made of them, so that neither a template's stack
// nor its memory is out of bounds. What looks at more than one value or at a
// text takes the budget, which pays for it.
//
// Errors inside the interpreter travel as an exception, jinja::Failure, which
// ChatTemplate turns into a Status; nothing else sees it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CHAT_VALUES_H
#define KF_RUNTIME_CHAT_VALUES_H

#include "runtime/chat/Budget.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kf::jinja {

enum class Kind : uint8_t {
  Undefined,
  None,
  Bool,
  Int,
  Float,
  String,
  List,
  Tuple,
  Range,
  View,      ///< of a dict: keys(), values(), items()
  Generator, ///< what map, select... give: read once, without a length
  Dict,
  Namespace,
  Macro,
  Loop,
  Function ///< a method with its object, or a global function
};

/// What a Value points to.
struct Object {
  virtual ~Object() = default;
  int depth = 0; ///< of nested containers
};

class Value {
public:
  Value() : kind_(Kind::None) {}
  Value(bool value) : kind_(Kind::Bool) { payload.boolean = value; }
  Value(int64_t value) : kind_(Kind::Int) { payload.integer = value; }
  Value(double value) : kind_(Kind::Float) { payload.real = value; }
  Value(Kind kind, std::shared_ptr<Object> object)
      : kind_(kind), object_(std::move(object)) {}
  Value(const char *) = delete;

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool isUndefined() const { return kind_ == Kind::Undefined; }
  bool isNone() const { return kind_ == Kind::None; }
  bool isString() const { return kind_ == Kind::String; }
  /// An int as Python sees it: a bool too.
  bool isInt() const { return kind_ == Kind::Int || kind_ == Kind::Bool; }
  bool isNumber() const { return isInt() || kind_ == Kind::Float; }
  /// List, Tuple, Range, View or Generator: has a Sequence.
  bool isSequence() const {
    return kind_ >= Kind::List && kind_ <= Kind::Generator;
  }

  bool boolean() const { return payload.boolean; }
  /// Of an Int or a Bool.
  int64_t integer() const {
    return kind_ == Kind::Bool ? payload.boolean : payload.integer;
  }
  /// Of any number.
  double real() const {
    return kind_ == Kind::Float ? payload.real : static_cast<double>(integer());
  }
  const std::string &text() const; ///< of a String
  template <typename T> T &as() const { return static_cast<T &>(*object_); }
  const std::shared_ptr<Object> &object() const { return object_; }
  int depth() const { return object_ ? object_->depth : 0; }

private:
  Kind kind_;
  union {
    bool boolean;
    int64_t integer;
    double real;
  } payload = {};
  std::shared_ptr<Object> object_;
};

struct Text : Object {
  std::string text;
};
/// Why a value is undefined, as the error says when it is used.
struct UndefinedInfo : Object {
  std::string why;
};
inline constexpr std::string_view kGroupLabel = "group";
struct Sequence : Object {
  std::vector<Value> items;
  /// Of a Range "range(0, 3)", of a View "dict_items", of what groupby gives
  /// kGroupLabel.
  std::string label;
  bool consumed = false; ///< a Generator that was read
};
struct Dict : Object {
  std::vector<std::pair<Value, Value>> entries; ///< in order of insertion
  const Value *find(const Value &key, Budget &budget) const;
  const Value *find(std::string_view key, Budget &budget) const;
};
struct Namespace : Object {
  std::vector<std::pair<std::string, Value>> entries;
  Value *find(std::string_view name, Budget &budget);
};

Value makeUndefined(std::string why, Budget &budget);
/// A text that is charged to `budget`.
Value makeText(std::string text, Budget &budget);
/// A text of the source, which was paid for by its length.
Value makeLiteral(std::string text);
Value makeSequence(Kind kind, std::vector<Value> items, Budget &budget,
                   std::string label = {});
Value makeTuple(Value first, Value second, Budget &budget);
/// Later entries win over earlier ones of the same key.
Value makeDict(std::vector<std::pair<Value, Value>> entries, Budget &budget);
/// The depth of what holds `item`; fails past the limit.
int depthAround(int depth, const Value &item);

/// Fails with the reason if `value` is undefined.
void requireDefined(const Value &value);

/// Python's type(value).__name__.
std::string typeName(const Value &value);
/// Python's bool(value).
bool isTrue(const Value &value);
/// Python's str(value) and repr(value).
std::string toText(const Value &value, Budget &budget);
std::string toRepr(const Value &value, Budget &budget);
/// A text as Python's repr quotes it.
std::string quoted(std::string_view text, Budget &budget);
/// The same of a name in an error, cut off after 80 bytes.
std::string quotedName(std::string_view text);
/// Python's repr(float).
std::string floatText(double value);

bool equals(const Value &a, const Value &b, Budget &budget);
/// Less than 0, 0 or greater: for `a < b` and the like; `op` appears in errors.
/// Unordered floats give 2.
int compare(const Value &a, const Value &b, std::string_view op,
            Budget &budget);
/// `needle in haystack`.
bool contains(const Value &haystack, const Value &needle, Budget &budget);
/// Fails unless `key` can be a dict's key.
void requireHashable(const Value &key, Budget &budget);

/// What `for item in value` goes through; consumes a Generator.
std::vector<Value> iterate(const Value &value, Budget &budget);
/// Python's len(value).
int64_t lengthOf(const Value &value, Budget &budget);

/// The order of `count` items by `less(i, j)`, stable. Ends whatever `less`
/// answers.
std::vector<size_t>
sortedOrder(size_t count, const std::function<bool(size_t, size_t)> &less);

/// json.dumps of the tojson filter; `indent` is the text of one level.
struct JsonStyle {
  bool ascii = false;
  bool sortKeys = false;
  bool indented = false;
  std::string indent;
  std::string itemSeparator = ", ", keySeparator = ": ";
};
std::string toJson(const Value &value, const JsonStyle &style, Budget &budget);
/// The value of a JSON document, objects in their order; nothing where `text`
/// is none. Fails on integers past 64 bits and on what nests too deep.
std::optional<Value> fromJson(std::string_view text, Budget &budget);

} // namespace kf::jinja

#endif // KF_RUNTIME_CHAT_VALUES_H
