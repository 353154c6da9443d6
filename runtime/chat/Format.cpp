//===- Format.cpp - Python's format strings -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Characters.h"
#include "runtime/chat/Interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

using namespace kf;
using namespace kf::jinja;

namespace {

constexpr int kMaxWidth = 1 << 20;
constexpr int kMaxPrecision = 200;

/// How one value is written.
struct Spec {
  std::string fill = " ";
  char align = 0; ///< < > ^ =, 0: by type
  char sign = '-';
  bool alternate = false;
  bool commas = false;
  int width = 0;
  int precision = -1;
  char type = 0;
};

int readNumber(std::string_view text, size_t &at, int most) {
  int value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = value * 10 + (text[at] - '0');
    if (value > most)
      fail("a width or precision in a format is too large");
  }
  return value;
}

std::string pad(const Spec &spec, std::string_view sign, std::string_view text,
                char align, Budget &budget) {
  const size_t length = sign.size() + countCharacters(text, budget);
  const auto width = static_cast<size_t>(spec.width);
  const size_t margin = width > length ? width - length : 0;
  budget.characters(margin);
  const size_t left = align == '<' ? 0 : align == '^' ? margin / 2 : margin;
  std::string result(align == '=' ? sign : "");
  for (size_t i = 0; i < left; ++i)
    result += spec.fill;
  result.append(align == '=' ? "" : sign).append(text);
  for (size_t i = left; i < margin; ++i)
    result += spec.fill;
  return result;
}

std::string withCommas(const std::string &digits) {
  const size_t end = std::min(digits.find_first_of(".e"), digits.size());
  std::string result;
  for (size_t i = 0; i < end; ++i) {
    if (i && (end - i) % 3 == 0)
      result += ',';
    result += digits[i];
  }
  return result + digits.substr(end);
}

std::string integerDigits(uint64_t value, int base, bool upper) {
  std::string digits;
  do {
    const char c = "0123456789abcdef"[value % static_cast<uint64_t>(base)];
    digits.insert(digits.begin(),
                  upper ? static_cast<char>(std::toupper(c)) : c);
    value /= static_cast<uint64_t>(base);
  } while (value);
  return digits;
}

std::string realDigits(const Spec &spec, double value) {
  if (!std::isfinite(value))
    return std::isnan(value) ? "nan" : "inf";
  const bool percent = spec.type == '%';
  const char type = percent ? 'f' : spec.type;
  const char pattern[] = {'%', '.', '*', type, '\0'};
  char buffer[700];
  const int length = std::snprintf(buffer, sizeof(buffer), pattern,
                                   spec.precision < 0 ? 6 : spec.precision,
                                   percent ? value * 100 : value);
  return std::string(buffer, static_cast<size_t>(length)) +
         (percent ? "%" : "");
}

std::string formatNumber(Spec spec, const Value &value, Budget &budget) {
  const bool integral =
      value.isInt() && (spec.type == 0 || std::string_view("diuxXob").find(
                                              spec.type) != std::string::npos);
  bool negative;
  std::string digits;
  if (integral) {
    negative = value.integer() < 0;
    const auto bits = static_cast<uint64_t>(value.integer());
    const uint64_t magnitude = negative ? 0 - bits : bits;
    const bool hex = spec.type == 'x' || spec.type == 'X';
    const int base = hex                ? 16
                     : spec.type == 'o' ? 8
                     : spec.type == 'b' ? 2
                                        : 10;
    digits = integerDigits(magnitude, base, spec.type == 'X');
    if (static_cast<int>(digits.size()) < spec.precision)
      digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(),
                    '0');
    if (spec.alternate && base != 10)
      digits.insert(0, std::string("0") + spec.type);
  } else {
    budget.steps(kRealDigitsSteps);
    const double real = value.real();
    negative = std::signbit(real) && !std::isnan(real);
    if (spec.type == 0 && spec.precision < 0) {
      digits = floatText(std::abs(real));
    } else {
      spec.type = spec.type ? spec.type : 'g';
      digits = realDigits(spec, std::abs(real));
    }
  }
  if (spec.commas)
    digits = withCommas(digits);
  const std::string sign = negative           ? "-"
                           : spec.sign == '-' ? ""
                                              : std::string(1, spec.sign);
  return pad(spec, sign, digits, spec.align ? spec.align : '>', budget);
}

std::string formatString(const Spec &spec, std::string_view text,
                         Budget &budget) {
  if (spec.precision >= 0)
    text = text.substr(
        0,
        bytesOfCharacters(text, static_cast<size_t>(spec.precision), budget));
  return pad(spec, "", text, spec.align ? spec.align : '<', budget);
}

bool isRealType(char type) {
  return type && std::string_view("eEfFgG%").find(type) != std::string::npos;
}

//===----------------------------------------------------------------------===//
// format % arguments
//===----------------------------------------------------------------------===//

class PercentFormatter {
public:
  PercentFormatter(Interpreter &run, std::string_view format,
                   const Value &arguments)
      : run(run), format(format), arguments(arguments) {}

  std::string formatAll() {
    run.budget.characters(format.size());
    std::string result;
    while (at < format.size()) {
      const size_t mark = std::min(format.find('%', at), format.size());
      append(result, format.substr(at, mark - at));
      at = mark;
      if (at < format.size())
        append(result, formatOne());
    }
    const bool all =
        arguments.is(Kind::Tuple)
            ? used == arguments.as<Sequence>().items.size()
            : used == 1 || arguments.is(Kind::Dict) || arguments.is(Kind::List);
    if (!all)
      fail("not all arguments converted during string formatting");
    return result;
  }

private:
  void append(std::string &result, std::string_view part) {
    run.budget.steps(1);
    run.budget.text(result.size() + part.size(), result.size());
    result += part;
  }

  Value next() {
    if (arguments.is(Kind::Tuple)) {
      const auto &items = arguments.as<Sequence>().items;
      if (used < items.size())
        return items[used++];
    } else if (used++ == 0) {
      return arguments;
    }
    fail("not enough arguments for format string");
  }

  int numberOrStar(int most) {
    if (at >= format.size() || format[at] != '*')
      return readNumber(format, at, most);
    ++at;
    const Value value = next();
    if (!value.isInt() || value.integer() < 0 || value.integer() > most)
      fail("* in a format takes a small integer");
    return static_cast<int>(value.integer());
  }

  std::string formatOne() {
    ++at;
    Spec spec;
    spec.align = '>';
    std::optional<Value> named;
    if (at < format.size() && format[at] == '(') {
      const size_t close = format.find(')', at);
      if (close == std::string_view::npos)
        fail("incomplete format key");
      if (!arguments.is(Kind::Dict))
        fail("format requires a mapping");
      const std::string_view key = format.substr(at + 1, close - at - 1);
      const Value *found = arguments.as<Dict>().find(key, run.budget);
      if (!found)
        fail("the mapping of a format has no key " + quotedName(key));
      named = *found;
      at = close + 1;
    }
    bool zero = false;
    for (; at < format.size(); ++at) {
      const char c = format[at];
      if (c == '-')
        spec.align = '<';
      else if (c == '+' || (c == ' ' && spec.sign != '+'))
        spec.sign = c;
      else if (c == '#')
        spec.alternate = true;
      else if (c == '0')
        zero = true;
      else if (c != ' ')
        break;
    }
    spec.width = numberOrStar(kMaxWidth);
    if (at < format.size() && format[at] == '.') {
      ++at;
      spec.precision = numberOrStar(kMaxPrecision);
    }
    while (at < format.size() &&
           (format[at] == 'h' || format[at] == 'l' || format[at] == 'L'))
      ++at;
    if (at >= format.size())
      fail("incomplete format");
    spec.type = format[at++];
    if (spec.type == '%')
      return "%";
    const Value value = named ? *named : next();
    return convert(spec, value, zero);
  }

  std::string convert(Spec spec, const Value &value, bool zero) {
    const char type = spec.type;
    if (type == 's')
      return formatString(spec, run.str(value), run.budget);
    if (type == 'r')
      return formatString(spec, toRepr(value, run.budget), run.budget);
    requireDefined(value);
    if (zero && spec.align != '<') {
      spec.fill = "0";
      spec.align = '=';
    }
    if (type == 'c' && value.isString() &&
        countCharacters(value.text(), run.budget) == 1) {
      spec.precision = -1;
      return formatString(spec, value.text(), run.budget);
    }
    if (std::string_view("diu").find(type) != std::string::npos) {
      if (!value.isNumber())
        fail(std::string("%") + type + " format: a number is required, not " +
             typeName(value));
      if (value.isInt())
        return formatNumber(spec, Value(value.integer()), run.budget);
      if (!std::isfinite(value.real()) || std::abs(value.real()) > 9e18)
        fail("a number is too large");
      return formatNumber(spec, Value(static_cast<int64_t>(value.real())),
                          run.budget);
    }
    if (std::string_view("xXo").find(type) != std::string::npos) {
      if (!value.isInt())
        fail(std::string("%") + type + " format: an integer is required, not " +
             typeName(value));
      return formatNumber(spec, Value(value.integer()), run.budget);
    }
    if (isRealType(type)) {
      if (!value.isNumber())
        fail("must be real number, not " + typeName(value));
      return formatNumber(spec, Value(value.real()), run.budget);
    }
    fail("the format %" + std::string(1, type) + " is not supported");
  }

  Interpreter &run;
  std::string_view format;
  const Value &arguments;
  size_t at = 0, used = 0;
};

//===----------------------------------------------------------------------===//
// format.format(...)
//===----------------------------------------------------------------------===//

Spec parseSpec(std::string_view text) {
  Spec spec;
  auto isAlign = [&](size_t i) {
    return i < text.size() &&
           std::string_view("<>^=").find(text[i]) != std::string_view::npos;
  };
  size_t at = 0;
  const size_t first = text.empty() ? 0 : firstCharacter(text).bytes.size();
  if (isAlign(first) && first > 0) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    at = first + 1;
  } else if (isAlign(0)) {
    spec.align = text[0];
    at = 1;
  }
  if (at < text.size() &&
      (text[at] == '+' || text[at] == '-' || text[at] == ' '))
    spec.sign = text[at++];
  if (at < text.size() && text[at] == '#') {
    spec.alternate = true;
    ++at;
  }
  if (at < text.size() && text[at] == '0' && !spec.align) {
    spec.fill = "0";
    spec.align = '=';
    ++at;
  }
  spec.width = readNumber(text, at, kMaxWidth);
  if (at < text.size() && text[at] == ',') {
    spec.commas = true;
    ++at;
  }
  if (at < text.size() && text[at] == '.') {
    ++at;
    spec.precision = readNumber(text, at, kMaxPrecision);
  }
  if (at < text.size())
    spec.type = text[at++];
  if (at < text.size())
    fail("the format " + quotedName(text) + " is not supported");
  return spec;
}

std::string formatValue(Interpreter &run, const Value &value,
                        std::string_view specText) {
  if (specText.empty())
    return run.str(value);
  Spec spec = parseSpec(specText);
  const bool realType = isRealType(spec.type);
  const bool integerType = spec.type && std::string_view("dxXob").find(
                                            spec.type) != std::string::npos;
  if (value.isNumber() &&
      (spec.type == 0 || realType || (integerType && value.isInt())))
    return formatNumber(spec,
                        value.is(Kind::Bool) ? Value(value.integer()) : value,
                        run.budget);
  if (value.isString() && (spec.type == 0 || spec.type == 's') &&
      spec.align != '=' && !spec.commas)
    return formatString(spec, value.text(), run.budget);
  requireDefined(value);
  fail("the format " + quotedName(specText) + " does not fit a " +
       typeName(value));
}

/// The value that a field's name leads to: "0", "name.attribute[index]".
Value fieldValue(Interpreter &run, std::string_view name, size_t &automatic,
                 const Arguments &arguments) {
  const size_t end = std::min(name.find_first_of(".["), name.size());
  const std::string_view first = name.substr(0, end);
  Value value;
  const bool digits =
      first.find_first_not_of("0123456789") == std::string_view::npos;
  if (digits) {
    size_t at = 0;
    const size_t index = first.empty()
                             ? automatic++
                             : static_cast<size_t>(readNumber(first, at, 1000));
    if (index >= arguments.positional.size())
      fail("a replacement index is out of range for the arguments");
    value = arguments.positional[index];
  } else {
    run.budget.steps(arguments.keywords.size() / 8);
    const auto it =
        std::ranges::find_if(arguments.keywords, [&](const auto &item) {
          return item.first == first;
        });
    if (it == arguments.keywords.end())
      fail("format has no argument " + quotedName(first));
    value = it->second;
  }
  name.remove_prefix(end);
  while (!name.empty()) {
    if (name[0] == '.') {
      const size_t stop = std::min(name.find_first_of(".[", 1), name.size());
      value = run.getAttribute(value, name.substr(1, stop - 1));
      name.remove_prefix(stop);
      continue;
    }
    const size_t close = name.find(']');
    if (name[0] != '[' || close == std::string_view::npos)
      fail("a field of a format is malformed");
    const std::string_view key = name.substr(1, close - 1);
    const bool index = !key.empty() && key.find_first_not_of("0123456789") ==
                                           std::string_view::npos;
    size_t at = 0;
    value =
        run.getItem(value, index ? Value(int64_t(readNumber(key, at, 1 << 24)))
                                 : run.text(std::string(key)));
    name.remove_prefix(close + 1);
  }
  return value;
}

} // namespace

std::string jinja::formatPercent(Interpreter &interpreter,
                                 std::string_view format,
                                 const Value &arguments) {
  return PercentFormatter(interpreter, format, arguments).formatAll();
}

std::string jinja::formatBraces(Interpreter &interpreter,
                                std::string_view format,
                                const Arguments &arguments) {
  interpreter.budget.characters(format.size());
  std::string result;
  size_t automatic = 0;
  auto append = [&](std::string_view part) {
    interpreter.budget.steps(1);
    interpreter.budget.text(result.size() + part.size(), result.size());
    result += part;
  };
  while (!format.empty()) {
    const size_t mark = std::min(format.find_first_of("{}"), format.size());
    append(format.substr(0, mark));
    format.remove_prefix(mark);
    if (format.empty())
      break;
    if (format.size() > 1 && format[1] == format[0]) {
      append(format.substr(0, 1));
      format.remove_prefix(2);
      continue;
    }
    const size_t close = format.find('}');
    if (format[0] == '}' || close == std::string_view::npos)
      fail(std::string("single '") + format[0] +
           "' encountered in format string");
    std::string_view field = format.substr(1, close - 1);
    format.remove_prefix(close + 1);
    if (field.find('{') != std::string_view::npos)
      fail("fields inside fields of a format are not supported");
    std::string_view spec, conversion;
    if (const size_t colon = field.find(':'); colon != std::string::npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    if (const size_t bang = field.find('!'); bang != std::string::npos) {
      conversion = field.substr(bang + 1);
      field = field.substr(0, bang);
    }
    Value value = fieldValue(interpreter, field, automatic, arguments);
    if (conversion == "r")
      value = interpreter.text(toRepr(value, interpreter.budget));
    else if (conversion == "s")
      value = interpreter.text(interpreter.str(value));
    else if (!conversion.empty())
      fail("the conversion " + quotedName(conversion) + " is not supported");
    append(formatValue(interpreter, value, spec));
  }
  return result;
}

std::string jinja::formatTime(const std::tm &time, std::string_view format,
                              Budget &budget) {
  if (format.size() > 4096)
    fail("the format of a time is longer than 4096 bytes");
  budget.steps(2 * format.size());
  // Python's naive time: no zone, and microseconds, which nobody asks for.
  std::string plain;
  for (size_t i = 0; i < format.size(); ++i) {
    const bool directive = format[i] == '%' && i + 1 < format.size();
    if (directive && (format[i + 1] == 'z' || format[i + 1] == 'Z')) {
      ++i;
    } else if (directive && format[i + 1] == 'f') {
      plain += "000000";
      ++i;
    } else {
      plain += format[i];
      if (directive)
        plain += format[++i];
    }
  }
  // One character more tells an empty result from one that does not fit.
  plain += '.';
  if (plain.find('\0') != std::string::npos)
    fail("the format of a time has a null character");
  std::string result(64 * plain.size() + 64, '\0');
  const size_t length =
      std::strftime(result.data(), result.size(), plain.c_str(), &time);
  if (length == 0)
    fail("the format of a time is not supported");
  result.resize(length - 1);
  return result;
}
