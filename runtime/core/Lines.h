//===- Lines.h - Lines that people read -------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_LINES_H
#define KF_RUNTIME_CORE_LINES_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace kf {

/// `text` as one line: line breaks and what surrounds them become "; ".
inline std::string oneLine(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  std::string line;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t first = part.find_first_not_of(blanks);
    if (first == std::string_view::npos)
      continue;
    part = part.substr(first, part.find_last_not_of(blanks) - first + 1);
    if (!line.empty())
      line += "; ";
    for (char c : part)
      line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return line;
}

/// A path in single quotes, in full.
inline std::string quotePath(std::string_view path) {
  return "'" + std::string(path) + "'";
}

/// A number of bytes as people read it: "512 B", "1.50 KiB", "23.4 GiB".
inline std::string bytesText(uint64_t bytes) {
  constexpr const char *units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024; value /= 1024)
    ++unit;
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.*f %s", value < 10 ? 2 : 1, value,
                units[unit]);
  return buffer;
}

} // namespace kf

#endif // KF_RUNTIME_CORE_LINES_H
