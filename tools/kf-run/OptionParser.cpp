//===- OptionParser.cpp - Options of one command --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OptionParser.h"

#include "ForeignFlags.h"
#include "NearestName.h"
#include "Report.h"

#include "runtime/core/ByteCount.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/io/Gguf.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>

using namespace kf;

namespace {

/// Columns of the help: where descriptions start, and where lines end.
constexpr size_t kHelpColumn = 26;
constexpr size_t kHelpWidth = 79;

/// Reads all of `text` as a T.
template <typename T> std::optional<T> parseNumber(std::string_view text) {
  T value;
  const char *last = text.data() + text.size();
  auto [end, code] = std::from_chars(text.data(), last, value);
  if (code != std::errc() || end != last)
    return std::nullopt;
  return value;
}

Status notA(const std::string &expected, std::string_view found) {
  return Status::error("takes " + expected + ", not " + inQuotes(found));
}

Status refuseEmpty(std::string_view value) {
  return value.empty() ? Status::error("is empty") : Status();
}

/// `text` broken into lines that start at column `indent`, where the first one
/// is already.
std::string brokenAt(size_t indent, std::string_view text) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    if (column > indent && column + 1 + space > kHelpWidth) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, space);
    column += space;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out + '\n';
}

std::string helpEntry(const std::string &head, std::string_view text) {
  std::string out = "  " + head;
  size_t column = out.size();
  if (column + 1 >= kHelpColumn) {
    out += '\n';
    column = 0;
  }
  out.append(kHelpColumn - column, ' ');
  return out + brokenAt(kHelpColumn, text);
}

/// "4096", or "1e+06": as short as it gets.
std::string shortNumber(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%g", value);
  return buffer;
}

} // namespace

uint64_t kf::seedByClock() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

void OptionParser::add(OptionName name, OptionKind kind, Setter set,
                       std::string help) {
  const Takes takes = kind == OptionKind::Flag        ? Takes::Nothing
                      : kind == OptionKind::MaybeText ? Takes::MaybeValue
                                                      : Takes::Value;
  options.push_back({name, takes, std::move(set), std::move(help), kind});
}

void OptionParser::flag(OptionName name, bool &out, std::string_view help) {
  add(
      name, OptionKind::Flag,
      [&out](std::string_view) {
        out = true;
        return Status();
      },
      std::string(help));
}

void OptionParser::text(OptionName name, std::string &out,
                        std::string_view help, Empty empty) {
  add(
      name, OptionKind::Text,
      [&out, empty](std::string_view value) {
        out = value;
        return empty == Empty::Allowed ? Status() : refuseEmpty(value);
      },
      std::string(help));
}

void OptionParser::text(OptionName name, std::optional<std::string> &out,
                        std::string_view help, Empty empty) {
  add(
      name, OptionKind::Text,
      [&out, empty](std::string_view value) {
        out = value;
        return empty == Empty::Allowed ? Status() : refuseEmpty(value);
      },
      std::string(help));
}

void OptionParser::texts(OptionName name, std::vector<std::string> &out,
                         std::string_view help) {
  add(
      name, OptionKind::Texts,
      [&out](std::string_view value) {
        out.emplace_back(value);
        return refuseEmpty(value);
      },
      std::string(help));
}

void OptionParser::optionalText(OptionName name, std::string_view otherwise,
                                std::optional<std::string> &out,
                                std::string_view help,
                                std::string_view suffix) {
  add(
      name, OptionKind::MaybeText,
      [&out, otherwise](std::string_view value) {
        const bool given = value.data() != nullptr;
        out = given ? value : otherwise;
        return given ? refuseEmpty(value) : Status();
      },
      std::string(help));
  options.back().suffix = suffix;
}

void OptionParser::addInteger(OptionName name, std::function<void(int64_t)> set,
                              int64_t least, int64_t most,
                              std::string_view help) {
  add(
      name, OptionKind::Integer,
      [set = std::move(set), least, most](std::string_view text) {
        std::optional<int64_t> value = parseNumber<int64_t>(text);
        if (!value || *value < least || *value > most)
          return notA("an integer from " + std::to_string(least) + " to " +
                          std::to_string(most),
                      text);
        set(*value);
        return Status();
      },
      std::string(help));
}

void OptionParser::integer(OptionName name, int64_t &out, int64_t least,
                           int64_t most, std::string_view help) {
  addInteger(name, [&out](int64_t value) { out = value; }, least, most, help);
}

void OptionParser::integer(OptionName name, std::optional<int64_t> &out,
                           int64_t least, int64_t most, std::string_view help) {
  addInteger(name, [&out](int64_t value) { out = value; }, least, most, help);
}

void OptionParser::integers(OptionName name, std::vector<int64_t> &out,
                            int64_t least, int64_t most,
                            std::string_view help) {
  add(
      name, OptionKind::Integers,
      [&out, least, most](std::string_view text) {
        for (size_t begin = 0; begin <= text.size();) {
          const size_t end = std::min(text.find(',', begin), text.size());
          const std::string_view part = text.substr(begin, end - begin);
          std::optional<int64_t> value = parseNumber<int64_t>(part);
          if (!value || *value < least || *value > most)
            return notA("integers from " + std::to_string(least) + " to " +
                            std::to_string(most) + " with commas between them",
                        text);
          out.push_back(*value);
          begin = end + 1;
        }
        return Status();
      },
      std::string(help));
}

void OptionParser::seed(OptionName name, std::optional<uint64_t> &out,
                        std::string_view help, bool *byClock) {
  add(
      name, OptionKind::Integer,
      [&out, byClock](std::string_view text) {
        if (byClock)
          *byClock = text == "-1";
        std::optional<uint64_t> value =
            text == "-1" ? seedByClock() : parseNumber<uint64_t>(text);
        if (!value)
          return notA("an integer from 0 to 18446744073709551615, or -1", text);
        out = *value;
        return Status();
      },
      std::string(help));
}

void OptionParser::json(std::string &out, std::string_view what) {
  add(
      {"json", 0, "FILE"}, OptionKind::Text,
      [&out](std::string_view value) {
        out = value;
        if (value.starts_with('-') && value != "-")
          return Status::error("needs a value, a file's name or - for stdout, "
                               "not " +
                               inQuotes(value));
        return refuseEmpty(value);
      },
      "writes JSON to FILE, or to stdout where it is -: " + std::string(what));
  // A model behind --json is one to read, whatever the option's meaning.
  addCheck([&out] {
    if (out.empty() || out == "-")
      return Status();
    std::error_code none;
    if (!std::filesystem::is_regular_file(out, none))
      return Status();
    const Result<MappedFile> file = MappedFile::open(out);
    if (!file.ok() || !Gguf::recognize(file->bytes()))
      return Status();
    return Status::error("--json would replace the model " + quotePath(out) +
                         "; name another file, or - for stdout");
  });
  output(out);
}

void OptionParser::bytes(OptionName name, uint64_t &out,
                         std::string_view help) {
  add(
      name, OptionKind::Bytes,
      [&out](std::string_view text) {
        std::optional<uint64_t> value = parseByteCount(text);
        if (!value || *value == 0)
          return notA(std::string(kByteCountText), text);
        out = *value;
        return Status();
      },
      std::string(help));
}

void OptionParser::addReal(OptionName name, std::function<void(double)> set,
                           double least, double most, std::string_view help) {
  add(
      name, OptionKind::Real,
      [set = std::move(set), least, most](std::string_view text) {
        std::optional<double> value = parseNumber<double>(text);
        if (!value || !(*value >= least && *value <= most))
          return notA("a number from " + shortNumber(least) + " to " +
                          shortNumber(most),
                      text);
        set(*value);
        return Status();
      },
      std::string(help));
}

void OptionParser::real(OptionName name, double &out, double least, double most,
                        std::string_view help) {
  addReal(name, [&out](double value) { out = value; }, least, most, help);
}

void OptionParser::real(OptionName name, std::optional<double> &out,
                        double least, double most, std::string_view help) {
  addReal(name, [&out](double value) { out = value; }, least, most, help);
}

void OptionParser::choice(OptionName name, std::string &out,
                          std::initializer_list<std::string_view> choices,
                          std::string_view help) {
  std::vector<std::string_view> known(choices);
  std::string listed;
  for (std::string_view choice : known)
    listed += (listed.empty() ? "" : ", ") + std::string(choice);
  add(
      name, OptionKind::Text,
      [&out, known, listed](std::string_view text) {
        if (std::ranges::find(known, text) == known.end())
          return notA("one of " + listed, text);
        out = text;
        return Status();
      },
      std::string(help));
}

void OptionParser::positional(std::string_view name, bool required,
                              std::string &out, std::string_view help,
                              std::string_view option) {
  positionals.push_back(
      {std::string(name), required, &out, std::string(help), option});
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// The option that `argument` ("--name", "--name=value", "-n", "-nvalue")
/// spells, or null; the value that it carries goes to `attached`.
const OptionParser::Option *OptionParser::find(std::string_view argument,
                                               std::string_view &attached,
                                               bool &hasAttached) const {
  hasAttached = false;
  if (argument.starts_with("--")) {
    std::string_view name = argument.substr(2);
    if (size_t equals = name.find('='); equals != std::string_view::npos) {
      attached = name.substr(equals + 1);
      hasAttached = true;
      name = name.substr(0, equals);
    }
    for (const Option &option : options)
      if (option.name.name == name)
        return &option;
    return nullptr;
  }
  for (const Option &option : options)
    if (option.name.oneDash && option.name.name == argument.substr(1))
      return &option;
  for (const Option &option : options)
    if (option.name.letter && option.name.letter == argument[1]) {
      attached = argument.substr(2);
      hasAttached = !attached.empty();
      return &option;
    }
  return nullptr;
}

/// Adds a use of `option` to `uses`, with its value.
Status OptionParser::take(const Option &option, std::string_view spelled,
                          std::span<const char *const> &rest,
                          std::optional<std::string_view> attached) {
  const std::string name(spelled);
  if (option.takes == Takes::Nothing && attached)
    return Status::error(name + " takes no value");
  if (option.takes == Takes::Value && !attached) {
    if (rest.empty())
      return Status::error(name + " needs a value");
    attached = rest.front();
    rest = rest.subspan(1);
  }
  if (option.takes == Takes::MaybeValue && !attached && !rest.empty()) {
    // A lone '-' can be nothing but a value.
    const std::string_view next = rest.front();
    if (next == "-" || (!option.suffix.empty() && !next.starts_with('-') &&
                        next.ends_with(option.suffix))) {
      attached = next;
      rest = rest.subspan(1);
    }
  }
  uses.push_back(
      {&option, name,
       attached ? std::optional<std::string>(*attached) : std::nullopt});
  return Status();
}

Status OptionParser::read(std::span<const char *const> rest, bool &help) {
  size_t given = 0;
  bool optionsEnded = false;
  while (!rest.empty()) {
    const std::string_view argument = rest.front();
    rest = rest.subspan(1);
    if (!optionsEnded && argument == "--") {
      optionsEnded = true;
      continue;
    }
    if (optionsEnded || argument.size() < 2 || argument[0] != '-') {
      if (given == positionals.size())
        return unexpected(argument);
      const Positional &positional = positionals[given++];
      if (argument.empty())
        return Status::error(positional.name + " is empty");
      *positional.out = argument;
      if (!positional.option.empty())
        givenOtherwise.push_back(positional.option);
      continue;
    }
    if (argument == "--help" || argument == "-h") {
      help = true;
      return Status();
    }
    std::string_view attached;
    bool hasAttached;
    const Option *option = find(argument, attached, hasAttached);
    // "-ngl" is no "-n gl".
    const bool isLetters = option && hasAttached && !argument.starts_with("--");
    if (!option || isLetters) {
      bool known = false;
      KF_RETURN_IF_ERROR(takeForeign(argument, rest, known));
      if (known)
        continue;
    }
    const std::string_view name = argument.substr(0, argument.find('='));
    // "-temp" is "--temp", and no "-t emp".
    if (!option || (isLetters && findNamed(name.substr(1))))
      return unknown(name);
    std::string_view spelled = argument.starts_with("--") ? name
                               : option->name.oneDash ? argument
                                                      : argument.substr(0, 2);
    KF_RETURN_IF_ERROR(
        take(*option, spelled, rest,
             hasAttached ? std::optional(attached) : std::nullopt));
  }
  if (given < positionals.size() && positionals[given].required)
    return Status::error(positionals[given].name + " is missing");
  return Status();
}

/// The error of an argument too many.
Status OptionParser::unexpected(std::string_view argument) const {
  auto takesText = [&](std::string_view name) {
    const Option *option = findNamed(name);
    return option && option->kind == OptionKind::Text;
  };
  std::string_view advice;
  if (takesText("prompt"))
    advice = "; a prompt is given as -p TEXT";
  else if (takesText("file"))
    advice = "; a file is given as --file FILE";
  return Status::error("unexpected argument " + inQuotes(argument) +
                       std::string(advice));
}

/// The error of an option that nobody knows.
Status OptionParser::unknown(std::string_view spelled) const {
  std::string word(
      spelled.substr(std::min(spelled.find_first_not_of('-'), spelled.size())));
  std::ranges::replace(word, '_', '-');
  std::vector<std::string_view> known = names();
  const std::vector<std::string_view> foreign =
      foreignNames(command(), [this](std::string_view name) {
        return findNamed(name) != nullptr;
      });
  known.insert(known.end(), foreign.begin(), foreign.end());
  return Status::error("unknown option " + inQuotes(spelled) +
                       didYouMean(word, known, "--"));
}

std::vector<std::string_view> OptionParser::names() const {
  std::vector<std::string_view> all;
  for (const Option &option : options)
    all.push_back(option.name.name);
  return all;
}

void OptionParser::addCheck(std::function<Status()> check) {
  checks.push_back(std::move(check));
}

void OptionParser::output(const std::string &path) {
  outputs.push_back([&path] { return path; });
}

void OptionParser::output(const std::optional<std::string> &path) {
  outputs.push_back([&path] { return path.value_or(""); });
}

const OptionParser::Option *
OptionParser::findNamed(std::string_view name) const {
  const auto found = std::ranges::find(
      options, name, [](const Option &option) { return option.name.name; });
  return found == options.end() ? nullptr : &*found;
}

/// Takes the option `name` as another program spells it.
Status OptionParser::takeSame(std::string_view name, std::string_view spelled,
                              std::span<const char *const> &rest,
                              std::optional<std::string_view> attached) {
  const Option &option = *findNamed(name);
  if (option.takes == Takes::Value && !attached && !rest.empty()) {
    attached = rest.front();
    rest = rest.subspan(1);
  }
  // Two options there may be one here.
  for (const ForeignUse &other : foreignUses)
    if (other.name == name && other.spelled != spelled &&
        other.value != attached.value_or(""))
      return Status::error(other.spelled + " " + other.value + " and " +
                           std::string(spelled) + " " +
                           std::string(attached.value_or("")) + " are both --" +
                           std::string(name) + " here; give them one value");
  foreignUses.push_back({option.name.name, std::string(spelled),
                         std::string(attached.value_or(""))});
  return take(option, spelled, rest, attached);
}

const ForeignFlag *OptionParser::findForeign(std::string_view spelling) const {
  return findForeignFlag(spelling, command(), [this](std::string_view name) {
    return findNamed(name) != nullptr;
  });
}

/// Does what an option of another program asks for, if `argument` is one.
Status OptionParser::takeForeign(std::string_view argument,
                                 std::span<const char *const> &rest,
                                 bool &known) {
  const size_t equals = std::min(argument.find('='), argument.size());
  std::string spelling(argument.substr(0, equals));
  std::optional<std::string_view> attached;
  if (equals < argument.size())
    attached = argument.substr(equals + 1);
  if (spelling.starts_with("--"))
    std::ranges::replace(spelling, '_', '-');
  // An option of this command, but for the underscores.
  const Option *own =
      spelling.starts_with("--") ? findNamed(spelling.substr(2)) : nullptr;
  known = own != nullptr;
  if (own)
    return take(*own, argument.substr(0, equals), rest, attached);
  const ForeignFlag *flag = findForeign(spelling);
  if (!flag)
    return Status();
  known = true;
  if (flag->meaning == ForeignFlag::Same)
    return takeSame(flag->text, argument.substr(0, equals), rest, attached);
  const std::string said = spelling + " " + std::string(flag->text);
  std::optional<std::string_view> value = attached;
  if (!value && flag->takes == ForeignFlag::Value && !rest.empty())
    value = rest.front();
  if (isRefused(*flag, value))
    return Status::error(said);
  const bool takesNext =
      !attached && !rest.empty() &&
      (flag->takes == ForeignFlag::Value ||
       (flag->takes == ForeignFlag::Switch && isSwitchValue(rest.front())));
  if (!attached && rest.empty() && flag->takes == ForeignFlag::Value)
    return Status::error(spelling + " needs a value");
  if (takesNext)
    rest = rest.subspan(1);
  if (flag->meaning == ForeignFlag::NoEffect)
    notes.push_back(said);
  return Status();
}

std::optional<int> OptionParser::parse(std::span<const char *const> arguments) {
  text({"config", 0, "FILE"}, configFile,
       "reads options from FILE, a JSON object with their long names as keys; "
       "those of the command line go before it");
  bool help = false;
  if (Status status = read(arguments, help); !status.ok())
    return usageError(status.message());
  if (help)
    return printHelp();
  if (std::optional<int> code = useConfig())
    return code;
  usePreset();
  if (Status status = setAll(); !status.ok())
    return usageError(status.message());
  for (const std::function<Status()> &check : checks)
    if (Status status = check(); !status.ok())
      return usageError(status.message());
  for (const std::function<std::string()> &output : outputs)
    if (Status status = checkOutput(output()); !status.ok())
      return report(status);
  // Once, however many commands read the same arguments.
  static std::set<std::string> told;
  for (const std::string &note : notes)
    if (!isQuiet && told.insert(note).second)
      printNote(note);
  return std::nullopt;
}

std::string OptionParser::command() const {
  return synopsis.substr(0, synopsis.find(' '));
}

int OptionParser::usageError(const std::string &message) const {
  printError(message.ends_with('?')
                 ? message
                 : message + "; see '" + tool + " " + command() + " --help'");
  return ExitUsage;
}

/// Returns the exit code.
int OptionParser::printHelp() const {
  std::string out =
      "usage: " + tool + " " + synopsis + "\n\n" + brokenAt(0, about);
  if (!positionals.empty())
    out += '\n';
  for (const Positional &positional : positionals)
    out += helpEntry(positional.name, positional.help);
  out += "\noptions:\n";
  for (const Option &option : options) {
    std::string head =
        option.name.letter    ? std::string("-") + option.name.letter + ", "
        : option.name.oneDash ? "-" + std::string(option.name.name) + ", "
                              : std::string();
    head += "--" + std::string(option.name.name);
    if (option.takes == Takes::Value)
      head += " " + std::string(option.name.value);
    if (option.takes == Takes::MaybeValue)
      head += "[=" + std::string(option.name.value) + "]";
    out += helpEntry(head, option.help);
  }
  out += helpEntry("-h, --help", "print this text");
  return report(writeStdout(out));
}
