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

std::string spaces(size_t count, Budget &budget) {
  budget.text(count);
  return std::string(count, ' ');
}

/// Text with the ASCII forms of Python's int() and float() taken out of it:
/// white space around it, and single underscores between digits.
std::string numeral(std::string_view text, Budget &budget) {
  budget.characters(text.size());
  auto isDigit = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
  };
  text = stripSpace(text, true, true);
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != '_' || i == 0 || i + 1 == text.size() ||
        !isDigit(text[i - 1]) || !isDigit(text[i + 1]))
      digits += text[i];
  return digits;
}

bool parseFloat(std::string_view text, double &value, Budget &budget) {
  std::string digits = numeral(text, budget);
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

bool parseInt(std::string_view text, int64_t base, int64_t &value,
              Budget &budget) {
  std::string digits = numeral(text, budget);
  bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+'))
    digits.erase(0, 1);
  const std::string prefix = toLower(digits.substr(0, 2), budget);
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

Value toIntFilter(Run &run, const Value &input, const Args &arguments) {
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
  if (parseInt(input.text(), bound.integer(1, 10), value, run.budget))
    return Value(value);
  if (parseFloat(input.text(), real, run.budget) && truncate(real, value))
    return Value(value);
  return otherwise;
}

Value toFloatFilter(Run &run, const Value &input, const Args &arguments) {
  Bound bound("float", arguments, {"default"});
  requireDefined(input);
  double value = 0;
  if (input.isNumber())
    return Value(input.real());
  if (input.isString() && parseFloat(input.text(), value, run.budget))
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

Value roundFilter(Run &run, const Value &input, const Args &arguments) {
  Bound bound("round", arguments, {"precision", "method"});
  requireDefined(input);
  const std::string_view method = bound.text(1, "common");
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
    run.budget.steps(kRealDigitsSteps);
    char buffer[700];
    if (precision >= 0) {
      const int length =
          std::snprintf(buffer, sizeof(buffer), "%.*f",
                        static_cast<int>(precision), input.real());
      run.budget.steps(static_cast<uint64_t>(length) / 4);
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

template <std::string (*function)(std::string_view, Budget &)>
Value mapText(Run &run, const Value &input, const Args &arguments) {
  Bound bound("a filter of case", arguments, {});
  return run.text(function(run.str(input), run.budget));
}

/// do_title: words begin after white space and some punctuation.
std::string titleWords(std::string_view text, Budget &budget) {
  std::string result;
  size_t begin = 0;
  auto close = [&](size_t end) {
    const std::string_view word = text.substr(begin, end - begin);
    if (!word.empty()) {
      const size_t first = firstCharacter(word).bytes.size();
      result += toUpper(word.substr(0, first), budget);
      result += toLower(word.substr(first), budget);
    }
    begin = end;
  };
  bool between = false;
  for (const Character &c : Characters(text, budget)) {
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
  const bool given = bound[0] && !bound[0]->isNone();
  const std::string_view chars = given ? bound.text(0, "") : "";
  return run.text(std::string(
      strip(text, given ? &chars : nullptr, true, true, run.budget)));
}

Value toString(Run &run, const Value &input, const Args &arguments) {
  Bound bound("string", arguments, {});
  return run.text(run.str(input));
}

Value escape(Run &run, const Value &input, const Args &arguments) {
  Bound bound("escape", arguments, {});
  std::string result;
  const std::string text = run.str(input);
  run.budget.characters(text.size());
  for (char c : text) {
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
    margin = run.str(*bound[0]);
  else if (bound[0])
    margin = spaces(countOf("an indent", bound.integer(0, 4)), run.budget);
  const bool blank = bound.flag(2);
  std::string result = bound.flag(1) ? margin : "";
  const std::string text = run.str(input) + "\n";
  bool first = true;
  for (std::string_view line : splitLines(text, false, run.budget)) {
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
  const size_t length = countCharacters(text, run.budget);
  const size_t margin = width > length ? width - length : 0;
  const size_t left = margin / 2 + (margin & width & 1);
  run.budget.text(text.size() + margin);
  std::string result(left, ' ');
  result += text;
  return makeLiteral(result.append(margin - left, ' '));
}

Value truncateText(Run &run, const Value &input, const Args &arguments) {
  Bound bound("truncate", arguments, {"length", "killwords", "end", "leeway"});
  requireDefined(input);
  if (!input.isString())
    fail("truncate takes a string, not " + typeName(input));
  const size_t length = countOf("a length", bound.integer(0, 255));
  const size_t leeway = countOf("a leeway", bound.integer(3, 5));
  const std::string_view end = bound.text(2, "..."), text = input.text();
  const size_t endLength = countCharacters(end, run.budget);
  if (length < endLength)
    fail("truncate's length is less than that of its end");
  if (bytesOfCharacters(text, length + leeway, run.budget) == text.size())
    return input;
  std::string_view kept =
      text.substr(0, bytesOfCharacters(text, length - endLength, run.budget));
  if (!bound.flag(1))
    kept = kept.substr(0, kept.rfind(' '));
  run.budget.text(kept.size() + end.size());
  return makeLiteral(std::string(kept).append(end));
}

Value wordCount(Run &run, const Value &input, const Args &arguments) {
  Bound bound("wordcount", arguments, {});
  int64_t count = 0;
  bool inside = false;
  const std::string text = run.str(input);
  for (const Character &c : Characters(text, run.budget)) {
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
            ? run.str(*bound[1])
            : spaces(countOf("an indent", bound.integer(1, 0)), run.budget);
  }
  if (bound[2] && !bound[2]->isNone()) {
    const std::vector<Value> separators = iterate(*bound[2], run.budget);
    if (separators.size() != 2 || !separators[0].isString() ||
        !separators[1].isString())
      fail("tojson's separators are a pair of strings");
    style.itemSeparator = run.str(separators[0]);
    style.keySeparator = run.str(separators[1]);
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
