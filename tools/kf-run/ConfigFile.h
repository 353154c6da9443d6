//===- ConfigFile.h - Options from a file -----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `--config FILE` reads: a JSON object whose keys are long options, and
// objects named as commands with what is of one command alone, which goes
// before the rest.
//
//   {"threads": 2, "temp": 0.7, "stop": ["\n", "END"], "no-cache": true,
//    "serve": {"port": 9000}}
//
// The file is nobody's in particular: its size, keys and values are checked
// here, and what an option takes by the option, as on the command line.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_CONFIGFILE_H
#define KF_TOOLS_KF_RUN_CONFIGFILE_H

#include "runtime/core/Json.h"
#include "runtime/core/Status.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// What values of an option are.
enum class OptionKind {
  Flag,      ///< true or false
  Text,      ///< a text
  Texts,     ///< a text, or a list of them
  MaybeText, ///< a text or a number, true for the option without a value, false
  Integer,
  Integers, ///< an integer, or a list of them
  Real,     ///< a number
  Bytes     ///< a number of bytes: an integer, or a text as "2G"
};

/// A key and its value.
struct ConfigEntry {
  std::string key;  ///< as it is written; "serve.port" of an object's
  std::string name; ///< the option that it names, with '-' for '_'
  JsonDocument value;
};

/// What a file says of one command.
struct ConfigFile {
  std::vector<ConfigEntry> common; ///< of all commands
  std::vector<ConfigEntry> own;    ///< of this one alone

  /// Reads `text` for `command`; objects have names of `commands`. Errors name
  /// the key, and null counts as absent.
  static Result<ConfigFile> parse(std::string_view text,
                                  std::string_view command,
                                  std::span<const std::string_view> commands);
  /// The same of the file `path`; errors name it.
  static Result<ConfigFile> read(const std::string &path,
                                 std::string_view command,
                                 std::span<const std::string_view> commands);
};

/// The values that an option is given, one after another, as the command line
/// would have them; nothing in place of one for an option without a value. None
/// for false. The error of a value of another kind names the key.
Result<std::vector<std::optional<std::string>>>
optionValues(const ConfigEntry &entry, OptionKind kind);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_CONFIGFILE_H
