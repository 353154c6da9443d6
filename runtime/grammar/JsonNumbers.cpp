//===- JsonNumbers.cpp - Numbers of JSON between bounds -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/JsonNumbers.h"

#include <algorithm>
#include <charconv>
#include <numeric>

using namespace kf;
using namespace kf::grammar;

static constexpr size_t kMaxDigits = 60;

std::optional<Decimal> Decimal::parse(std::string_view text) {
  Decimal result;
  if (text.starts_with('-')) {
    result.isNegative = true;
    text.remove_prefix(1);
  }
  int64_t exponent = 0;
  if (const size_t e = text.find_first_of("eE"); e != text.npos) {
    std::string_view behind = text.substr(e + 1);
    if (behind.starts_with('+'))
      behind.remove_prefix(1);
    int32_t value = 0;
    const auto [end, error] =
        std::from_chars(behind.data(), behind.data() + behind.size(), value);
    if (error != std::errc())
      return std::nullopt;
    exponent = value;
    text = text.substr(0, e);
  }
  // The digits without zeros around them, and where the point is in front of,
  // among or behind them.
  const size_t dot = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, dot));
  digits += text.substr(std::min(dot + 1, text.size()));
  digits.erase(digits.find_last_not_of('0') + 1); // npos + 1 is 0
  const size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, zeros);
  if (digits.empty())
    return Decimal();
  const auto count = static_cast<int64_t>(digits.size());
  const int64_t point =
      static_cast<int64_t>(dot) - static_cast<int64_t>(zeros) + exponent;
  constexpr auto kMost = static_cast<int64_t>(kMaxDigits);
  if (point > kMost || count - point > kMost)
    return std::nullopt;
  const auto split = static_cast<size_t>(std::clamp<int64_t>(point, 0, count));
  result.whole = digits.substr(0, split);
  if (point > count)
    result.whole.append(static_cast<size_t>(point - count), '0');
  if (point < 0)
    result.fraction.assign(static_cast<size_t>(-point), '0');
  result.fraction += digits.substr(split);
  return result;
}

int Decimal::compare(const Decimal &other) const {
  if (isNegative != other.isNegative)
    return isNegative ? -1 : 1;
  int order = whole.size() != other.whole.size()
                  ? (whole.size() < other.whole.size() ? -1 : 1)
                  : whole.compare(other.whole);
  if (order == 0)
    order = fraction.compare(other.fraction);
  return isNegative ? -order : order;
}

void NumberBounds::addLeast(Bound bound) {
  const int order = least ? bound.value.compare(least->value) : 1;
  if (order > 0 || (order == 0 && bound.isExclusive))
    least = std::move(bound);
}

void NumberBounds::addMost(Bound bound) {
  const int order = most ? bound.value.compare(most->value) : -1;
  if (order < 0 || (order == 0 && bound.isExclusive))
    most = std::move(bound);
}

namespace {

/// Makes expressions of numbers without a sign.
class Magnitudes {
public:
  explicit Magnitudes(Expressions &set) : set(set) {}

  ExprId digits(int first, int last) {
    return first > last ? Expressions::kNothing
                        : set.bytes(ByteSet::range('0' + first, '0' + last));
  }
  ExprId anyDigits(uint32_t least, uint32_t most) {
    return set.repeat(digits(0, 9), least, most);
  }
  /// Whole numbers, without zeros in front.
  ExprId whole() {
    return set.either(
        {set.byte('0'),
         set.concat(digits(1, 9), anyDigits(0, Expressions::kUnbounded))});
  }
  /// Nothing, or a point and digits.
  ExprId anyFraction() {
    return set.optional(
        set.concat(set.byte('.'), anyDigits(1, Expressions::kUnbounded)));
  }

  /// Strings of as many digits that are more (or less) than `bound`, which has
  /// some.
  ExprId beyond(std::string_view bound, bool isMore) {
    ExprId result = Expressions::kNothing;
    for (size_t i = bound.size(); i-- > 0;) {
      const int digit = bound[i] - '0';
      const auto rest = static_cast<uint32_t>(bound.size() - i - 1);
      result = set.either(
          {set.concat(set.byte(static_cast<uint8_t>(bound[i])), result),
           set.concat(isMore ? digits(digit + 1, 9) : digits(0, digit - 1),
                      anyDigits(rest, rest))});
    }
    return result;
  }

  /// Whole numbers that are more (or less) than `bound`.
  ExprId wholeBeyond(const std::string &bound, bool isMore) {
    const auto length = static_cast<uint32_t>(bound.size());
    if (length == 0)
      return isMore ? set.concat(digits(1, 9),
                                 anyDigits(0, Expressions::kUnbounded))
                    : Expressions::kNothing;
    // Of as many digits, without zeros in front, or of more or fewer.
    const ExprId equal =
        set.both({beyond(bound, isMore),
                  length == 1 ? digits(0, 9)
                              : set.concat(digits(1, 9),
                                           anyDigits(length - 1, length - 1))});
    if (isMore)
      return set.either(
          {equal, set.concat(digits(1, 9),
                             anyDigits(length, Expressions::kUnbounded))});
    if (length == 1)
      return equal;
    return set.either({equal, set.byte('0'),
                       set.concat(digits(1, 9), anyDigits(0, length - 2))});
  }

  /// Fractions, with their point or none at all, that are more (or less) than
  /// `bound`, or equal to it.
  ExprId fractionBeyond(const std::string &bound, bool isMore,
                        bool isExclusive) {
    const ExprId zeros = set.star(set.byte('0'));
    const ExprId any = anyDigits(0, Expressions::kUnbounded);
    // Behind all digits of the bound.
    ExprId rest =
        isMore ? (isExclusive ? set.concat({zeros, digits(1, 9), any}) : any)
               : (isExclusive ? Expressions::kNothing : zeros);
    if (bound.empty()) {
      if (isMore)
        return isExclusive ? set.concat(set.byte('.'), rest) : anyFraction();
      return isExclusive ? Expressions::kNothing
                         : set.optional(set.concat(
                               {set.byte('.'), set.byte('0'), zeros}));
    }
    for (size_t i = bound.size(); i-- > 0;) {
      const int digit = bound[i] - '0';
      rest = set.either(
          {set.concat(set.byte(static_cast<uint8_t>(bound[i])), rest),
           set.concat(isMore ? digits(digit + 1, 9) : digits(0, digit - 1),
                      any)});
      // Digits that end before the bound's are less.
      if (!isMore && i > 0)
        rest = set.optional(rest);
    }
    rest = set.concat(set.byte('.'), rest);
    return isMore ? rest : set.optional(rest);
  }

  /// Numbers that are more (or less) than `bound`'s digits, or equal.
  ExprId beyond(const NumberBounds::Bound &bound, bool isMore, bool isInteger) {
    const std::string &whole = bound.value.whole;
    const ExprId equal = set.literal(whole.empty() ? "0" : whole);
    const ExprId others = wholeBeyond(whole, isMore);
    if (isInteger) {
      const bool takesEqual =
          bound.value.isInteger() ? !bound.isExclusive : !isMore;
      return takesEqual ? set.either({equal, others}) : others;
    }
    return set.either(
        {set.concat(others, anyFraction()),
         set.concat(equal, fractionBeyond(bound.value.fraction, isMore,
                                          bound.isExclusive))});
  }

  /// Multiples of `divisor`.
  ExprId multiples(const Decimal &divisor, bool isInteger) {
    const std::string text = divisor.whole + divisor.fraction;
    const uint64_t value = std::stoull(text);
    const auto scale = static_cast<uint32_t>(divisor.fraction.size());
    // With `behind` digits behind the point, the digits as one number are a
    // multiple of value / gcd(value, 10 ^ (scale - behind)).
    std::vector<ExprId> forms;
    for (uint32_t behind = 0; behind <= (isInteger ? 0 : scale); ++behind) {
      uint64_t power = 1;
      for (uint32_t i = behind; i < scale; ++i)
        power *= 10;
      const ExprId point =
          behind ? set.concat(set.byte('.'), anyDigits(behind, behind))
                 : Expressions::kEmpty;
      forms.push_back(set.both(
          {set.concat(whole(), point), set.multiple(static_cast<uint32_t>(
                                           value / std::gcd(value, power)))}));
    }
    return set.either(std::move(forms));
  }

private:
  Expressions &set;
};

} // namespace

ExprId kf::grammar::numberExpression(const NumberBounds &bounds, bool isInteger,
                                     Expressions &set) {
  Magnitudes make(set);
  const ExprId minus = set.byte('-');
  if (bounds.empty()) {
    const ExprId whole = set.concat(set.optional(minus), make.whole());
    if (isInteger)
      return whole;
    ByteSet e, signs;
    e.add('e'), e.add('E'), signs.add('+'), signs.add('-');
    const ExprId exponent =
        set.concat({set.bytes(e), set.optional(set.bytes(signs)),
                    make.anyDigits(1, Expressions::kUnbounded)});
    return set.concat({whole, make.anyFraction(), set.optional(exponent)});
  }
  std::vector<ExprId> common{
      isInteger ? make.whole() : set.concat(make.whole(), make.anyFraction())};
  for (const Decimal &divisor : bounds.divisors)
    common.push_back(make.multiples(divisor, isInteger));

  // Those without a sign, and those with one, whose bounds are the other way
  // around.
  auto between = [&](const std::optional<NumberBounds::Bound> &least,
                     const std::optional<NumberBounds::Bound> &most,
                     bool isNegated) {
    std::vector<ExprId> parts = common;
    if (least && least->value.isNegative == isNegated)
      parts.push_back(make.beyond(*least, true, isInteger));
    if (most && most->value.isNegative == isNegated)
      parts.push_back(make.beyond(*most, false, isInteger));
    return set.both(std::move(parts));
  };
  std::vector<ExprId> forms;
  const auto &[least, most, divisors] = bounds;
  if (!most || !most->value.isNegative)
    forms.push_back(between(least, most, false));
  // A number with a sign is at most 0; if that is a bound, it stays out.
  if (!least || least->value.isNegative) {
    std::optional<NumberBounds::Bound> nearest = most;
    if (most && !most->value.isNegative && most->value.compare(Decimal()) == 0)
      nearest = NumberBounds::Bound{{.isNegative = true}, most->isExclusive};
    forms.push_back(set.concat(minus, between(nearest, least, true)));
  }
  return set.either(std::move(forms));
}
