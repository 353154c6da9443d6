//===- Arithmetic.cpp - Operators of numbers, texts and lists -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Interpreter.h"

#include <cmath>

using namespace kf;
using namespace kf::jinja;

namespace {

[[noreturn]] void tooLarge() { fail("a number is too large"); }

/// Python's floor division and the modulo that goes with it.
int64_t floorDivide(int64_t a, int64_t b) {
  if (b == -1 && a == INT64_MIN)
    tooLarge();
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
int64_t floorModulo(int64_t a, int64_t b) {
  if (b == -1)
    return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value integerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0)
      fail("0.0 cannot be raised to a negative power");
    return Value(
        std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  for (;;) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
      tooLarge();
    exponent >>= 1;
    if (!exponent)
      return Value(result);
    if (__builtin_mul_overflow(base, base, &base))
      tooLarge();
  }
}

Value integers(std::string_view op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (op == "+")
    overflow = __builtin_add_overflow(a, b, &result);
  else if (op == "-")
    overflow = __builtin_sub_overflow(a, b, &result);
  else if (op == "*")
    overflow = __builtin_mul_overflow(a, b, &result);
  else if (op == "**")
    return integerPower(a, b);
  else if (b == 0)
    fail(op == "/" ? "division by zero" : "integer division or modulo by zero");
  else if (op == "/")
    return Value(static_cast<double>(a) / static_cast<double>(b));
  else if (op == "//")
    result = floorDivide(a, b);
  else
    result = floorModulo(a, b);
  if (overflow)
    tooLarge();
  return Value(result);
}

Value reals(std::string_view op, double a, double b) {
  if (op == "+")
    return Value(a + b);
  if (op == "-")
    return Value(a - b);
  if (op == "*")
    return Value(a * b);
  if (op == "**") {
    const double result = std::pow(a, b);
    if (std::isnan(result) && !std::isnan(a) && !std::isnan(b))
      fail("complex numbers are not supported");
    if (std::isinf(result) && !std::isinf(a) && !std::isinf(b))
      fail(a == 0 ? "0.0 cannot be raised to a negative power"
                  : "a number is too large");
    return Value(result);
  }
  if (b == 0)
    fail("float division by zero");
  if (op == "/")
    return Value(a / b);
  double rest = std::fmod(a, b);
  if (op == "%") {
    if (rest != 0 && (rest < 0) != (b < 0))
      rest += b;
    return Value(rest == 0 ? std::copysign(0.0, b) : rest);
  }
  // Python's float_floor_div.
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0))
    quotient -= 1;
  if (quotient == 0)
    return Value(std::copysign(0.0, a / b));
  const double floor = std::floor(quotient);
  return Value(quotient - floor > 0.5 ? floor + 1 : floor);
}

bool isList(const Value &value) {
  return value.is(Kind::List) || value.is(Kind::Tuple);
}

Value repeat(Interpreter &interpreter, const Value &value, int64_t count) {
  const uint64_t times = count > 0 ? static_cast<uint64_t>(count) : 0;
  if (value.isString()) {
    uint64_t size = 0;
    if (__builtin_mul_overflow(value.text().size(), times, &size))
      size = UINT64_MAX;
    interpreter.budget.text(size);
    if (size)
      interpreter.budget.steps(times / 8);
    std::string result;
    if (size)
      for (uint64_t i = 0; i < times; ++i)
        result += value.text();
    return makeLiteral(std::move(result));
  }
  const auto &items = value.as<Sequence>().items;
  uint64_t size = 0;
  if (__builtin_mul_overflow(items.size(), times, &size))
    size = UINT64_MAX;
  interpreter.budget.items(size);
  std::vector<Value> result;
  if (size)
    for (uint64_t i = 0; i < times; ++i)
      result.insert(result.end(), items.begin(), items.end());
  return makeSequence(value.kind(), std::move(result), interpreter.budget);
}

Value add(Interpreter &interpreter, const Value &a, const Value &b) {
  if (a.isString() && b.isString()) {
    interpreter.budget.text(a.text().size() + b.text().size());
    return makeLiteral(a.text() + b.text());
  }
  const auto &x = a.as<Sequence>().items, &y = b.as<Sequence>().items;
  interpreter.budget.items(x.size() + y.size());
  std::vector<Value> items = x;
  items.insert(items.end(), y.begin(), y.end());
  return makeSequence(a.kind(), std::move(items), interpreter.budget);
}

} // namespace

Value Interpreter::binary(std::string_view op, const Value &a, const Value &b) {
  if (a.isString() && op == "%") // an undefined argument is ''
    return text(formatPercent(*this, a.text(), b));
  requireDefined(a);
  requireDefined(b);
  if (a.isInt() && b.isInt())
    return integers(op, a.integer(), b.integer());
  if (a.isNumber() && b.isNumber())
    return reals(op, a.real(), b.real());
  if (op == "*" && (a.isString() || isList(a)) && b.isInt())
    return repeat(*this, a, b.integer());
  if (op == "*" && (b.isString() || isList(b)) && a.isInt())
    return repeat(*this, b, a.integer());
  if (op == "+" && a.kind() == b.kind() && (a.isString() || isList(a)))
    return add(*this, a, b);
  if (op == "+" && (a.isString() || isList(a)))
    fail("can only concatenate " + typeName(a) + " (not '" + typeName(b) +
         "') to " + typeName(a));
  fail("unsupported operand type(s) for " + std::string(op) + ": '" +
       typeName(a) + "' and '" + typeName(b) + "'");
}
