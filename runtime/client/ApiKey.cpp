//===- ApiKey.cpp - A key that nobody sees --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/ApiKey.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <cstdlib>

using namespace kf;

Result<ApiKey> ApiKey::fromEnvironment(const std::string &name) {
  ApiKey key;
  const char *value = std::getenv(name.c_str());
  key.key = value ? value : "";
  constexpr size_t most = 8192;
  const bool isSound =
      key.key.size() <= most &&
      std::ranges::all_of(key.key, [](char c) { return c > 0x20 && c < 0x7f; });
  if (!isSound)
    return Status::error("the key in the environment variable " +
                         inQuotes(name) +
                         " has blanks, line breaks or other letters than "
                         "ASCII's, or is too long");
  return key;
}

std::string ApiKey::hide(std::string_view text) const {
  constexpr size_t least = 8;
  std::string out;
  while (key.size() >= least) {
    const size_t at = text.find(key);
    if (at == text.npos)
      break;
    out += text.substr(0, at);
    out += "[key]";
    text.remove_prefix(at + key.size());
  }
  return out += text;
}
