//===- Lexer.h - Which lexemes the bytes so far may be ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_LEXER_H
#define KF_RUNTIME_GRAMMAR_LEXER_H

#include "runtime/grammar/GrammarVocabulary.h"
#include "runtime/grammar/Rules.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kf::grammar {

/// An automaton over sets of lexemes, whose states are made as they are needed.
/// A state is what may follow the bytes so far, for each lexeme that they may
/// be the beginning of. One thread. Throws Failure where fuel ends.
class Lexer {
public:
  static constexpr uint32_t kDead = 0; ///< no lexeme begins so
  /// No lexemes: the number of the empty list.
  static constexpr uint32_t kNoLexemes = 0;

  /// For tokens of at most `longest` bytes. Takes at most some more than
  /// `maxBytes`; more is a Failure, OutOfMemory.
  Lexer(const Rules &rules, size_t longest, size_t maxBytes);

  /// The number of a list of lexemes, sorted, each once.
  uint32_t list(std::span<const uint32_t> lexemes);
  std::span<const uint32_t> listed(uint32_t list) const {
    return {listItems.data() + lists[list], lists[list + 1] - lists[list]};
  }

  /// The state in front of any of the listed lexemes.
  uint32_t start(uint32_t list, Fuel &fuel);
  /// A state, and whether it accepts a lexeme.
  class Step {
  public:
    Step(uint32_t state, bool accepts) : code(state << 1 | accepts) {}
    uint32_t state() const { return code >> 1; }
    bool accepts() const { return code & 1; }
    bool isDead() const { return code == kDead; }

  private:
    friend class Lexer;
    explicit Step(uint32_t code) : code(code) {}
    uint32_t code;
  };
  /// The state behind `byte`, or kDead.
  Step step(uint32_t state, uint8_t byte, Fuel &fuel) {
    const Step known = table[size_t(state) * classCount + classes[byte]];
    return known.code != kUnknown ? known : makeStep(state, byte, fuel);
  }
  /// The list of the lexemes that the bytes so far are.
  uint32_t accepts(uint32_t state) const { return states[state].accepts; }
  /// Whether a longer text may be one of the lexemes.
  bool goesOn(uint32_t state) const { return states[state].goesOn; }

  /// What plain characters (GrammarVocabulary) do behind a state.
  struct PlainReach {
    uint8_t all = 0; ///< texts of up to so many characters go on, or more
    /// Longer ones do not, and no text of them is a whole lexeme.
    bool exact = false;
  };
  /// Counts up to kMaxPlain characters.
  PlainReach plainReach(uint32_t state, Fuel &fuel) {
    return states[state].hasReach ? states[state].reach
                                  : findReach(state, fuel);
  }
  /// The same behind a state and all characters whose UTF-8 begins with `lead`,
  /// which is not ASCII: texts of up to so many characters go on behind them.
  int reachBehind(uint32_t state, uint8_t lead, Fuel &fuel);
  static constexpr int kMaxPlain = GrammarVocabulary::kMaxPlain;

  /// What bounds are seen by.
  enum Sight {
    Short, ///< a short token, of at most GrammarVocabulary::kMaxShort bytes
    Long   ///< any token
  };
  /// A state that goes the same ways for the bytes of a token. It is the same
  /// for states that differ in how far bounds are beyond them.
  uint32_t relaxed(uint32_t state, Sight sight, Fuel &fuel) {
    const uint32_t known = states[state].relaxed[sight];
    return known != kUnknown ? known : findRelaxed(state, sight, fuel);
  }

  /// Puts a state of `from` here, a lexer of the same rules.
  uint32_t copyState(const Lexer &from, uint32_t state, Fuel &fuel);

  size_t memory() const;

private:
  static constexpr uint32_t kUnknown = 0xffffffff;

  /// A lexeme with what of it is to come.
  struct Part {
    uint32_t lexeme;
    ExprId rest;
    bool operator==(const Part &) const = default;
  };
  struct State {
    size_t begin, end; ///< in `parts`
    uint32_t accepts = kNoLexemes;
    bool goesOn = false;
    bool hasPlain = false; ///< `plainStates` and `plainWhole` are known
    std::array<uint32_t, 2> relaxed{kUnknown, kUnknown}; ///< by sight
    bool hasReach = false;                               ///< `reach` is known
    PlainReach reach{};
    bool plainWhole = false;               ///< each plain character goes on
    uint32_t plainBegin = 0, plainEnd = 0; ///< in `plainStates`
  };

  uint32_t makeState(const std::vector<Part> &made, Fuel &fuel);
  Step makeStep(uint32_t state, uint8_t byte, Fuel &fuel);
  void findPlain(uint32_t state, Fuel &fuel);
  PlainReach findReach(uint32_t state, Fuel &fuel);
  uint32_t findRelaxed(uint32_t state, Sight sight, Fuel &fuel);

  const Rules &rules;
  size_t longest;
  size_t maxBytes;
  Expressions expressions; ///< those of the rules, and their derivatives
  std::array<uint8_t, 256> classes; ///< of the rules
  size_t classCount;
  std::vector<State> states;
  std::vector<Part> parts;
  std::vector<Step> table; ///< [state, class]
  InternTable stateTable;
  std::vector<size_t> lists; ///< places in `listItems`
  std::vector<uint32_t> listItems;
  InternTable listTable;
  std::vector<uint32_t> starts; ///< by list: its state, or kUnknown
  std::vector<uint32_t> plainStates;
};

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_LEXER_H
