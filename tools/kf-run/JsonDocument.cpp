//===- JsonDocument.cpp - JSON that commands write ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JsonDocument.h"

#include <nlohmann/json.hpp>

using namespace kf;

std::string kf::documentText(const nlohmann::ordered_json &json, int indent,
                             bool ascii) {
  return json.dump(indent, ' ', ascii,
                   nlohmann::ordered_json::error_handler_t::replace);
}

nlohmann::ordered_json kf::readDocument(std::string_view text) {
  return nlohmann::ordered_json::parse(text, nullptr,
                                       /*allow_exceptions=*/false);
}
