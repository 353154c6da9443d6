//===- Json.cpp - JSON from files that nobody vouches for -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Json.h"

#include "runtime/core/Quote.h"

using namespace kf;
using nlohmann::json;

/// Takes the values out of `value`, those within them first; at most
/// kMaxJsonDepth calls deep.
static void takeApart(json &value) {
  if (value.is_array()) {
    auto &items = value.get_ref<json::array_t &>();
    for (; !items.empty(); items.pop_back())
      takeApart(items.back());
  } else if (value.is_object()) {
    auto &members = value.get_ref<json::object_t &>();
    for (; !members.empty(); members.erase(members.begin()))
      takeApart(members.begin()->second);
  }
}

JsonDocument::~JsonDocument() { takeApart(value); }

Result<JsonDocument> kf::parseJson(std::string_view text) {
  return JsonBuilder().parse(text);
}

Result<JsonDocument> JsonBuilder::parse(std::string_view text) {
  root = JsonDocument();
  stack.clear();
  keys.clear();
  failure = Status();
  // The library takes a zero for the end, and looks at nothing behind it.
  if (const size_t zero = text.find('\0'); zero != text.npos) {
    fail("not valid JSON at byte " + std::to_string(zero + 1));
    return failure;
  }
  if (!json::sax_parse(text.begin(), text.end(), this)) {
    if (failure.ok())
      fail("not valid JSON");
    return failure;
  }
  return std::move(root);
}

bool JsonBuilder::fail(const std::string &message) {
  if (failure.ok())
    failure = Status::error(message);
  return false;
}

bool JsonBuilder::parse_error(std::size_t position, const std::string &,
                              const json::exception &) {
  return fail("not valid JSON at byte " + std::to_string(position));
}

bool JsonBuilder::put(json value) {
  if (stack.empty()) {
    *root = std::move(value);
  } else if (stack.back()->is_array()) {
    stack.back()->push_back(std::move(value));
  } else {
    (*stack.back())[keys.back()] = std::move(value);
  }
  return true;
}

bool JsonBuilder::open(json container) {
  if (stack.size() == kMaxJsonDepth)
    return fail("JSON nested more than " + std::to_string(kMaxJsonDepth) +
                " deep");
  put(std::move(container));
  if (stack.empty())
    stack.push_back(&*root);
  else if (stack.back()->is_array())
    stack.push_back(&stack.back()->back());
  else
    stack.push_back(&(*stack.back())[keys.back()]);
  keys.emplace_back();
  return true;
}

bool JsonBuilder::close() {
  stack.pop_back();
  keys.pop_back();
  return true;
}

bool JsonBuilder::start_object(std::size_t) { return open(json::object()); }
bool JsonBuilder::end_object() { return close(); }
bool JsonBuilder::start_array(std::size_t) { return open(json::array()); }
bool JsonBuilder::end_array() { return close(); }

bool JsonBuilder::key(string_t &name) {
  if (stack.back()->contains(name))
    return fail("key " + inQuotes(name) + " appears twice in one JSON object");
  keys.back() = std::move(name);
  return true;
}
