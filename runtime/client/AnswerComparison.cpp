//===- AnswerComparison.cpp - Answers side by side ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/AnswerComparison.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <cmath>

using namespace kf;

size_t kf::countCharacters(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count)
    text.remove_prefix(stepUtf8(text).length);
  return count;
}

size_t kf::commonCharacters(std::string_view a, std::string_view b) {
  size_t count = 0;
  while (!a.empty() && !b.empty()) {
    const size_t length = stepUtf8(a).length;
    if (a.substr(0, length) != b.substr(0, length))
      break;
    a.remove_prefix(length);
    b.remove_prefix(length);
    ++count;
  }
  return count;
}

double kf::quantileOf(std::vector<double> samples, double share) {
  const double rank =
      std::ceil(share * static_cast<double>(samples.size())) - 1;
  const auto at =
      samples.begin() + static_cast<std::ptrdiff_t>(std::max(rank, 0.0));
  std::ranges::nth_element(samples, at);
  return *at;
}
