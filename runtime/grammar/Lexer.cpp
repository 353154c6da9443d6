//===- Lexer.cpp - Which lexemes the bytes so far may be ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/Lexer.h"

#include <algorithm>
#include <utility>

using namespace kf;
using namespace kf::grammar;

/// Bytes that begin and continue characters of UTF-8, as Unicode's table of
/// well-formed sequences has them; plain ones, of the first row.
static constexpr struct {
  uint8_t lead[2];
  int more;
  uint8_t second[2];
} kCharacters[] = {
    {{0x20, 0x7e}, 0, {}},           {{0xc2, 0xdf}, 1, {0x80, 0xbf}},
    {{0xe0, 0xe0}, 2, {0xa0, 0xbf}}, {{0xe1, 0xec}, 2, {0x80, 0xbf}},
    {{0xed, 0xed}, 2, {0x80, 0x9f}}, {{0xee, 0xef}, 2, {0x80, 0xbf}},
    {{0xf0, 0xf0}, 3, {0x90, 0xbf}}, {{0xf1, 0xf3}, 3, {0x80, 0xbf}},
    {{0xf4, 0xf4}, 3, {0x80, 0x8f}}};

/// States at once that plain characters are followed through.
static constexpr size_t kMaxPlainStates = 8;

/// Bytes that an expression takes, with its share of tables.
static constexpr size_t kExpressionBytes = 100;

Lexer::Lexer(const Rules &rules, size_t longest, size_t maxBytes)
    : rules(rules), longest(longest), maxBytes(maxBytes),
      expressions(rules.expressions), classes(rules.classes),
      classCount(rules.classBytes.size()), lists{0} {
  this->maxBytes += memory();
  expressions.setMaxSize(expressions.entries() * 2 +
                             maxBytes / kExpressionBytes,
                         StatusCode::OutOfMemory);
  Fuel none(1000, nullptr);
  list({});
  makeState({}, none);
  std::ranges::fill(table, Step(kDead));
}

uint32_t Lexer::list(std::span<const uint32_t> lexemes) {
  uint64_t hash = lexemes.size();
  for (uint32_t lexeme : lexemes)
    hash = mixHash(hash, lexeme);
  const uint32_t found = listTable.find(hash, [&](uint32_t number) {
    return std::ranges::equal(listed(number), lexemes);
  });
  if (found != InternTable::kNone)
    return found;
  listItems.insert(listItems.end(), lexemes.begin(), lexemes.end());
  lists.push_back(listItems.size());
  starts.push_back(kUnknown);
  const auto number = static_cast<uint32_t>(lists.size() - 2);
  listTable.add(hash, number);
  return number;
}

uint32_t Lexer::start(uint32_t list, Fuel &fuel) {
  if (starts[list] != kUnknown)
    return starts[list];
  std::vector<Part> made;
  for (uint32_t lexeme : listed(list))
    made.push_back({lexeme, rules.lexemes[lexeme]});
  return starts[list] = makeState(made, fuel);
}

uint32_t Lexer::makeState(const std::vector<Part> &made, Fuel &fuel) {
  fuel.spend(1 + made.size());
  uint64_t hash = made.size();
  for (const Part &part : made)
    hash = mixHash(hash, uint64_t(part.lexeme) << 32 | part.rest);
  const uint32_t found = stateTable.find(hash, [&](uint32_t number) {
    const State &state = states[number];
    return std::equal(made.begin(), made.end(), parts.begin() + state.begin,
                      parts.begin() + state.end);
  });
  if (found != InternTable::kNone)
    return found;
  if (memory() > maxBytes)
    fail("the text takes more memory than the limit", StatusCode::OutOfMemory);
  State state{.begin = parts.size(), .end = parts.size() + made.size()};
  std::vector<uint32_t> accepted;
  for (const Part &part : made) {
    if (expressions.nullable(part.rest))
      accepted.push_back(part.lexeme);
    state.goesOn |= part.rest != Expressions::kEmpty;
  }
  state.accepts = list(accepted);
  parts.insert(parts.end(), made.begin(), made.end());
  table.resize(table.size() + classCount, Step(kUnknown));
  const auto number = static_cast<uint32_t>(states.size());
  states.push_back(state);
  stateTable.add(hash, number);
  return number;
}

Lexer::Step Lexer::makeStep(uint32_t state, uint8_t byte, Fuel &fuel) {
  std::vector<Part> made;
  const auto [begin, end] = std::pair(states[state].begin, states[state].end);
  fuel.spend(1 + (end - begin) / 4);
  for (size_t i = begin; i < end; ++i) {
    const Part part = parts[i];
    if (!expressions.first(part.rest).has(byte))
      continue;
    const ExprId rest = expressions.derivative(part.rest, byte, fuel);
    if (expressions.isLive(rest, rules.classBytes, fuel))
      made.push_back({part.lexeme, rest});
  }
  const uint32_t next = made.empty() ? kDead : makeState(made, fuel);
  return table[size_t(state) * classCount + classes[byte]] =
             Step(next, states[next].accepts != kNoLexemes);
}

void Lexer::findPlain(uint32_t state, Fuel &fuel) {
  std::vector<uint32_t> found;
  bool whole = true;
  // The states behind all bytes of a range, from all of some states.
  auto stepAll = [&](std::span<const uint32_t> from, const uint8_t (&range)[2],
                     auto &&isTaken) {
    std::vector<uint32_t> next;
    std::array<bool, 256> tried{};
    for (int byte = range[0]; byte <= range[1]; ++byte) {
      const uint8_t value = static_cast<uint8_t>(byte);
      if (!isTaken(value) || tried[rules.classes[value]])
        continue;
      tried[rules.classes[value]] = true;
      for (uint32_t one : from) {
        const Step to = step(one, value, fuel);
        if (to.isDead())
          whole = false;
        else
          next.push_back(to.state());
      }
    }
    std::ranges::sort(next);
    next.erase(std::ranges::unique(next).begin(), next.end());
    return next;
  };
  static constexpr uint8_t kContinuation[2] = {0x80, 0xbf};
  auto any = [](uint8_t) { return true; };
  for (const auto &form : kCharacters) {
    std::vector<uint32_t> at =
        stepAll(std::span(&state, 1), form.lead,
                [&](uint8_t byte) { return byte != '"' && byte != '\\'; });
    for (int i = 0; i < form.more && at.size() <= kMaxPlainStates; ++i)
      at = stepAll(at, i ? kContinuation : form.second, any);
    found.insert(found.end(), at.begin(), at.end());
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  State &known = states[state];
  known.hasPlain = true;
  known.plainWhole = whole && found.size() <= kMaxPlainStates;
  known.plainBegin = static_cast<uint32_t>(plainStates.size());
  plainStates.insert(plainStates.end(), found.begin(), found.end());
  known.plainEnd = static_cast<uint32_t>(plainStates.size());
}

Lexer::PlainReach Lexer::findReach(uint32_t state, Fuel &fuel) {
  PlainReach reach;
  // The states behind all texts of `all` characters.
  std::vector<uint32_t> at{state}, next;
  bool accepts = false, isLast = false;
  while (!isLast && reach.all < kMaxPlain) {
    next.clear();
    bool whole = true;
    fuel.spend(at.size());
    for (uint32_t one : at) {
      if (!states[one].hasPlain)
        findPlain(one, fuel);
      const State &known = states[one];
      whole &= known.plainWhole;
      next.insert(next.end(), plainStates.begin() + known.plainBegin,
                  plainStates.begin() + known.plainEnd);
    }
    isLast = next.empty();
    if (isLast)
      break;
    std::ranges::sort(next);
    next.erase(std::ranges::unique(next).begin(), next.end());
    if (!whole || next.size() > kMaxPlainStates)
      break;
    for (uint32_t one : next)
      accepts |= states[one].accepts != kNoLexemes;
    ++reach.all;
    if (next == at)
      reach.all = kMaxPlain; // it stays so
    at.swap(next);
  }
  // Nothing plain is longer than kMaxPlain.
  reach.exact = !accepts && (isLast || reach.all == kMaxPlain);
  states[state].hasReach = true;
  return states[state].reach = reach;
}

int Lexer::reachBehind(uint32_t state, uint8_t lead, Fuel &fuel) {
  const auto form = std::ranges::find_if(kCharacters, [&](const auto &one) {
    return one.lead[0] <= lead && lead <= one.lead[1];
  });
  if (form == std::end(kCharacters))
    return 0;
  std::vector<uint32_t> at{state}, next;
  for (int i = 0; i <= form->more; ++i) {
    const int first = i == 0 ? lead : i == 1 ? form->second[0] : 0x80;
    const int last = i == 0 ? lead : i == 1 ? form->second[1] : 0xbf;
    next.clear();
    std::array<bool, 256> tried{};
    for (int byte = first; byte <= last; ++byte) {
      if (std::exchange(tried[classes[byte]], true))
        continue;
      for (uint32_t one : at) {
        const Step to = step(one, static_cast<uint8_t>(byte), fuel);
        if (to.isDead())
          return 0;
        next.push_back(to.state());
      }
    }
    std::ranges::sort(next);
    next.erase(std::ranges::unique(next).begin(), next.end());
    if (next.size() > kMaxPlainStates)
      return 0;
    at.swap(next);
  }
  int reach = kMaxPlain;
  for (uint32_t one : at)
    reach = std::min<int>(reach, plainReach(one, fuel).all);
  return reach;
}

uint32_t Lexer::findRelaxed(uint32_t state, Sight sight, Fuel &fuel) {
  const size_t bytes = sight == Short ? GrammarVocabulary::kMaxShort : longest;
  std::vector<Part> made(parts.begin() + states[state].begin,
                         parts.begin() + states[state].end);
  for (Part &part : made)
    part.rest =
        expressions.relaxed(part.rest, static_cast<uint32_t>(bytes), fuel);
  const uint32_t relaxed = makeState(made, fuel);
  states[relaxed].relaxed[sight] = relaxed;
  return states[state].relaxed[sight] = relaxed;
}

uint32_t Lexer::copyState(const Lexer &from, uint32_t state, Fuel &fuel) {
  std::vector<ExprId> rests, copied;
  for (size_t i = from.states[state].begin; i < from.states[state].end; ++i)
    rests.push_back(from.parts[i].rest);
  expressions.copyFrom(from.expressions, rests, rules.expressions.size(),
                       copied, fuel);
  std::vector<Part> made;
  for (size_t i = 0; i < copied.size(); ++i)
    made.push_back(
        {from.parts[from.states[state].begin + i].lexeme, copied[i]});
  return made.empty() ? kDead : makeState(made, fuel);
}

size_t Lexer::memory() const {
  return expressions.memory() + states.capacity() * sizeof(State) +
         parts.capacity() * sizeof(Part) + table.capacity() * 4 +
         stateTable.bytes() + lists.capacity() * 8 + listItems.capacity() * 4 +
         listTable.bytes() + starts.capacity() * 4 + plainStates.capacity() * 4;
}
