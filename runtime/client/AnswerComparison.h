//===- AnswerComparison.h - Answers side by side -------------- -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CLIENT_ANSWERCOMPARISON_H
#define KF_RUNTIME_CLIENT_ANSWERCOMPARISON_H

#include <cstddef>
#include <string_view>
#include <vector>

namespace kf {

/// How many characters (of UTF-8) two texts have in common at their begin.
size_t commonCharacters(std::string_view a, std::string_view b);

/// How many characters a text has.
size_t countCharacters(std::string_view text);

/// The least of `samples`, in any order and at least one, that at least the
/// `share` (above 0, at most 1) of them does not exceed: 0.5 is the median.
double quantileOf(std::vector<double> samples, double share);

} // namespace kf

#endif // KF_RUNTIME_CLIENT_ANSWERCOMPARISON_H
