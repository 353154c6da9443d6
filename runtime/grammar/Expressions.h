//===- Expressions.h - Regular expressions of bytes -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Expressions are values of a set that holds each only once, so that equal ones
// have equal numbers. They are matched by derivatives: the derivative of an
// expression by a byte matches what may follow that byte. Nothing is expanded
// beforehand, so `.{0,100000}` costs as much as `.`, and the intersection and
// the complement are expressions like others.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_EXPRESSIONS_H
#define KF_RUNTIME_GRAMMAR_EXPRESSIONS_H

#include "runtime/grammar/Fuel.h"
#include "runtime/grammar/InternTable.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf::grammar {

/// A set of bytes.
struct ByteSet {
  std::array<uint64_t, 4> words{};

  static ByteSet all() { return range(0, 255); }
  static ByteSet range(int first, int last) {
    ByteSet set;
    set.addRange(first, last);
    return set;
  }
  bool has(uint8_t byte) const { return words[byte >> 6] >> (byte & 63) & 1; }
  void add(uint8_t byte) { words[byte >> 6] |= uint64_t(1) << (byte & 63); }
  void addRange(int first, int last) {
    for (int byte = first; byte <= last; ++byte)
      add(static_cast<uint8_t>(byte));
  }
  bool empty() const { return !(words[0] | words[1] | words[2] | words[3]); }
  ByteSet operator|(const ByteSet &other) const;
  ByteSet operator&(const ByteSet &other) const;
  bool operator==(const ByteSet &) const = default;
};

/// The number of an expression in its set.
using ExprId = uint32_t;

/// A set of expressions. It grows as derivatives are taken. One thread. Throws
/// Failure where there are more than the limit, or one is nested too deep, and
/// where fuel ends: that of the call, or, where a call takes none, what
/// payWith() gave.
class Expressions {
public:
  static constexpr ExprId kNothing = 0;  ///< matches no text
  static constexpr ExprId kEmpty = 1;    ///< matches the empty text
  static constexpr ExprId kAnything = 2; ///< matches each text
  static constexpr uint32_t kUnbounded = 0xffffffff;

  /// `maxSize` bounds entries(); past it is a Failure, Invalid.
  explicit Expressions(size_t maxSize);

  /// Expressions that are made from now on are paid for with `fuel`, which has
  /// to live as long; with nothing, if null.
  void payWith(Fuel *fuel) { paying = fuel; }

  ExprId bytes(const ByteSet &set);
  ExprId byte(uint8_t value);
  ExprId literal(std::string_view text);
  /// Any of these texts, in any order.
  ExprId literals(std::vector<std::string> texts, Fuel &fuel);
  ExprId concat(ExprId a, ExprId b);
  ExprId concat(std::initializer_list<ExprId> parts);
  ExprId either(std::vector<ExprId> parts);
  ExprId both(std::vector<ExprId> parts);
  ExprId complement(ExprId a);
  /// `least` to `most` times `a`, or any number from `least` on.
  ExprId repeat(ExprId a, uint32_t least, uint32_t most);
  ExprId optional(ExprId a) { return either({kEmpty, a}); }
  ExprId star(ExprId a) { return repeat(a, 0, kUnbounded); }
  /// Decimal digits, and points that count for nothing, which as one number
  /// behind `remainder` are a multiple of `divisor`, at most 2^28.
  ExprId multiple(uint32_t divisor, uint32_t remainder = 0);

  /// Whether the empty text matches.
  bool nullable(ExprId id) const { return nodes[id].nullable; }
  /// Bytes that texts may begin with, and perhaps more.
  const ByteSet &first(ExprId id) const { return nodes[id].first; }
  /// What may follow `byte`.
  ExprId derivative(ExprId id, uint8_t byte, Fuel &fuel);
  bool matches(ExprId id, std::string_view text, Fuel &fuel);
  /// Whether any text matches. `bytes` has one of each class (ByteClasses).
  bool isLive(ExprId id, const std::vector<uint8_t> &bytes, Fuel &fuel);

  /// What begins with the same texts of at most `bytes` bytes, and goes on
  /// behind each of them in the same ways, with bounds that are further away as
  /// no bounds: different counts become one.
  ExprId relaxed(ExprId id, uint32_t bytes, Fuel &fuel);
  /// `id` as item, least and most times, if it is a repetition.
  struct Repetition {
    ExprId item;
    uint32_t least, most;
  };
  std::optional<Repetition> repetition(ExprId id) const;

  size_t size() const { return nodes.size(); }
  /// Expressions, and the parts of those that are lists: what maxSize bounds.
  size_t entries() const { return nodes.size() + lists.size(); }
  /// Another limit, past which a Failure has `code`.
  void setMaxSize(size_t most, StatusCode code) {
    maxSize = most;
    codeOfLimit = code;
  }
  size_t memory() const;
  /// The bytes that the expressions tell apart: a class for each byte, from 0.
  /// Of bytes of one class, all expressions have the same derivative.
  std::array<uint8_t, 256> byteClasses() const;
  /// Puts into `copied` for each expression of `ids`, of the set `from`, which
  /// has grown from what this one is a copy of, the same one of this set.
  void copyFrom(const Expressions &from, const std::vector<ExprId> &ids,
                size_t common, std::vector<ExprId> &copied, Fuel &fuel);

private:
  enum class Kind : uint8_t {
    Nothing,
    Empty,
    Bytes,      ///< `first`
    Concat,     ///< a, then b; a is no Concat
    Either,     ///< lists[a .. a + b)
    Both,       ///< lists[a .. a + b)
    Complement, ///< of a
    Repeat,     ///< a, least to most times
    Multiple    ///< of a as the divisor, with the remainder b
  };
  struct Node {
    Kind kind;
    bool nullable = false;
    /// Holds an intersection, a complement or a remainder: it may match nothing
    /// though it is not kNothing.
    bool uncertain = false;
    uint16_t depth = 0; ///< of calls that a derivative takes
    uint32_t a = 0, b = 0;
    uint32_t least = 0, most = 0;
    ByteSet first{};
  };
  enum class Life : uint8_t { Unknown, Live, Dead };
  /// Pays with `fuel` as long as it lives.
  class Payer {
  public:
    Payer(Expressions &set, Fuel &fuel) : set(set), before(set.paying) {
      set.paying = &fuel;
    }
    ~Payer() { set.paying = before; }
    Payer(const Payer &) = delete;
    Payer &operator=(const Payer &) = delete;

  private:
    Expressions &set;
    Fuel *before;
  };

  void spend(uint64_t steps) {
    if (paying)
      paying->spend(steps);
  }
  ExprId add(Node node, const std::vector<ExprId> *list = nullptr);
  ExprId derive(ExprId id, uint8_t byte, Fuel &fuel);
  bool findIsLive(ExprId id, const std::vector<uint8_t> &bytes, Fuel &fuel);
  ExprId relax(ExprId id, uint32_t bytes, Fuel &fuel, int depth);
  bool findLife(ExprId id, const std::vector<uint8_t> &bytes, Fuel &fuel);

  size_t maxSize;
  StatusCode codeOfLimit = StatusCode::Invalid;
  std::vector<Node> nodes;
  std::vector<ExprId> lists;
  std::vector<Life> lives; ///< by node, as far as they were asked for
  InternTable table;
  Fuel *paying = nullptr; ///< of the running call, or what payWith() gave
};

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_EXPRESSIONS_H
