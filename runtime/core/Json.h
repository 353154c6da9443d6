//===- Json.h - JSON from files that nobody vouches for ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// nlohmann::json parses what it is given; a file of unknown origin needs more:
// a limit on nesting, no key twice in one object (the last would win silently),
// and errors as one line with a byte offset. JsonBuilder adds these, and lets a
// subclass take large parts of a document for itself instead of building them.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_JSON_H
#define KF_RUNTIME_CORE_JSON_H

#include "runtime/core/Status.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Owns a JSON document. The library's destructor of arrays and objects makes a
/// vector, and ends the process where there is no memory for it; this one takes
/// a document apart first, from the inside out.
class JsonDocument {
public:
  JsonDocument() = default;
  explicit JsonDocument(nlohmann::json value) : value(std::move(value)) {}
  JsonDocument(JsonDocument &&) = default;
  JsonDocument &operator=(JsonDocument &&other) noexcept {
    std::swap(value, other.value);
    return *this;
  }
  ~JsonDocument();

  nlohmann::json &operator*() { return value; }
  const nlohmann::json &operator*() const { return value; }
  nlohmann::json *operator->() { return &value; }
  const nlohmann::json *operator->() const { return &value; }

private:
  nlohmann::json value;
};

/// Parses one JSON document, nested at most `kMaxJsonDepth` deep. An error
/// names the byte offset; callers add the file's name with Status::in.
Result<JsonDocument> parseJson(std::string_view text);

inline constexpr size_t kMaxJsonDepth = 32;

/// Whether `value` is that text. The library's == makes a document of the text,
/// and ends the process where there is no memory for it.
inline bool isText(const nlohmann::json &value, std::string_view text) {
  return value.is_string() && value.get_ref<const std::string &>() == text;
}

/// A SAX consumer that builds a document. Returning false from any event ends
/// the parse with the error that `fail` was given.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  /// Runs the parser over `text` and returns the document.
  Result<JsonDocument> parse(std::string_view text);

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t &) override {
    return put(value);
  }
  bool string(string_t &value) override { return put(std::move(value)); }
  bool binary(binary_t &) override { return fail("binary value"); }
  bool start_object(std::size_t) override;
  bool key(string_t &name) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string &lastToken,
                   const nlohmann::json::exception &) override;

protected:
  /// Records the parse's error; returns false for the caller to return.
  bool fail(const std::string &message);
  /// Keys from the root to the value that comes next; an array counts as an
  /// empty key.
  const std::vector<std::string> &path() const { return keys; }

private:
  bool put(nlohmann::json value);
  bool open(nlohmann::json container);
  bool close();

  JsonDocument root;
  std::vector<nlohmann::json *> stack; ///< open containers, outermost first
  std::vector<std::string> keys;       ///< one per open container
  Status failure;
};

} // namespace kf

#endif // KF_RUNTIME_CORE_JSON_H
