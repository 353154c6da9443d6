//===- JsonText.cpp - Writing JSON ----------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/JsonText.h"

#include <nlohmann/json.hpp>

using namespace kf;
using nlohmann::json;

std::string kf::jsonText(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string kf::jsonText(double value) { return json(value).dump(); }

std::string kf::jsonObject(std::initializer_list<JsonMember> members) {
  return jsonObject(
      std::span<const JsonMember>(members.begin(), members.size()));
}

std::string kf::jsonObject(std::span<const JsonMember> members) {
  std::string out = "{";
  for (const auto &[name, value] : members) {
    if (out.size() > 1)
      out += ',';
    out.append("\"").append(name).append("\":").append(value);
  }
  return out + '}';
}
