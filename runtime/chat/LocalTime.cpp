//===- LocalTime.cpp - Times without a zone -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/LocalTime.h"

#include "runtime/core/Quote.h"

#include <charconv>
#include <cstdio>
#include <tuple>

using namespace kf;

std::tm kf::localTimeNow() {
  const std::time_t seconds = std::time(nullptr);
  std::tm local = {};
  localtime_r(&seconds, &local);
  return local;
}

std::string kf::localTimeText(const std::tm &time) {
  char text[96];
  std::snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d",
                time.tm_year + 1900, time.tm_mon + 1, time.tm_mday,
                time.tm_hour, time.tm_min, time.tm_sec);
  return text;
}

Result<std::tm> kf::parseLocalTime(std::string_view text) {
  constexpr std::string_view form = "2026-11-29T20:13:11";
  std::tm time = {};
  if (text.size() == form.size())
    for (const auto &[at, size, out] :
         {std::tuple(0, 4, &time.tm_year), std::tuple(5, 2, &time.tm_mon),
          std::tuple(8, 2, &time.tm_mday), std::tuple(11, 2, &time.tm_hour),
          std::tuple(14, 2, &time.tm_min), std::tuple(17, 2, &time.tm_sec)})
      std::from_chars(text.data() + at, text.data() + at + size, *out);
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  // The days of the week and of the year follow, and what a month or a minute
  // lacks becomes another time.
  (void)timegm(&time);
  if (localTimeText(time) != text)
    return Status::error("a time as " + std::string(form) +
                         " is expected, not " + inQuotes(text));
  time.tm_isdst = -1;
  return time;
}
