//===- Rows.cpp - What a grammar expects at places of a text --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/Rows.h"

#include <algorithm>

using namespace kf;
using namespace kf::grammar;

static constexpr uint64_t kFree = ~uint64_t(0);

Rows::Rows(const Rules &rules, Lexer &lexer, size_t maxBytes, Fuel &fuel)
    : rules(rules), lexer(lexer), maxBytes(maxBytes),
      predicted(rules.rules.size(), 0) {
  // The first row has no kernel: all is predicted from the first rule.
  makeRow(fuel);
  rows[kFirst].mayEnd = rules.rules[0].nullable;
}

/// Adds to the items that are seen in the row being made.
bool Rows::isNew(Item item) {
  const uint64_t key = uint64_t(item.place) << 32 | item.origin;
  if (seenCount * 2 >= seen.size()) {
    std::vector<uint64_t> before(std::max<size_t>(seen.size() * 2, 64), kFree);
    before.swap(seen);
    for (uint64_t other : before)
      if (other != kFree) {
        size_t i = mixHash(1, other) & (seen.size() - 1);
        while (seen[i] != kFree)
          i = (i + 1) & (seen.size() - 1);
        seen[i] = other;
      }
  }
  size_t i = mixHash(1, key) & (seen.size() - 1);
  for (; seen[i] != kFree; i = (i + 1) & (seen.size() - 1))
    if (seen[i] == key)
      return false;
  seen[i] = key;
  ++seenCount;
  return true;
}

std::span<const Rows::Item> Rows::expecting(uint32_t row, Symbol symbol) const {
  const std::span all(items.data() + rows[row].kernelEnd,
                      rows[row].end - rows[row].kernelEnd);
  const auto found =
      std::ranges::equal_range(all, symbol, {}, [&](const Item &item) {
        return rules.symbols[item.place];
      });
  return {found.begin(), found.end()};
}

/// Adds an item to the kernel of the row being made, and what follows from it:
/// items whose next symbol it completes, and itself past what may be empty.
void Rows::addItem(Item item, Fuel &fuel) {
  todo.push_back(item);
  while (!todo.empty()) {
    Item top = todo.back();
    todo.pop_back();
    for (;; ++top.place) {
      fuel.spend();
      if (!isNew(top))
        break;
      const Symbol symbol = rules.symbols[top.place];
      if (symbol.isEnd()) {
        if (symbol.number() == 0) {
          kernel.push_back(top); // the whole text
          break;
        }
        for (const Item &waiting :
             expecting(top.origin, Symbol::rule(symbol.number()))) {
          fuel.spend();
          todo.push_back({waiting.place + 1, waiting.origin == kSelf
                                                 ? top.origin
                                                 : waiting.origin});
        }
        break;
      }
      kernel.push_back(top);
      if (!symbol.isRule() || !rules.rules[symbol.number()].nullable)
        break;
    }
  }
}

uint32_t Rows::advance(std::span<const Ended> ended, Fuel &fuel) {
  uint64_t hash = ended.size();
  const uint64_t key = uint64_t(ended[0].row) << 32 | ended[0].lexemes;
  if (ended.size() == 1) {
    if (const auto found = single.find(key); found != single.end())
      return found->second;
  } else {
    for (const Ended &end : ended)
      hash = mixHash(hash, uint64_t(end.row) << 32 | end.lexemes);
    const uint32_t found = advanceTable.find(hash, [&](uint32_t number) {
      const Advance &known = advances[number];
      return std::equal(ended.begin(), ended.end(),
                        advanceKeys.begin() + known.begin,
                        advanceKeys.begin() + known.end);
    });
    if (found != InternTable::kNone)
      return advances[found].row;
  }

  kernel.clear();
  todo.clear();
  seen.assign(64, kFree);
  seenCount = 0;
  for (const Ended &end : ended)
    for (uint32_t lexeme : lexer.listed(end.lexemes))
      for (const Item &waiting : expecting(end.row, Symbol::lexeme(lexeme)))
        addItem({waiting.place + 1,
                 waiting.origin == kSelf ? end.row : waiting.origin},
                fuel);
  const uint32_t row = makeRow(fuel);
  if (ended.size() == 1) {
    single.emplace(key, row);
  } else {
    advances.push_back(
        {advanceKeys.size(), advanceKeys.size() + ended.size(), row});
    advanceKeys.insert(advanceKeys.end(), ended.begin(), ended.end());
    advanceTable.add(hash, static_cast<uint32_t>(advances.size() - 1));
  }
  return row;
}

/// The row with the kernel, with all that it predicts.
uint32_t Rows::makeRow(Fuel &fuel) {
  std::ranges::sort(kernel);
  uint64_t hash = kernel.size();
  for (const Item &item : kernel)
    hash = mixHash(hash, uint64_t(item.place) << 32 | item.origin);
  const uint32_t found = rowTable.find(hash, [&](uint32_t number) {
    return std::equal(kernel.begin(), kernel.end(),
                      items.begin() + rows[number].begin,
                      items.begin() + rows[number].kernelEnd);
  });
  if (found != InternTable::kNone)
    return found;

  if (memory() > maxBytes)
    fail("the text takes more memory than the limit", StatusCode::OutOfMemory);
  const auto number = static_cast<uint32_t>(rows.size());
  Row row{.begin = items.size()};
  std::vector<Item> all;
  std::vector<uint32_t> rulesToDo;
  ++predictions;
  auto predict = [&](uint32_t rule) {
    if (predicted[rule] != predictions) {
      predicted[rule] = predictions;
      rulesToDo.push_back(rule);
    }
  };
  for (const Item &item : kernel) {
    const Symbol symbol = rules.symbols[item.place];
    if (symbol.isEnd()) {
      row.mayEnd = true;
      continue;
    }
    all.push_back(item);
    if (symbol.isRule())
      predict(symbol.number());
  }
  if (rows.empty())
    predict(0);
  while (!rulesToDo.empty()) {
    const Rules::Rule &rule = rules.rules[rulesToDo.back()];
    rulesToDo.pop_back();
    for (uint32_t place : rule.productions) {
      for (;; ++place) {
        fuel.spend();
        const Symbol symbol = rules.symbols[place];
        if (symbol.isEnd())
          break;
        all.push_back({place, kSelf});
        if (!symbol.isRule())
          break;
        predict(symbol.number());
        if (!rules.rules[symbol.number()].nullable)
          break;
      }
    }
  }
  auto symbolOf = [&](const Item &item) { return rules.symbols[item.place]; };
  std::ranges::sort(all, {}, symbolOf);
  fuel.spend(all.size());
  std::vector<uint32_t> expected;
  for (const Item &item : all)
    if (const Symbol symbol = symbolOf(item);
        symbol.isLexeme() &&
        (expected.empty() || expected.back() != symbol.number()))
      expected.push_back(symbol.number());
  row.start = lexer.start(lexer.list(expected), fuel);

  items.insert(items.end(), kernel.begin(), kernel.end());
  row.kernelEnd = items.size();
  items.insert(items.end(), all.begin(), all.end());
  row.end = items.size();
  rows.push_back(row);
  rowTable.add(hash, number);
  return number;
}

void Rows::copyRows(const Rows &from, std::vector<uint32_t> &wanted,
                    Fuel &fuel) {
  // A row begins behind those where its items began.
  std::vector<bool> reached(from.rows.size());
  for (uint32_t row : wanted)
    reached[row] = true;
  for (size_t row = from.rows.size(); row-- > 1;)
    if (reached[row])
      for (size_t i = from.rows[row].begin; i < from.rows[row].kernelEnd; ++i)
        reached[from.items[i].origin] = true;
  std::vector<uint32_t> moved(from.rows.size(), kFirst);
  for (size_t row = 1; row < from.rows.size(); ++row) {
    if (!reached[row])
      continue;
    kernel.clear();
    for (size_t i = from.rows[row].begin; i < from.rows[row].kernelEnd; ++i)
      kernel.push_back({from.items[i].place, moved[from.items[i].origin]});
    moved[row] = makeRow(fuel);
  }
  for (uint32_t &row : wanted)
    row = moved[row];
}

size_t Rows::memory() const {
  // A node of `single` with its share of buckets takes some 40 bytes.
  return rows.capacity() * sizeof(Row) + items.capacity() * sizeof(Item) +
         rowTable.bytes() + single.size() * 40 +
         advances.capacity() * sizeof(Advance) +
         advanceKeys.capacity() * sizeof(Ended) + advanceTable.bytes();
}
