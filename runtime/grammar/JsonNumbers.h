//===- JsonNumbers.h - Numbers of JSON between bounds -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_JSONNUMBERS_H
#define KF_RUNTIME_GRAMMAR_JSONNUMBERS_H

#include "runtime/grammar/Expressions.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf::grammar {

/// A number by its decimal digits.
struct Decimal {
  bool isNegative = false; ///< not of 0
  std::string whole{};     ///< without zeros in front; empty: 0
  std::string fraction{};  ///< without zeros at the end

  /// The most digits of a divisor.
  static constexpr size_t kMaxDivisorDigits = 8;

  /// Reads a number of JSON; nothing if it has more than 60 digits in front of
  /// its point or behind.
  static std::optional<Decimal> parse(std::string_view text);
  bool isInteger() const { return fraction.empty(); }
  /// < 0, 0, > 0.
  int compare(const Decimal &other) const;
};

struct NumberBounds {
  struct Bound {
    Decimal value;
    bool isExclusive = false;
  };
  std::optional<Bound> least, most;
  std::vector<Decimal> divisors; ///< greater than 0

  bool empty() const { return !least && !most && divisors.empty(); }
  void addLeast(Bound bound);
  void addMost(Bound bound);
};

/// Integers of JSON, or numbers, in the bounds. With bounds, numbers have no
/// exponent. Divisors have at most kMaxDivisorDigits.
ExprId numberExpression(const NumberBounds &bounds, bool isInteger,
                        Expressions &expressions);

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_JSONNUMBERS_H
