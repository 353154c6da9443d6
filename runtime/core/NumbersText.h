//===- NumbersText.h - Numbers in messages ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_NUMBERSTEXT_H
#define KF_RUNTIME_CORE_NUMBERSTEXT_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// "1, 2 and 4", "1 to 24", "1 to 3, 6 and 9": numbers that increase, three
/// neighbours or more as the first and the last of them.
inline std::string numbersText(std::span<const int64_t> numbers) {
  std::vector<std::string> parts;
  for (size_t first = 0, end; first < numbers.size(); first = end) {
    for (end = first + 1;
         end < numbers.size() && numbers[end] == numbers[end - 1] + 1;)
      ++end;
    if (end - first < 3)
      end = first + 1;
    parts.push_back(
        std::to_string(numbers[first]) +
        (end - first > 1 ? " to " + std::to_string(numbers[end - 1]) : ""));
  }
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

} // namespace kf

#endif // KF_RUNTIME_CORE_NUMBERSTEXT_H
