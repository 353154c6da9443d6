//===- NearestName.h - What a misspelt word was to be -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_NEARESTNAME_H
#define KF_TOOLS_KF_RUN_NEARESTNAME_H

#include <span>
#include <string>
#include <string_view>

namespace kf {

/// The one of `names` that `word` was probably to be: the nearest, if at most a
/// third of its letters, or one of few, is put in, left out, changed, or
/// swapped with its neighbour, or a name that goes on where `word` ends. Empty
/// where there is none, and for words of less than three letters.
std::string_view nearestName(std::string_view word,
                             std::span<const std::string_view> names);

/// ": did you mean 'NAME'?", with `before` in front of the name; empty where
/// nothing is near.
std::string didYouMean(std::string_view word,
                       std::span<const std::string_view> names,
                       std::string_view before = {});

} // namespace kf

#endif // KF_TOOLS_KF_RUN_NEARESTNAME_H
