//===- Filters.cpp - Filters of texts and numbers -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Characters.h"
#include "runtime/chat/Interpreter.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

using namespace kf;
using namespace kf::jinja;

namespace {

using Run = Interpreter;
using Args = Arguments;

/// The argument of a filter that counts; fails unless it is small and not
/// negative.
size_t countOf(std::string_view what, int64_t value) {
  if (value < 0)
    return 0;
  if (value > int64_t(1) << 24)
    fail(std::string(what) + " of " + std::to_string(value) + " is too much");
  return static_cast<size_t>(value);
}

/// Text with the ASCII forms of Python's int() and float() taken out of it.
std::string numeral(std::string_view text) {
  std::string digits(strip(text, nullptr, true, true));
  for (size_t i = 1; i + 1 < digits.size(); ++i)
    if (digits[i] == '_' &&
        std::isalnum(static_cast<unsigned char>(digits[i - 1])) &&
        std::isalnum(static_cast<unsigned char>(digits[i + 1])))
      digits.erase(i, 1);
  return digits;
}

bool parseFloat(std::string_view text, double &value) {
  std::string digits = numeral(text);
  if (digits.starts_with('+') && !digits.starts_with("+-"))
    digits.erase(0, 1);
  const char *end = digits.data() + digits.size();
  const auto [stop, code] = std::from_chars(digits.data(), end, value);
  if (stop != end || digits.empty() || digits.find('(') != std::string::npos)
    return false;
  if (code == std::errc::result_out_of_range)
    value = std::strtod(digits.c_str(), nullptr);
  return code != std::errc::invalid_argument;
}

bool parseInt(std::string_view text, int64_t base, int64_t &value) {
  std::string digits = numeral(text);
  bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+'))
    digits.erase(0, 1);
  const std::string prefix = toLower(digits.substr(0, 2));
  for (auto [mark, of] : {std::pair("0x", 16), {"0o", 8}, {"0b", 2}})
    if (prefix == mark && (base == of || base == 0)) {
      digits.erase(0, 2);
      base = of;
    }
  if (base == 0)
    base = 10;
  if (base < 2 || base > 36)
    fail("int() base must be >= 2 and <= 36, or 0");
  if (digits.empty() || digits[0] == '-')
    return false;
  if (negative)
    digits.insert(0, "-");
  const char *end = digits.data() + digits.size();
  const auto [stop, code] =
      std::from_chars(digits.data(), end, value, static_cast<int>(base));
  if (stop == end && code == std::errc::result_out_of_range)
    fail("a number is too large");
  return stop == end && code == std::errc();
}

/// Truncates to an int; nothing for what Python raises OverflowError or
/// ValueError about.
bool truncate(double real, int64_t &value) {
  if (!std::isfinite(real))
    return false;
  if (std::abs(real) >= 9.2e18)
    fail("a number is too large");
  value = static_cast<int64_t>(real);
  return true;
}

Value toIntFilter(Run &, const Value &input, const Args &arguments) {
  Bound bound("int", arguments, {"default", "base"});
  requireDefined(input);
  const Value otherwise = bound[0] ? *bound[0] : Value(int64_t(0));
  int64_t value = 0;
  double real = 0;
  if (input.isInt())
    return Value(input.integer());
  if (input.is(Kind::Float))
    return truncate(input.real(), value) ? Value(value) : otherwise;
  if (!input.isString())
    return otherwise;
  if (parseInt(input.text(), bound.integer(1, 10), value))
    return Value(value);
  if (parseFloat(input.text(), real) && truncate(real, value))
    return Value(value);
  return otherwise;
}

Value toFloatFilter(Run &, const Value &input, const Args &arguments) {
  Bound bound("float", arguments, {"default"});
  requireDefined(input);
  double value = 0;
  if (input.isNumber())
    return Value(input.real());
  if (input.isString() && parseFloat(input.text(), value))
    return Value(value);
  return bound[0] ? *bound[0] : Value(0.0);
}

Value absolute(Run &run, const Value &input, const Args &arguments) {
  Bound bound("abs", arguments, {});
  requireDefined(input);
  if (input.is(Kind::Float))
    return Value(std::abs(input.real()));
  if (!input.isInt())
    fail("bad operand type for abs(): '" + typeName(input) + "'");
  return input.integer() < 0
             ? run.binary("-", Value(int64_t(0)), Value(input.integer()))
             : Value(input.integer());
}

Value roundFilter(Run &, const Value &input, const Args &arguments) {
  Bound bound("round", arguments, {"precision", "method"});
  requireDefined(input);
  const std::string method = bound.text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor")
    fail("round's method must be common, ceil or floor");
  if (!input.isNumber())
    fail("round takes a number, not " + typeName(input));
  const int64_t precision = bound.integer(0, 0);
  if (precision < -300 || precision > 300)
    fail("round to " + std::to_string(precision) + " digits is not supported");
  if (method == "common") {
    if (input.isInt()) {
      if (precision < 0)
        fail("round of an integer to tens is not supported");
      return Value(input.integer());
    }
    if (!std::isfinite(input.real()))
      return input;
    // Python rounds the decimal form of the exact value, half to even.
    char buffer[700];
    if (precision >= 0) {
      const int length =
          std::snprintf(buffer, sizeof(buffer), "%.*f",
                        static_cast<int>(precision), input.real());
      double value = 0;
      std::from_chars(buffer, buffer + length, value);
      return Value(value);
    }
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    return Value(std::nearbyint(input.real() / scale) * scale);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = input.real() * scale;
  if (!std::isfinite(scaled))
    fail("a number is too large");
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) /
               scale);
}

template <std::string (*function)(std::string_view)>
Value mapText(Run &run, const Value &input, const Args &arguments) {
  Bound bound("a filter of case", arguments, {});
  const std::string text = run.str(input);
  run.budget.steps(text.size() / 8);
  return run.text(function(text));
}

/// do_title: words begin after white space and some punctuation.
std::string titleWords(std::string_view text) {
  std::string result;
  size_t begin = 0;
  auto close = [&](size_t end) {
    const std::vector<Character> word =
        charactersOf(text.substr(begin, end - begin));
    if (!word.empty())
      result += toUpper(word[0].bytes) +
                toLower(text.substr(begin + word[0].bytes.size(),
                                    end - begin - word[0].bytes.size()));
    begin = end;
  };
  bool between = false;
  for (const Character &c : charactersOf(text)) {
    const auto at = static_cast<size_t>(c.bytes.data() - text.data());
    const bool splits = isSpace(c.code) || c.code == '-' || c.code == '(' ||
                        c.code == '{' || c.code == '[' || c.code == '<';
    if (splits != between)
      close(at);
    between = splits;
  }
  close(text.size());
  return result;
}

Value trim(Run &run, const Value &input, const Args &arguments) {
  Bound bound("trim", arguments, {"chars"});
  const std::string text = run.str(input);
  run.budget.steps(text.size() / 64);
  if (!bound[0] || bound[0]->isNone())
    return run.text(std::string(strip(text, nullptr, true, true)));
  const std::string chars = bound.text(0, "");
  run.budget.steps(chars.size());
  const std::string_view view = chars;
  return run.text(std::string(strip(text, &view, true, true)));
}

Value toString(Run &run, const Value &input, const Args &arguments) {
  Bound bound("string", arguments, {});
  return run.text(run.str(input));
}

Value escape(Run &run, const Value &input, const Args &arguments) {
  Bound bound("escape", arguments, {});
  std::string result;
  for (char c : run.str(input)) {
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '\'':
      result += "&#39;";
      break;
    case '"':
      result += "&#34;";
      break;
    default:
      result += c;
    }
  }
  return run.text(std::move(result));
}

Value replace(Run &run, const Value &input, const Args &arguments) {
  Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  Args rest;
  rest.positional = {run.text(run.str(*bound[0])),
                     run.text(run.str(*bound[1]))};
  if (bound[2] && !bound[2]->isNone())
    rest.positional.push_back(*bound[2]);
  return callMethod(run, run.text(run.str(input)), "replace", rest);
}

Value indent(Run &run, const Value &input, const Args &arguments) {
  Bound bound("indent", arguments, {"width", "first", "blank"});
  requireDefined(input);
  if (!input.isString())
    fail("indent takes a string, not " + typeName(input));
  std::string margin(4, ' ');
  if (bound[0] && bound[0]->isString())
    margin = bound[0]->text();
  else if (bound[0])
    margin.assign(countOf("an indent", bound.integer(0, 4)), ' ');
  const bool blank = bound.flag(2);
  std::string result = bound.flag(1) ? margin : "";
  const std::string text = input.text() + "\n";
  run.budget.steps(text.size() / 16);
  bool first = true;
  for (std::string_view line : splitLines(text, false)) {
    const size_t before = result.size();
    run.budget.text(before + 1 + margin.size() + line.size(), before);
    if (!first)
      result += '\n';
    if (!first && (blank || !line.empty()))
      result += margin;
    result += line;
    first = false;
  }
  return run.text(std::move(result));
}

Value center(Run &run, const Value &input, const Args &arguments) {
  Bound bound("center", arguments, {"width"});
  const std::string text = run.str(input);
  const size_t width = countOf("a width", bound.integer(0, 80));
  const size_t length = countCharacters(text);
  if (width <= length)
    return run.text(text);
  const size_t margin = width - length;
  const size_t left = margin / 2 + (margin & width & 1);
  return run.text(std::string(left, ' ') + text +
                  std::string(margin - left, ' '));
}

Value truncateText(Run &run, const Value &input, const Args &arguments) {
  Bound bound("truncate", arguments, {"length", "killwords", "end", "leeway"});
  requireDefined(input);
  if (!input.isString())
    fail("truncate takes a string, not " + typeName(input));
  const size_t length = countOf("a length", bound.integer(0, 255));
  const size_t leeway = countOf("a leeway", bound.integer(3, 5));
  const std::string end = bound.text(2, "...");
  run.budget.steps(input.text().size() / 16);
  const std::vector<Character> characters = charactersOf(input.text());
  const size_t endLength = countCharacters(end);
  if (length < endLength)
    fail("truncate's length is less than that of its end");
  if (characters.size() <= length + leeway)
    return input;
  std::string result;
  for (size_t i = 0; i < length - endLength; ++i)
    result += characters[i].bytes;
  if (!bound.flag(1))
    result = result.substr(0, std::min(result.rfind(' '), result.size()));
  return run.text(result + end);
}

Value wordCount(Run &run, const Value &input, const Args &arguments) {
  Bound bound("wordcount", arguments, {});
  int64_t count = 0;
  bool inside = false;
  for (const Character &c : charactersOf(run.str(input))) {
    const bool word =
        c.code == '_' || isAlphabetic(c.code) || isNumeric(c.code);
    count += word && !inside;
    inside = word;
  }
  return Value(count);
}

Value format(Run &run, const Value &input, const Args &arguments) {
  if (!arguments.keywords.empty() && !arguments.positional.empty())
    fail("format takes positional or keyword arguments, not both");
  if (arguments.keywords.empty())
    return run.text(formatPercent(
        run, run.str(input),
        makeSequence(Kind::Tuple, arguments.positional, run.budget)));
  std::vector<std::pair<Value, Value>> entries;
  for (const auto &[name, value] : arguments.keywords)
    entries.emplace_back(run.text(name), value);
  return run.text(formatPercent(run, run.str(input),
                                makeDict(std::move(entries), run.budget)));
}

Value tojson(Run &run, const Value &input, const Args &arguments) {
  Bound bound("tojson", arguments,
              {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = bound.flag(0);
  style.sortKeys = bound.flag(3);
  if (bound[1] && !bound[1]->isNone()) {
    style.indented = true;
    style.itemSeparator = ",";
    style.indent =
        bound[1]->isString()
            ? bound[1]->text()
            : std::string(countOf("an indent", bound.integer(1, 0)), ' ');
  }
  if (bound[2] && !bound[2]->isNone()) {
    const std::vector<Value> separators = iterate(*bound[2], run.budget);
    if (separators.size() != 2 || !separators[0].isString() ||
        !separators[1].isString())
      fail("tojson's separators are a pair of strings");
    style.itemSeparator = separators[0].text();
    style.keySeparator = separators[1].text();
  }
  return run.text(toJson(input, style, run.budget));
}

Value otherwiseFilter(Run &run, const Value &input, const Args &arguments) {
  Bound bound("default", arguments, {"default_value", "boolean"});
  const bool missing = input.isUndefined() || (bound.flag(1) && !isTrue(input));
  if (!missing)
    return input;
  return bound[0] ? *bound[0] : run.text("");
}

struct Entry {
  std::string_view name;
  FilterFunction function;
};

constexpr Entry kFilters[] = {
    {"abs", absolute},
    {"capitalize", mapText<toCapitalized>},
    {"center", center},
    {"d", otherwiseFilter},
    {"default", otherwiseFilter},
    {"e", escape},
    {"escape", escape},
    {"float", toFloatFilter},
    {"forceescape", escape},
    {"format", format},
    {"indent", indent},
    {"int", toIntFilter},
    {"lower", mapText<toLower>},
    {"replace", replace},
    {"round", roundFilter},
    {"safe", toString},
    {"string", toString},
    {"title", mapText<titleWords>},
    {"tojson", tojson},
    {"trim", trim},
    {"truncate", truncateText},
    {"upper", mapText<toUpper>},
    {"wordcount", wordCount},
};

} // namespace

FilterFunction jinja::findFilter(std::string_view name) {
  const auto it = std::ranges::find(kFilters, name, &Entry::name);
  return it == std::end(kFilters) ? nullptr : it->function;
}
