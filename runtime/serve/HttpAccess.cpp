//===- HttpAccess.cpp - Who may ask a server ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/HttpAccess.h"

#include <algorithm>

using namespace kf;

static bool equalsIgnoringCase(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// "localhost" of "localhost:8080", "[::1]" of "[::1]:8080".
static std::string_view withoutPort(std::string_view host) {
  const size_t colon = host.rfind(':');
  const size_t bracket = host.rfind(']');
  if (colon == host.npos || (bracket != host.npos && bracket > colon))
    return host;
  return host.substr(0, colon);
}

/// Whether a host is an address, which no page's name can stand for.
static bool isAddress(std::string_view host) {
  if (host.starts_with('['))
    return true;
  return !host.empty() &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool HttpAccess::isKey(std::string_view key) const {
  bool found = false;
  for (const std::string &own : keys) {
    // Every byte of `key` is looked at; where `own` is shorter, its first byte
    // stands for what it lacks, and the lengths differ anyway.
    unsigned difference = key.size() != own.size();
    for (size_t i = 0; i < key.size(); ++i)
      difference |= static_cast<unsigned char>(key[i]) ^
                    static_cast<unsigned char>(own[i < own.size() ? i : 0]);
    found |= difference == 0;
  }
  return found;
}

bool HttpAccess::hasKey(const HttpRequest &request) const {
  if (keys.empty())
    return true;
  constexpr std::string_view scheme = "bearer ";
  const std::string_view header = request.header("authorization");
  const bool isBearer =
      equalsIgnoringCase(header.substr(0, scheme.size()), scheme);
  return isKey(isBearer ? header.substr(scheme.size())
                        : request.header("x-api-key"));
}

bool HttpAccess::isHostAllowed(const HttpRequest &request) const {
  if (!keys.empty())
    return true;
  const std::string_view host = withoutPort(request.header("host"));
  return isAddress(host) || host.empty() ||
         equalsIgnoringCase(host, "localhost") ||
         std::ranges::any_of(hosts, [&](const std::string &allowed) {
           return equalsIgnoringCase(host, allowed);
         });
}

bool HttpAccess::isOriginAllowed(const HttpRequest &request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty())
    return true;
  for (const char *scheme : {"http://", "https://"})
    if (origin.starts_with(scheme) &&
        equalsIgnoringCase(origin.substr(std::string_view(scheme).size()),
                           request.header("host")))
      return true;
  return std::ranges::any_of(origins, [&](const std::string &allowed) {
    return allowed == "*" || allowed == origin;
  });
}

std::vector<std::pair<std::string, std::string>>
HttpAccess::corsHeaders(const HttpRequest &request) const {
  const std::string origin(request.header("origin"));
  const bool isAny = std::ranges::find(origins, "*") != origins.end();
  if (origin.empty() ||
      (!isAny && std::ranges::find(origins, origin) == origins.end()))
    return {};
  return {{"Access-Control-Allow-Origin", isAny ? "*" : origin},
          {"Access-Control-Expose-Headers", "Retry-After"},
          {"Vary", "Origin"}};
}
