//===- ForeignFlags.h - What users of other programs type -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Options and commands of llama.cpp, Hugging Face, vLLM and MLIR's tools that
// people try here first. One table says what becomes of each: another spelling
// of an option, nothing, or an error that says what to type instead.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_FOREIGNFLAGS_H
#define KF_TOOLS_KF_RUN_FOREIGNFLAGS_H

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace kf {

/// An option that is none of kf-run's own.
struct ForeignFlag {
  enum Meaning {
    Same,     ///< another spelling of the option that `text` names
    Already,  ///< what it asks for is what happens anyway
    NoEffect, ///< goes on with a note: `text`
    Refused   ///< an error: `text`
  };
  /// What follows it, where it is no spelling of an option.
  enum Takes {
    Nothing,
    Value,
    Switch ///< perhaps on, off, auto, true, false or a number
  };

  std::string_view spellings; ///< with blanks between them
  std::string_view commands;  ///< that it is of, likewise; empty: all
  Meaning meaning;
  Takes takes;
  std::string_view text;
  std::string_view off = {}; ///< of Refused: values that ask for nothing,
                             ///< <0 for all numbers below 0
};

/// Whether `word` can be the value of a Switch.
bool isSwitchValue(std::string_view word);

/// Whether `flag` is an error although its value is `value`, if it is known.
bool isRefused(const ForeignFlag &flag, std::optional<std::string_view> value);

/// What `spelling` ("-ngl", "--ctx-size") means to `command`; null where nobody
/// knows it. Of Same, one whose option `hasOption(text)`.
const ForeignFlag *
findForeignFlag(std::string_view spelling, std::string_view command,
                const std::function<bool(std::string_view)> &hasOption);

/// The long names, without their dashes, of what findForeignFlag() finds and
/// does not refuse.
std::vector<std::string_view>
foreignNames(std::string_view command,
             const std::function<bool(std::string_view)> &hasOption);

/// What to type in place of `word`, which is no command; empty where nobody
/// knows it.
std::string_view adviceForCommand(std::string_view word);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_FOREIGNFLAGS_H
