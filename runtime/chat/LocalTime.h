//===- LocalTime.h - Times without a zone -----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CHAT_LOCALTIME_H
#define KF_RUNTIME_CHAT_LOCALTIME_H

#include "runtime/core/Status.h"

#include <ctime>
#include <string>
#include <string_view>

namespace kf {

/// What clocks here say, in whole seconds, as strftime_now() of a template
/// tells it.
std::tm localTimeNow();

/// "2026-11-29T20:13:11": all that a template is told of `time`, whose year has
/// four digits.
std::string localTimeText(const std::tm &time);

/// The time of such a text. Error: another one, or a time that there is not.
Result<std::tm> parseLocalTime(std::string_view text);

} // namespace kf

#endif // KF_RUNTIME_CHAT_LOCALTIME_H
