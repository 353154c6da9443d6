//===- OptionParser.h - Options of one command -------------------*- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table of options that a command fills, each bound to the variable that
// takes its value. `--name value`, `--name=value`, `-n value`, `-nvalue`; `--`
// ends the options. An option that is given twice takes its last value, unless
// it takes any number of them. In long names, _ is read as -. What other
// programs call an option is read, too, or answered (ForeignFlags.h).
//
// Every command has --config FILE (ConfigFile.h), and those that run models
// have --preset NAME (Presets.h). An option of the command line goes before the
// file's, and the file's before the preset's.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_OPTIONPARSER_H
#define KF_TOOLS_KF_RUN_OPTIONPARSER_H

#include "ConfigFile.h"

#include "runtime/core/Status.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kf {

struct ForeignFlag;

/// How an option is written: its long name, its letter (0 for none), and the
/// word that stands for its value in the help.
struct OptionName {
  std::string_view name;
  char letter = 0;
  std::string_view value = {};
  /// "-name value" is understood, too.
  bool oneDash = false;
};

/// A seed that differs from one run to the next.
uint64_t seedByClock();

/// The commands that there are, of which files of options may have objects.
/// Once, before the first parse().
void setCommandNames(std::vector<std::string_view> names);

/// What a preset has set, as options of the command line would: "cache-type",
/// "q8_0".
struct PresetUse {
  std::string name; ///< empty: none was asked for
  std::vector<std::pair<std::string, std::string>> options = {};
};

/// Variables that are bound must outlive the parser. One thread.
class OptionParser {
public:
  /// Whether a text may be empty, as prompts may. Elsewhere an empty one is a
  /// variable of a script that is not set, and not the option left out.
  enum class Empty { Refused, Allowed };

  /// `synopsis` is what follows `tool` in the usage line; its first word is the
  /// command.
  OptionParser(std::string_view synopsis, std::string_view about,
               std::string_view tool = "kf-run")
      : tool(tool), synopsis(synopsis), about(about) {}

  void flag(OptionName name, bool &out, std::string_view help);
  void text(OptionName name, std::string &out, std::string_view help,
            Empty empty = Empty::Refused);
  void text(OptionName name, std::optional<std::string> &out,
            std::string_view help, Empty empty = Empty::Refused);
  /// May be given any number of times.
  void texts(OptionName name, std::vector<std::string> &out,
             std::string_view help);
  /// `--name` alone gives `otherwise`; a value needs `--name=value`, but for
  /// one that ends in `suffix`, if that is not empty, and a lone '-'.
  void optionalText(OptionName name, std::string_view otherwise,
                    std::optional<std::string> &out, std::string_view help,
                    std::string_view suffix = {});
  void integer(OptionName name, int64_t &out, int64_t least, int64_t most,
               std::string_view help);
  void integer(OptionName name, std::optional<int64_t> &out, int64_t least,
               int64_t most, std::string_view help);
  /// Numbers with commas between them, added to `out`; may be given any number
  /// of times.
  void integers(OptionName name, std::vector<int64_t> &out, int64_t least,
                int64_t most, std::string_view help);
  /// Any 64-bit number without a sign, or -1: one by the clock.
  void seed(OptionName name, std::optional<uint64_t> &out,
            std::string_view help, bool *byClock = nullptr);
  /// `--json FILE`, with `-` for stdout: what is written there is `what`. The
  /// file is an output(), and no model.
  void json(std::string &out, std::string_view what);
  /// A number of bytes, as parseByteCount reads it, above 0.
  void bytes(OptionName name, uint64_t &out, std::string_view help);
  /// A finite number from `least` to `most`.
  void real(OptionName name, double &out, double least, double most,
            std::string_view help);
  void real(OptionName name, std::optional<double> &out, double least,
            double most, std::string_view help);
  /// One of `choices`.
  void choice(OptionName name, std::string &out,
              std::initializer_list<std::string_view> choices,
              std::string_view help);
  /// The next argument that is not an option; one of a text that is not
  /// required is left as it was where there is none. `option` says the same,
  /// if there is such a one.
  void positional(std::string_view name, bool required, std::string &out,
                  std::string_view help, std::string_view option = {});
  /// `--preset NAME`: options of this command, in a bundle.
  void presets();

  /// Has parse() call `check` once every argument is read; what it returns is
  /// an error about the use of the command.
  void addCheck(std::function<Status()> check);

  /// Has parse() look, once the checks have passed, whether the file `path` can
  /// be written, so that no work is lost. Empty is none, and '-' is stdout.
  void output(const std::string &path);
  void output(const std::optional<std::string> &path);

  /// Reads `arguments`. Returns nothing if the command can go on, else the
  /// exit code after printing the help (0), an error about the use of the
  /// command (2) or that an output cannot be written (1).
  std::optional<int> parse(std::span<const char *const> arguments);

  /// What a preset has set, once parse() has gone well.
  const PresetUse &presetUse() const { return preset; }

  /// An error about the use of this command, with a pointer to its help:
  /// prints it and returns 2.
  int usageError(const std::string &message) const;

private:
  using Setter = std::function<Status(std::string_view)>;
  enum class Takes { Nothing, Value, MaybeValue };
  struct Option {
    OptionName name;
    Takes takes;
    Setter set;
    std::string help;
    OptionKind kind;
    /// Of arguments of their own that MaybeValue takes; empty: none.
    std::string suffix = {};
  };
  struct Positional {
    std::string name;
    bool required;
    std::string *out;
    std::string help;
    std::string_view option;
  };
  /// An option that somebody gives.
  struct Use {
    const Option *option;
    std::string spelled; ///< for errors
    std::optional<std::string> value;
  };

  /// Of an option, as another program calls it.
  struct ForeignUse {
    std::string_view name; ///< the option's
    std::string spelled, value;
  };

  void add(OptionName name, OptionKind kind, Setter set, std::string help);
  // `set` takes a value in the range.
  void addInteger(OptionName name, std::function<void(int64_t)> set,
                  int64_t least, int64_t most, std::string_view help);
  void addReal(OptionName name, std::function<void(double)> set, double least,
               double most, std::string_view help);
  std::string command() const;
  const Option *find(std::string_view argument, std::string_view &attached,
                     bool &hasAttached) const;
  Status take(const Option &option, std::string_view spelled,
              std::span<const char *const> &rest,
              std::optional<std::string_view> attached);
  const Option *findNamed(std::string_view name) const;
  const ForeignFlag *findForeign(std::string_view spelling) const;
  Status takeForeign(std::string_view argument,
                     std::span<const char *const> &rest, bool &known);
  Status takeSame(std::string_view name, std::string_view spelled,
                  std::span<const char *const> &rest,
                  std::optional<std::string_view> attached);
  Status unexpected(std::string_view argument) const;
  Status unknown(std::string_view spelled) const;
  std::vector<std::string_view> names() const;
  Status read(std::span<const char *const> arguments, bool &help);
  // In OptionSources.cpp:
  bool isGiven(std::string_view name) const;
  Result<const Option *> findKey(const ConfigEntry &entry);
  Status addConfig(const std::vector<ConfigEntry> &entries);
  std::optional<int> useConfig();
  void usePreset();
  Status setAll();
  int printHelp() const;

  std::string tool, synopsis, about;
  std::vector<Option> options;
  std::vector<Positional> positionals;
  std::vector<std::function<Status()>> checks;
  std::vector<std::function<std::string()>> outputs; ///< their paths
  std::vector<ForeignUse> foreignUses;
  std::vector<Use> uses; ///< on the command line
  std::vector<Use> configUses, presetUses;
  /// Options that positionals have said.
  std::vector<std::string_view> givenOtherwise;
  std::string configFile, presetName; ///< of --config and --preset
  PresetUse preset;
  std::vector<std::string> notes; ///< for where the command goes on
  bool isQuiet = false;           ///< `--quiet` was given
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_OPTIONPARSER_H
