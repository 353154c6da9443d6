//===- ValueReader.cpp - Values from JSON ---------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the parser straight into values: a document of the library's would need
// memory to end (see JsonDocument), and keep nothing of the budget.
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Values.h"

#include <nlohmann/json.hpp>

using namespace kf;
using namespace kf::jinja;
using nlohmann::json;

namespace {

class ValueReader : public nlohmann::json_sax<json> {
public:
  explicit ValueReader(Budget &budget) : budget(budget) {}

  Value root;

  bool null() override { return put(Value()); }
  bool boolean(bool value) override { return put(Value(value)); }
  bool number_integer(number_integer_t value) override {
    return put(Value(int64_t(value)));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > INT64_MAX)
      fail("a number is too large");
    return put(Value(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t &) override {
    return put(Value(value));
  }
  bool string(string_t &value) override {
    return put(makeText(std::move(value), budget));
  }
  bool binary(binary_t &) override { return false; }
  bool start_object(std::size_t) override { return open(); }
  bool key(string_t &name) override {
    budget.item();
    containers.back().keys.push_back(makeText(std::move(name), budget));
    return true;
  }
  bool end_object() override {
    Container ended = close();
    std::vector<std::pair<Value, Value>> entries;
    for (size_t i = 0; i < ended.keys.size(); ++i)
      entries.emplace_back(std::move(ended.keys[i]), std::move(ended.items[i]));
    return put(makeDict(std::move(entries), budget));
  }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override {
    return put(makeSequence(Kind::List, close().items, budget));
  }
  bool parse_error(std::size_t, const std::string &,
                   const json::exception &) override {
    return false;
  }

private:
  struct Container {
    std::vector<Value> keys; ///< of an object: one for each item
    std::vector<Value> items;
  };

  bool put(Value value) {
    budget.item();
    if (containers.empty())
      root = std::move(value);
    else
      containers.back().items.push_back(std::move(value));
    return true;
  }
  bool open() {
    budget.enter();
    containers.emplace_back();
    return true;
  }
  Container close() {
    budget.leave();
    Container last = std::move(containers.back());
    containers.pop_back();
    return last;
  }

  Budget &budget;
  std::vector<Container> containers; ///< open ones, outermost first
};

} // namespace

std::optional<Value> jinja::fromJson(std::string_view text, Budget &budget) {
  ValueReader reader(budget);
  if (!json::sax_parse(text.begin(), text.end(), &reader))
    return std::nullopt;
  return std::move(reader.root);
}
